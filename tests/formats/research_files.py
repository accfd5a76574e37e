"""Small files of every research format, made without the code under test.

``FILES[name](folder)`` writes one artifact and returns its path and the arrays it must give back.
safetensors, gguf and numpy write their own; torch archives are laid out here by hand after
torch/serialization.py, so that torch is not needed.
"""

import collections
import io
import json
import pickle
import struct
import sys
import types
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import gguf
import numpy as np
import safetensors.numpy

Arrays = dict[str, np.ndarray]


def arrays(elements: int = 24) -> Arrays:
    rng = np.random.default_rng(7)
    return {
        "layers.0.weight": rng.standard_normal((4, elements // 4)).astype(np.float32),
        "layers.1.weight": rng.integers(-100, 100, (elements,)).astype(np.int64),
        "scale": np.array(0.5, np.float16),
    }


def write_safetensors(folder: Path, elements: int = 24) -> tuple[Path, Arrays]:
    data = arrays(elements)
    path = folder / "model.safetensors"
    safetensors.numpy.save_file(data, path, metadata={"format": "np", "note": "hello"})
    return path, data


def write_sharded(folder: Path, elements: int = 24) -> tuple[Path, Arrays]:
    data = arrays(elements)
    weight_map = {}
    for number, (name, array) in enumerate(data.items(), 1):
        file = f"model-{number:05d}-of-00003.safetensors"
        safetensors.numpy.save_file({name: array}, folder / file)
        weight_map[name] = file
    total = sum(a.nbytes for a in data.values())
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}))
    return index, data


def write_huggingface(folder: Path, elements: int = 24) -> tuple[Path, Arrays]:
    _, data = write_sharded(folder, elements)
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 8,
        "num_key_value_heads": 2, "hidden_size": 64, "vocab_size": 1000, "max_position_embeddings": 512,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    return folder, data


def write_gguf(folder: Path, elements: int = 24) -> tuple[Path, Arrays]:
    data = {name: array for name, array in arrays(elements).items() if array.ndim}
    path = folder / "model.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(2)
    writer.add_array("tokenizer.ggml.tokens", [f"token {i}" for i in range(50)])
    writer.add_array("numbers", list(range(30)))
    for name, array in data.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path, data


def write_npy(folder: Path, elements: int = 24) -> tuple[Path, Arrays]:
    array = np.asfortranarray(arrays(elements)["layers.0.weight"])
    path = folder / "array.npy"
    np.save(path, array)
    return path, {"array": array}


def write_npz(folder: Path, elements: int = 24) -> tuple[Path, Arrays]:
    data = arrays(elements)
    path = folder / "arrays.npz"
    np.savez(path, **data)
    return path, data


def write_npz_compressed(folder: Path, elements: int = 24) -> tuple[Path, Arrays]:
    data = arrays(elements)
    path = folder / "packed.npz"
    np.savez_compressed(path, **data)
    return path, data


# --- torch, without torch ---------------------------------------------------------------

STORAGES = {
    np.dtype(np.float32): "FloatStorage",
    np.dtype(np.int64): "LongStorage",
    np.dtype(np.float16): "HalfStorage",
}


class _Storage:
    def __init__(self, key: str, array: np.ndarray) -> None:
        self.key, self.array = key, array


@contextmanager
def _torch_names() -> Iterator[dict[str, types.ModuleType]]:
    """Modules called torch and torch._utils that hold just the names a checkpoint refers to."""
    root, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    def _rebuild_tensor_v2(*_: object) -> None:
        """Referred to by name only."""

    _rebuild_tensor_v2.__module__ = "torch._utils"
    _rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2
    for name in STORAGES.values():
        kind = type(name, (), {"__module__": "torch", "__qualname__": name})
        setattr(root, name, kind)
    saved = {name: sys.modules.get(name) for name in ("torch", "torch._utils")}
    sys.modules.update({"torch": root, "torch._utils": utils})
    try:
        yield {"torch": root, "torch._utils": utils}
    finally:
        for name, module in saved.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def torch_pickle(value: object, *, view_of: str = "", plain: bool = False) -> tuple[bytes, list[np.ndarray]]:
    """Protocol-2 pickle of nested dicts of arrays the way torch.save writes it, and its storages by key.

    ``view_of`` adds a transposed view ``view`` on the storage of that array; ``plain`` writes dict, not OrderedDict.
    """
    storages: list[np.ndarray] = []
    with _torch_names() as modules:
        rebuild = modules["torch._utils"]._rebuild_tensor_v2

        class Tensor:
            def __init__(self, storage: _Storage, offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> None:
                self.parts = storage, offset, size, stride

            def __reduce__(self) -> tuple[object, ...]:
                return rebuild, (*self.parts, False, collections.OrderedDict())

        class Pickler(pickle.Pickler):
            def persistent_id(self, item: object) -> object:
                if isinstance(item, _Storage):
                    kind = getattr(modules["torch"], STORAGES[item.array.dtype])
                    return "storage", kind, item.key, "cpu", item.array.size
                return None

        def convert(item: object) -> object:
            if isinstance(item, np.ndarray):
                flat = np.ascontiguousarray(item).reshape(-1)
                storages.append(flat)
                storage = _Storage(str(len(storages) - 1), flat)
                stride = tuple(s // item.itemsize for s in np.ascontiguousarray(item).reshape(item.shape).strides)
                return Tensor(storage, 0, item.shape, stride)
            if isinstance(item, dict):
                made = {key: convert(v) for key, v in item.items()}
                if view_of in made:
                    storage, _, size, stride = made[view_of].parts
                    made["view"] = Tensor(storage, 0, size[::-1], stride[::-1])
                return made if plain else collections.OrderedDict(made)
            return item

        buffer = io.BytesIO()
        Pickler(buffer, 2).dump(convert(value))
    return buffer.getvalue(), storages


def write_torch_zip(folder: Path, elements: int = 24) -> tuple[Path, Arrays]:
    data = arrays(elements)
    body, storages = torch_pickle({"epoch": 3, "state_dict": data}, view_of="layers.0.weight")
    path = folder / "checkpoint.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("checkpoint/data.pkl", body)
        archive.writestr("checkpoint/byteorder", "little")
        for key, storage in enumerate(storages):
            archive.writestr(f"checkpoint/data/{key}", storage.tobytes())
        archive.writestr("checkpoint/version", "3\n")
    expected = {f"state_dict.{name}": array for name, array in data.items()}
    expected["state_dict.view"] = data["layers.0.weight"].T
    return path, expected


def write_torch_legacy(folder: Path, elements: int = 24) -> tuple[Path, Arrays]:
    data = arrays(elements)
    body, storages = torch_pickle(data)
    path = folder / "legacy.pth"
    with path.open("wb") as file:
        for item in (0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}):
            pickle.dump(item, file, 2)
        file.write(body)
        pickle.dump([str(key) for key in range(len(storages))], file, 2)
        for storage in storages:
            file.write(struct.pack("<q", storage.size) + storage.tobytes())
    return path, data


def write_pt2(folder: Path, elements: int = 24) -> tuple[Path, Arrays]:
    weight = arrays(elements)["layers.0.weight"]

    def meta(shape: tuple[int, ...], dtype: int = 7) -> dict[str, object]:
        strides = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
        return {
            "dtype": dtype, "sizes": [{"as_int": s} for s in shape], "strides": [{"as_int": s} for s in strides],
            "storage_offset": {"as_int": 0}, "layout": 7, "requires_grad": False, "device": {"type": "cpu", "index": None},
        }  # fmt: skip

    def tensor(name: str) -> dict[str, object]:
        return {"as_tensor": {"name": name}}

    batch = {"as_expr": {"expr_str": "Symbol('s0', positive=True, integer=True)", "hint": None}}
    x_meta = meta((2, weight.shape[1]))
    x_meta["sizes"] = [batch, {"as_int": weight.shape[1]}]
    node = {
        "target": "torch.ops.aten.linear.default", "name": "linear",
        "inputs": [{"name": "input", "arg": tensor("x"), "kind": 1}, {"name": "weight", "arg": tensor("p_w"), "kind": 1}],
        "outputs": [tensor("linear")], "metadata": {"nn_module_stack": "L__self__,,M;L__self___fc,fc,torch.nn.Linear"},
    }  # fmt: skip
    program = {
        "graph_module": {
            "graph": {
                "inputs": [tensor("p_w"), tensor("x")], "outputs": [tensor("linear")], "nodes": [node],
                "tensor_values": {"p_w": meta(weight.shape), "x": x_meta, "linear": meta((2, weight.shape[0]))},
            },
            "signature": {
                "input_specs": [
                    {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "fc.weight"}},
                    {"user_input": {"arg": tensor("x")}},
                ],
                "output_specs": [{"user_output": {"arg": tensor("linear")}}],
            },
            "module_call_graph": [],
        },
        "opset_version": {"aten": 10}, "schema_version": {"major": 8, "minor": 20}, "range_constraints": {},
        "torch_version": "2.13.0",
    }  # fmt: skip
    config = {
        "config": {
            "fc.weight": {
                "path_name": "weight_0",
                "is_param": True,
                "use_pickle": False,
                "tensor_meta": meta(weight.shape),
            }
        }
    }
    path = folder / "program.pt2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("program/archive_format", "pt2")
        archive.writestr("program/data/weights/weight_0", weight.tobytes())
        archive.writestr("program/data/weights/model_weights_config.json", json.dumps(config))
        archive.writestr("program/models/model.json", json.dumps(program))
    return path, {"fc.weight": weight}


TORCHSCRIPT_CODE = """class M(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
  training : bool
  def forward(self: __torch__.M,
    x: Tensor,
    n: int) -> Tensor:
    weight = self.weight
    training = self.training
    if training:
      x0 = torch.dropout(x, 0.5, True)
    else:
      x0 = x
    y = torch.matmul(x0, weight)
    for i in range(n):
      if bool(torch.gt(torch.sum(y), 0)):
        y0 = torch.sub(y, CONSTANTS.c0)
      else:
        y0 = torch.add(y, 2)
      y = y0
    a, b, = torch.split(y, 2, 0)
    return torch.cat([a, b], 1)
"""


def write_torchscript(folder: Path, elements: int = 24) -> tuple[Path, Arrays]:
    weight = arrays(elements)["layers.0.weight"]
    body, storages = torch_pickle({"weight": weight}, plain=True)
    # A module is c__torch__\nM\n)\x81 plus its attributes by BUILD; the dictionary pickle becomes its state.
    inner = body[2:-1]
    module = b"\x80\x02c__torch__\nM\n)\x81" + inner + b"X\x08\x00\x00\x00training\x89sb."
    constants = b"\x80\x02)."
    path = folder / "script.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("script/data.pkl", module)
        archive.writestr("script/constants.pkl", constants)
        archive.writestr("script/code/__torch__.py", TORCHSCRIPT_CODE)
        for key, storage in enumerate(storages):
            archive.writestr(f"script/data/{key}", storage.tobytes())
    return path, {"weight": weight}


def mlir_text(weight: np.ndarray) -> str:
    rows, columns = weight.shape
    kind = f"tensor<{rows}x{columns}xf32>"
    return f"""module @small attributes {{mhlo.num_partitions = 1 : i32}} {{
  func.func public @main(%arg0: tensor<?x{rows}xf32>, %arg1: tensor<i32>) -> (tensor<?x{columns}xf32> {{jax.result_info = "out"}}) {{
    %cst = stablehlo.constant dense<"0x{weight.astype("<f4").tobytes().hex().upper()}"> : {kind}
    %c = stablehlo.constant dense<[1, -2, 3]> : tensor<3xi32>
    %h = stablehlo.constant dense<0.5> : tensor<2x2xbf16>
    %0 = stablehlo.dot_general %arg0, %cst, contracting_dims = [1] x [0] : (tensor<?x{rows}xf32>, {kind}) -> tensor<?x{columns}xf32>
    %1:2 = stablehlo.while(%i = %arg1, %x = %0) : tensor<i32>, tensor<?x{columns}xf32>
    cond {{
      %2 = stablehlo.compare LT, %i, %arg1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }} do {{
      %3 = stablehlo.add %x, %0 : tensor<?x{columns}xf32>
      stablehlo.return %i, %3 : tensor<i32>, tensor<?x{columns}xf32>
    }}
    return %1#1 : tensor<?x{columns}xf32>
  }}
}}
"""


def write_mlir(folder: Path, elements: int = 24) -> tuple[Path, Arrays]:
    weight = arrays(elements)["layers.0.weight"]
    path = folder / "small.stablehlo.mlir"
    path.write_text(mlir_text(weight))
    return path, {
        "main/cst": weight, "main/c": np.array([1, -2, 3], np.int32), "main/h": np.full((2, 2), 0.5, np.float32),
    }  # fmt: skip


Writer = Callable[..., tuple[Path, Arrays]]


def write_node_data(folder: Path, elements: int = 24) -> tuple[Path, Arrays]:
    path = folder / "latency.json"
    results = {f"node{i}": {"value": i / 2} for i in range(elements)}
    path.write_text(json.dumps({"main": {"results": results, "gradient": [{"stop": 0, "bgColor": "green"}]}}))
    return path, {}


FILES: dict[str, Writer] = {
    "safetensors": write_safetensors,
    "sharded": write_sharded,
    "huggingface": write_huggingface,
    "gguf": write_gguf,
    "npy": write_npy,
    "npz": write_npz,
    "npz_compressed": write_npz_compressed,
    "torch_zip": write_torch_zip,
    "torch_legacy": write_torch_legacy,
    "pt2": write_pt2,
    "torchscript": write_torchscript,
    "mlir": write_mlir,
    "node_data": write_node_data,
}
READ_AS = {
    "safetensors": "safetensors", "sharded": "safetensors", "huggingface": "huggingface", "gguf": "gguf", "npy": "npy",
    "npz": "npz", "npz_compressed": "npz", "torch_zip": "pytorch", "torch_legacy": "pytorch", "pt2": "torch_export",
    "torchscript": "torchscript", "mlir": "stablehlo", "node_data": "nodedata",
}  # fmt: skip

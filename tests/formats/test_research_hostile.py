"""Hostile research files: refused or shown, in words that name the place; nothing is run, nothing is read outside."""

import io
import json
import os
import pickle
import struct
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from core import open_model
from core.errors import ModelError
from tests.formats.research_files import torch_pickle


class Trap:
    """Would create the marker file if anything unpickled it."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.marker}",)


def header(tensors: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = tensors if isinstance(tensors, bytes) else json.dumps(tensors).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(start: object, stop: object, shape: object = (4,), dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


def archive(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return buffer.getvalue()


def npy(text: str, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text.encode() + b"\n" + data


def key_value(key: bytes, kind: int, value: bytes) -> bytes:
    return struct.pack("<Q", len(key)) + key + struct.pack("<I", kind) + value


def gguf_file(keys: list[bytes], infos: list[bytes] = [], version: int = 3) -> bytes:  # noqa: B006 (never changed)
    return b"GGUF" + struct.pack("<IQQ", version, len(infos), len(keys)) + b"".join(keys) + b"".join(infos)


def info(name: bytes, dims: list[int], kind: int, offset: int) -> bytes:
    return struct.pack("<Q", len(name)) + name + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


CASES: dict[str, tuple[str, bytes, str]] = {
    "st length huge": ("a.safetensors", header(b"{}", length=2**63), "header length: is impossible"),
    "st not json": ("a.safetensors", header(b"{not json"), "header: is not JSON"),
    "st not utf8": ("a.safetensors", header(b'{"\xff\xfe":1}'), "header: is not UTF-8"),
    "st array": ("a.safetensors", header(b"[]"), "expected an object, found an array"),
    "st deep": ("a.safetensors", header(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "nested too deeply"),
    "st twice": ("a.safetensors", header(b'{"a":1,"a":2}'), "names 'a' twice"),
    "st overlap": ("a.safetensors", header({"a": tensor(0, 16), "b": tensor(8, 24)}, b"\0" * 24), "inside 'a'"),
    "st hole": ("a.safetensors", header({"a": tensor(0, 16), "b": tensor(32, 48)}, b"\0" * 48), "belong to no tensor"),
    "st past end": (
        "a.safetensors",
        header({"a": tensor(0, 1 << 40, [1 << 38])}, b"\0" * 16),
        "the file has 16 bytes of data",
    ),
    "st shape": (
        "a.safetensors",
        header({"a": tensor(0, 16, [5])}, b"\0" * 16),
        "needs 20 bytes, data_offsets give 16",
    ),
    "st overflow": ("a.safetensors", header({"a": tensor(0, 16, [2**32] * 3)}, b"\0" * 16), "too many elements"),
    "st negative": ("a.safetensors", header({"a": tensor(0, 16, [-4])}, b"\0" * 16), "sizes of 0 or more"),
    "st floats": ("a.safetensors", header({"a": tensor(0.0, 16.0)}, b"\0" * 16), "two whole numbers"),
    "st dtype": ("a.safetensors", header({"a": tensor(0, 16, dtype="F99")}, b"\0" * 16), "'F99' is unknown"),
    "st backwards": ("a.safetensors", header({"a": tensor(16, 0)}, b"\0" * 16), "end before they begin"),
    "npy code": (
        "a.npy",
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': __import__('os').getpid(), }"),
        "plain literal",
    ),
    "npy huge": (
        "a.npy",
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }"),
        "needs 4000000000000 bytes",
    ),
    "npy header": ("a.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", "header length: is impossible"),
    "npy deep": ("a.npy", npy("(" * 20_000 + ")" * 20_000), "plain literal"),
    "gguf counts": ("a.gguf", b"GGUF" + struct.pack("<IQQ", 3, 2**63, 2**63), "number of metadata keys"),
    "gguf version": ("a.gguf", b"GGUF" + struct.pack("<IQQ", 99, 0, 0), "version: is unknown"),
    "gguf string": ("a.gguf", gguf_file([struct.pack("<Q", 2**60)]), "length of key 0: is impossible"),
    "gguf array": (
        "a.gguf",
        gguf_file([key_value(b"k", 9, struct.pack("<IQ", 4, 2**61))]),
        "length of array 'k': is impossible",
    ),
    "gguf type": ("a.gguf", gguf_file([key_value(b"k", 99, b"")]), "type of 'k': is unknown"),
    "gguf rank": ("a.gguf", gguf_file([], [info(b"t", [1] * 9, 0, 0)]), "rank of 't': is impossible"),
    "gguf row": ("a.gguf", gguf_file([], [info(b"t", [33], 12, 0)]), "q4_k needs a multiple of 256"),
    "gguf offset": ("a.gguf", gguf_file([], [info(b"t", [32], 0, 1 << 50)]), "leave the file"),
    "zip cut": ("a.pt", archive({"a/data.pkl": pickle.dumps({}, 2)})[:-10], "no zip central directory"),
    "zip crc": (
        "a.pt",
        archive({"a/data.pkl": b"\x80\x02}q\x00."}).replace(b"\x80\x02}q\x00.", b"\x80\x02]q\x00.", 1),
        "does not match",
    ),
    "zip name": ("a.pt", archive({"a/data.pkl": b"\x80\x02}."}).replace(b"a/data.pkl", b"a/evil.pkl", 1), "differ"),
    "zip junk": ("a.pt", b"MZ" + b"\0" * 510 + archive({"a/data.pkl": b"\x80\x02}."}), "stand before the archive"),
    "pickle cut": ("a.pkl", b"\x80\x02X\xff\xff\xff\xff", "needs 4294967295 bytes"),
    "pickle integer": ("a.pkl", b"\x80\x02\x8b\xff\xff\xff\x7f\x01.", "an integer has 2147483647 bytes"),
    "pickle frame": ("a.pkl", b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"N.", "a frame says"),
    "mlir deep": ("a.mlir", b"module {" * 100_000, "nesting of regions"),
    "mlir utf8": ("a.mlir", b"module @\xff\xfe { func.func @main( }", "is not UTF-8"),
}


def answer(path: Path) -> str:
    """Everything the product says of a file."""
    try:
        model = open_model(path)
    except ModelError as error:
        return str(error)
    return " ".join(f.message for f in model.findings)


@pytest.mark.parametrize("name", CASES)
def test_answer_names_the_place(name: str, tmp_path: Path) -> None:
    file, data, words = CASES[name]
    path = tmp_path / file
    path.write_bytes(data)
    start = time.process_time()
    assert words in answer(path)
    assert time.process_time() - start < 1


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_pickles_are_walked_and_never_run(protocol: int, tmp_path: Path) -> None:
    marker = tmp_path / "PWNED"
    path = tmp_path / "weights.pkl"
    path.write_bytes(pickle.dumps({"w": Trap(marker)}, protocol))
    (finding,) = [f for f in open_model(path).findings if f.code == "pickle.dangerous"]
    assert "posix.system" in finding.message
    assert finding.severity == "error"
    assert not marker.exists()


@pytest.mark.parametrize("where", ["archive/data.pkl", "archive/extra/other.pkl", "other/data.pkl"])
def test_every_pickle_of_an_archive_is_looked_at(where: str, tmp_path: Path) -> None:
    marker = tmp_path / "PWNED"
    path = tmp_path / "model.pt"
    members = {"archive/data.pkl": pickle.dumps({}, 2), where: pickle.dumps(Trap(marker), 2)}
    path.write_bytes(archive(members))
    assert any(f.code == "pickle.dangerous" for f in open_model(path).findings)
    assert not marker.exists()


def test_a_second_pickle_behind_a_harmless_one(tmp_path: Path) -> None:
    path = tmp_path / "two.pkl"
    path.write_bytes(pickle.dumps([1, 2], 2) + pickle.dumps(Trap(tmp_path / "PWNED"), 2))
    said = answer(path)
    assert "posix.system" in said
    assert "2 pickles" in said


def test_object_arrays_are_named_and_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "objects.npy"
    body = pickle.dumps([Trap(tmp_path / "PWNED")], 2)
    path.write_bytes(npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", body))
    assert "a pickle that numpy would execute" in answer(path)
    assert not (tmp_path / "PWNED").exists()


def test_memo_bomb_costs_what_its_bytes_cost(tmp_path: Path) -> None:
    path = tmp_path / "bomb.pkl"
    layers = b"".join(b"(h\x00h\x00h\x00h\x00h\x00h\x00h\x00h\x00lq\x00" for _ in range(60))
    path.write_bytes(b"\x80\x02]q\x00" + layers + b".")
    start = time.process_time()
    assert open_model(path).tensors == ()
    assert time.process_time() - start < 1


def test_storages_are_only_looked_for_inside_the_archive(tmp_path: Path) -> None:
    body, _ = torch_pickle({"w": np.zeros(4, "f4")})
    body = body.replace(b"X\x01\x00\x00\x000", b"X\x0d\x00\x00\x00../../etc/hos")
    path = tmp_path / "model.pt"
    path.write_bytes(archive({"archive/data.pkl": body}))
    assert "its storage 'archive/data/../../etc/hos' is not in the archive" in answer(path)


def test_shards_outside_the_folder_are_refused(tmp_path: Path) -> None:
    index = {"weight_map": {"a": "../../../../etc/passwd", "b": "/etc/passwd", "c": "link.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "link.safetensors").symlink_to("/etc/passwd")
    said = answer(tmp_path / "model.safetensors.index.json")
    assert said.count("is not a plain relative path") == 2
    assert "leads out of its folder" in said


def test_names_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "names.safetensors"
    hostile = ["../../x<script>alert(1)</script>", "\u202egnp.exe", "\ud800 lone", "a\0b"]
    path.write_bytes(header({name: tensor(16 * i, 16 * i + 16) for i, name in enumerate(hostile)}, b"\0" * 64))
    found = [t.name for t in open_model(path).tensors]
    assert found[:2] == hostile[:2]
    assert all(name.encode("utf-8") for name in found)  # storable: no lone surrogate is left

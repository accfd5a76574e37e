"""The formats Modelglass reads: one file a format, one line a format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Final, cast

from core.formats.head import Head
from core.ir import Model


@dataclass(frozen=True, slots=True)
class Format:
    """One reader.

    Attributes:
        name: short name, also ``Model.format``.
        title: name for people.
        module: the module under ``core.formats``; it has ``match(head) -> int`` (0 no, 1 only the
            suffix says so, 2 the content could be, 3 the content is) and ``read(head) -> Model``.
        suffixes: usual file name endings, lower case.
    """

    name: str
    title: str
    module: str
    suffixes: tuple[str, ...]

    def match(self, head: Head) -> int:
        """How sure the reader is, 0 to 3; looks only at ``head``."""
        return cast(Callable[[Head], int], import_module(self.module).match)(head)

    def read(self, head: Head) -> Model:
        """Open the artifact; reads metadata, never payloads."""
        return cast(Callable[[Head], Model], import_module(self.module).read)(head)


FORMATS: Final[tuple[Format, ...]] = (
    Format("onnx", "ONNX", "core.formats.onnx", (".onnx",)),
    Format("safetensors", "safetensors", "core.formats.safetensors", (".safetensors",)),
    Format("sharded", "safetensors index", "core.formats.sharded", (".json",)),
    Format("huggingface", "Hugging Face folder", "core.formats.huggingface", ()),
    Format("gguf", "GGUF", "core.formats.gguf", (".gguf",)),
    Format("torch_export", "torch.export program", "core.formats.torch_export", (".pt2",)),
    Format("torchscript", "TorchScript", "core.formats.torchscript", (".pt", ".jit", ".ptl")),
    Format("torch_package", "torch.package", "core.formats.torch_package", (".pt",)),
    Format("pytorch", "PyTorch", "core.formats.pytorch", (".pt", ".pth", ".ckpt", ".bin", ".pkl", ".tar")),
    Format("stablehlo", "StableHLO and MLIR", "core.formats.stablehlo", (".mlir", ".mlirbc", ".stablehlo")),
    Format("npy", "NumPy array", "core.formats.npy", (".npy",)),
    Format("npz", "NumPy archive", "core.formats.npz", (".npz",)),
    Format("nodedata", "node data", "core.formats.node_data", (".json",)),
)

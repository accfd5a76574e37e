"""torch.export archives (``.pt2``): the whole graph as JSON, weights as members of a zip.

Layout: torch/export/pt2_archive; schema: torch/_export/serde/schema.py (major version 8, whose
unions are objects with one key such as ``as_tensor``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.capabilities import described_graph
from core.errors import BrokenFile, ModelError
from core.formats import _json
from core.formats._export_graph import ExportGraphs, json_list, json_object
from core.formats._json import Json
from core.formats._torch_archive import member_bytes
from core.formats._torch_objects import Found, Storage
from core.formats._torch_tensors import StorageBytes, findings_of, tie
from core.formats._zip import Archive
from core.formats.head import Head
from core.ir import Finding, Model, Tensor
from core.limits import MIB, TENSORS, check

JSON_BYTES: Final = 512 * MIB
SCALAR_TYPES: Final[dict[int, str]] = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
    10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16", 29: "float8e4m3fn",
    30: "float8e5m2", 31: "float8e4m3fnuz", 32: "float8e5m2fnuz", 33: "float8e8m0", 34: "uint32", 35: "uint64",
}  # fmt: skip
"""``ScalarType`` of the schema."""


def match(head: Head) -> int:
    """3 for a zip with ``archive_format`` and ``models/`` members."""
    if head.source is None or b"PK\5\6" not in head.tail:
        return 0
    if b"archive_format" in head.tail and b"models/" in head.tail:
        return 3
    return 3 if b"serialized_exported_program.json" in head.tail else 0


def read(head: Head) -> Model:
    """Open an exported program; reads its JSON, no weights.

    Raises:
        BrokenFile: if there is no program in it.
    """
    assert head.source is not None
    archive = Archive(head.source)
    name = next((m.name for m in archive.members if _is_program(m.name)), None)
    if name is None:
        raise BrokenFile("is a torch.export archive without a model", path=head.path)
    program = _json_member(archive, name)
    findings = list(archive.findings)
    root = name.split("models/", 1)[0] if "models/" in name else ""
    tensors, by_name = _tensors(archive, root, findings)
    graphs = ExportGraphs(program, by_name, SCALAR_TYPES, head.path)
    versions = {k: v for k, v in json_object(program.get("opset_version")).items() if isinstance(v, int)}
    torch_version = program.get("torch_version")
    return Model(
        format="torch_export",
        kind="torch.export program",
        path=head.path,
        sources=(head.source,),
        metadata=_metadata(program),
        tensors=tuple(tensors),
        graphs=graphs.graphs,
        capabilities=described_graph("torch.export program", tensors=_tensor_words(tensors)),
        findings=(*findings, *graphs.findings, *findings_of(tensors)),
        producer=f"torch {torch_version}" if isinstance(torch_version, str) else "torch",
        opsets=versions,
        details={"programs": sum(_is_program(m.name) for m in archive.members)},
    )


def _is_program(name: str) -> bool:
    return ("models/" in name and name.endswith(".json")) or name.endswith("serialized_exported_program.json")


def _json_member(archive: Archive, name: str) -> dict[str, Json]:
    data = archive.read(archive.by_name[name], JSON_BYTES)
    return _json.parse_object(data, path=archive.source.path, what=name)


def _tensors(archive: Archive, root: str, findings: list[Finding]) -> tuple[list[Tensor], dict[str, int]]:
    """Weights and constants, and their indexes by the name the program uses."""
    found: list[Found] = []
    storages: dict[str, StorageBytes] = {}
    for folder, config in (("weights", "model_weights_config.json"), ("constants", "model_constants_config.json")):
        name = f"{root}data/{folder}/{config}"
        if name not in archive.by_name:
            continue
        try:
            table = json_object(_json_member(archive, name).get("config"))
        except ModelError as error:
            findings.append(
                Finding("torch_export.weights", "error", f"{name[:120]!r} cannot be read: {error.message}.")
            )
            continue
        check("the number of tensors", len(table), TENSORS, path=archive.source.path)
        for key, entry in table.items():
            found.append(_found(_json.text(key), json_object(entry), f"{root}data/{folder}/"))
    for item in found:
        if item.storage is not None and item.storage.key not in storages:
            storages[item.storage.key] = member_bytes(archive, item.storage.key)
    tensors = tie(found, storages, {})
    return tensors, {tensor.name: index for index, tensor in enumerate(tensors)}


def _found(name: str, entry: Mapping[str, Json], folder: str) -> Found:
    meta = json_object(entry.get("tensor_meta"))
    code = meta.get("dtype")
    dtype = SCALAR_TYPES.get(code, "opaque") if isinstance(code, int) else "opaque"
    shape, strides = _sizes(meta.get("sizes")), _sizes(meta.get("strides"))
    offset = _size(meta.get("storage_offset"))
    problem = ""
    if entry.get("use_pickle") is True:
        problem = "is stored as a pickle, which is not read"
    elif dtype == "opaque":
        problem = f"element type code {str(code)[:20]} is unknown"
    elif len(shape) != len(strides) or min((*shape, *strides, offset), default=0) < 0:
        problem = f"sizes {list(shape)} and strides {list(strides)} are unusable"
    path = entry.get("path_name")
    storage = Storage(folder + path, dtype, -1, "cpu") if isinstance(path, str) else None
    return Found(name, dtype, shape, strides, offset, storage, problem=problem, parameter=entry.get("is_param") is True)


def _sizes(value: Json) -> tuple[int, ...]:
    return tuple(_size(item) for item in json_list(value))


def _size(value: Json) -> int:
    number = value.get("as_int") if isinstance(value, dict) else value
    return number if type(number) is int else -1


def _tensor_words(tensors: list[Tensor]) -> tuple[str, str]:
    if tensors:
        return "available", ""
    return "unavailable", "This archive holds no weights that can be read in place."


def _metadata(program: Mapping[str, Json]) -> dict[str, str]:
    rows: dict[str, str] = {}
    schema = json_object(program.get("schema_version"))
    if schema:
        rows["schema_version"] = ".".join(str(schema.get(part, "?")) for part in ("major", "minor"))
    for name, bounds in json_object(program.get("range_constraints")).items():
        limits = json_object(bounds)
        rows[f"range of {_json.text(name)}"] = f"{limits.get('min_val')} to {limits.get('max_val')}"
    return rows

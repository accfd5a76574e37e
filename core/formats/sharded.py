"""safetensors split over several files by a ``*.safetensors.index.json``.

The index maps tensor names to file names beside it (Hugging Face ``save_pretrained`` layout);
map and shards are checked against each other both ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from core.capabilities import weights_only
from core.errors import BrokenFile, ModelError
from core.formats import _json
from core.formats._json import Json
from core.formats.head import Head
from core.formats.safetensors import Shard, read_shard
from core.ir import Finding, Model, Tensor
from core.limits import FILES, HEADER_BYTES, check
from core.source import Source, contained

SUFFIX = ".safetensors.index.json"


def match(head: Head) -> int:
    """3 for a JSON object that has a ``weight_map`` of safetensors files."""
    if head.source is None or head.start.lstrip()[:1] != b"{":
        return 0
    if b'"weight_map"' in head.start:
        return 3 if b".safetensors" in head.start or head.path.endswith(SUFFIX) else 0
    return 2 if head.path.endswith(SUFFIX) else 0


def read(head: Head) -> Model:
    """Open an index and the headers of its shards.

    Raises:
        BrokenFile: if the index is no JSON object with a ``weight_map``.
    """
    assert head.source is not None
    return read_index(head.source)


def read_index(index: Source) -> Model:
    """Open the shards that ``index`` names, inside its folder only.

    Raises:
        BrokenFile: if the index is no JSON object with a ``weight_map``.
    """
    check("the length of the index", index.size, HEADER_BYTES, path=index.path)
    data = _json.parse_object(b"".join(index.blocks(0, index.size)), path=index.path, what="index")
    weight_map = data.get("weight_map")
    if not isinstance(weight_map, dict):
        found = _json.kind(weight_map)
        raise BrokenFile("has the wrong type", path=index.path, field="weight_map", expected="an object", found=found)
    findings: list[Finding] = []
    named = _named_files(weight_map, findings)
    check("the number of shards", len(set(named.values())), FILES, path=index.path)
    sources, shards = [index], dict[str, Shard]()
    for file in dict.fromkeys(named.values()):
        shard = open_shard(Path(index.path).parent, file, sources, findings)
        if shard is not None:
            shards[file] = shard
    tensors = [t for shard in shards.values() for t in shard.tensors]
    findings += _cross_check(named, shards)
    findings += _total_size(data.get("metadata"), tensors)
    return Model(
        format="safetensors",
        kind="sharded safetensors",
        path=index.path,
        sources=tuple(sources),
        metadata=_metadata(data.get("metadata"), shards),
        tensors=tuple(tensors),
        graphs=(),
        capabilities=weights_only("safetensors folder"),
        findings=tuple(findings),
        details={"shards": list(shards)},
    )


def _named_files(weight_map: Mapping[str, Json], findings: list[Finding]) -> dict[str, str]:
    named: dict[str, str] = {}
    for name, file in weight_map.items():
        if isinstance(file, str):
            named[_json.text(name)] = file
        else:
            text = f"weight_map names {_json.kind(file)} as the file of {_json.text(name)[:200]!r}."
            findings.append(Finding("safetensors.index", "error", text))
    return named


def open_shard(folder: Path, file: str, sources: list[Source], findings: list[Finding]) -> Shard | None:
    """Add the file to ``sources`` and read its header; what is wrong becomes a finding."""
    shown = _json.text(file)
    try:
        source = Source(contained(folder, shown), shown)
        shard = read_shard(source, len(sources))
    except ModelError as error:
        findings.append(
            Finding("safetensors.shard", "error", f"Shard {shown[:200]!r}: {error}.", f"file {shown[:200]}")
        )
        return None
    sources.append(source)
    findings.extend(Finding(f.code, f.severity, f"Shard {shown[:200]!r}: {f.message}", f.at) for f in shard.findings)
    return shard


def _cross_check(named: Mapping[str, str], shards: Mapping[str, Shard]) -> list[Finding]:
    findings: list[Finding] = []
    held = {file: {t.name for t in shard.tensors} for file, shard in shards.items()}
    for name, file in named.items():
        if file in held and name not in held[file]:
            text = f"weight_map says {name[:200]!r} is in {_json.text(file)[:200]!r}, which does not hold it."
            findings.append(Finding("safetensors.index", "error", text, f"tensor {name[:200]}"))
    for file, names in held.items():
        for name in sorted(names):
            if named.get(name) != file:
                says = f"names {_json.text(named[name])[:200]!r} instead" if name in named else "does not name it"
                text = f"{_json.text(file)[:200]!r} holds {name[:200]!r}, weight_map {says}."
                findings.append(Finding("safetensors.index", "warning", text, f"tensor {name[:200]}"))
    return findings[:200]


def _total_size(metadata: Json, tensors: list[Tensor]) -> list[Finding]:
    said = metadata.get("total_size") if isinstance(metadata, dict) else None
    found = sum(t.nbytes for t in tensors if t.data is not None)
    if not isinstance(said, int | float) or int(said) == found:
        return []
    text = f"metadata.total_size says {int(said)} bytes, the shards hold {found}."
    return [Finding("safetensors.total_size", "warning", text)]


def _metadata(index: Json, shards: Mapping[str, Shard]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for shard in shards.values():
        merged.update(shard.metadata)
    if isinstance(index, dict):
        merged.update({_json.text(k): _json.text(v) if isinstance(v, str) else str(v)[:1000] for k, v in index.items()})
    return merged

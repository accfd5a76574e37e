"""A folder as ``save_pretrained`` leaves it, or a plain folder of safetensors shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from core.architecture import Architecture, from_config
from core.capabilities import weights_only
from core.errors import ModelError
from core.formats import _json
from core.formats._json import Json
from core.formats.head import Head
from core.formats.sharded import SUFFIX, open_shard, read_index
from core.ir import Finding, Model, Tensor
from core.limits import MIB
from core.source import Source, contained

SIDE_FILES: Final = (
    "config.json", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json",
    "preprocessor_config.json", "adapter_config.json",
)  # fmt: skip
TOKENIZER_FILES: Final = (
    "tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "merges.txt", "vocab.txt",
    "sentencepiece.bpe.model",
)  # fmt: skip
CONFIG_BYTES: Final = 16 * MIB


def match(head: Head) -> int:
    """3 for a folder with safetensors files."""
    if head.source is not None:
        return 0
    return 3 if any(name.endswith((".safetensors", SUFFIX)) for name in head.names) else 0


def read(head: Head) -> Model:
    """Open all shards of a folder as one artifact; reads headers and configuration files.

    Raises:
        BrokenFile: if an index is there and unusable.
    """
    index = _index_name(head.names)
    model = read_index(Source(contained(head.folder, index), index)) if index else _plain_shards(head)
    findings: list[Finding] = []
    configs = {name: _config(head, name, findings) for name in SIDE_FILES if name in head.names}
    main = configs.get("config.json", {})
    architecture = from_config(main, "config.json") if main else None
    details = dict(model.details)
    details["tokenizer_files"] = [name for name in TOKENIZER_FILES if name in head.names]
    if architecture is not None:
        details["architecture"] = architecture.to_json()
    metadata = dict(model.metadata)
    for name, config in configs.items():
        prefix = name.removesuffix(".json")
        metadata.update({f"{prefix}.{key}": _shown(value) for key, value in config.items()})
    return replace(
        model,
        format="huggingface",
        kind="Hugging Face folder" if configs else "folder of safetensors",
        path=head.path,
        metadata=metadata,
        details=details,
        producer=_producer(main),
        findings=(*model.findings, *findings, *_against_tensors(architecture, model.tensors)),
    )


def _index_name(names: tuple[str, ...]) -> str:
    found = [name for name in names if name.endswith(SUFFIX)]
    return "model" + SUFFIX if "model" + SUFFIX in found else next(iter(found), "")


def _plain_shards(head: Head) -> Model:
    sources: list[Source] = []
    tensors: list[Tensor] = []
    metadata: dict[str, str] = {}
    findings: list[Finding] = []
    for name in head.names:
        if not name.endswith(".safetensors"):
            continue
        shard = open_shard(head.folder, name, sources, findings)
        if shard is None:
            continue
        tensors.extend(shard.tensors)
        metadata.update(shard.metadata)
    return Model(
        format="safetensors",
        kind="folder of safetensors",
        path=head.path,
        sources=tuple(sources),
        metadata=metadata,
        tensors=tuple(tensors),
        graphs=(),
        capabilities=weights_only("safetensors folder"),
        findings=tuple(findings),
        details={"shards": [source.name for source in sources]},
    )


def _config(head: Head, name: str, findings: list[Finding]) -> Mapping[str, Json]:
    """One side file as an object; empty with a finding where it is unusable."""
    try:
        source = Source(contained(head.folder, name), name)
        return _json.parse_object(source.read(0, min(source.size, CONFIG_BYTES)), path=source.path, what=name)
    except ModelError as error:
        findings.append(Finding("huggingface.config", "warning", f"{name} cannot be used: {error}.", f"file {name}"))
        return {}


def _shown(value: Json) -> str:
    if isinstance(value, str):
        return _json.text(value)[:100_000]
    return _json.text(str(value))[:2_000]


def _producer(config: Mapping[str, Json]) -> str:
    version = config.get("transformers_version")
    return f"transformers {_json.text(version)[:40]}" if isinstance(version, str) else ""


def _against_tensors(architecture: Architecture | None, tensors: tuple[Tensor, ...]) -> list[Finding]:
    """Whether the vocabulary of the configuration is a size that some matrix has."""
    if architecture is None or not architecture.vocabulary:
        return []
    matrices = [t for t in tensors if len(t.shape) == 2 and ("embed" in t.name.lower() or "wte" in t.name)]
    if not matrices or any(architecture.vocabulary in t.shape for t in matrices):
        return []
    sizes = ", ".join(str(t.shape) for t in matrices[:3])
    text = f"config.json says a vocabulary of {architecture.vocabulary}, the embeddings have shapes {sizes}."
    return [Finding("huggingface.vocabulary", "warning", text)]

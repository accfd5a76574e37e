"""What a transformer's configuration says, and the memory that follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final, cast

Aliases = tuple[str, ...]

_LAYERS: Final[Aliases] = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "num_decoder_layers")
_HEADS: Final[Aliases] = ("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads")
_KV_HEADS: Final[Aliases] = ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_head_kv", "multi_query_group_num")
_HIDDEN: Final[Aliases] = ("hidden_size", "n_embd", "d_model", "dim", "hidden_dim")
_FEED_FORWARD: Final[Aliases] = (
    "intermediate_size",
    "n_inner",
    "ffn_dim",
    "d_ff",
    "ffn_hidden_size",
    "decoder_ffn_dim",
)
_CONTEXT: Final[Aliases] = (
    "max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "seq_length", "max_seq_len",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Architecture:
    """Sizes of a transformer as its configuration states them; ``None`` where it does not.

    Attributes:
        name: class or architecture name, e.g. ``LlamaForCausalLM`` or ``llama``.
        model_type: family, e.g. ``gpt2``.
        kv_heads: key and value heads (fewer than ``heads`` with grouped queries).
        head_dim: elements of one head.
        context: longest sequence in tokens.
        source: the file or metadata the figures come from.
    """

    name: str
    model_type: str
    source: str
    layers: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    hidden: int | None = None
    feed_forward: int | None = None
    vocabulary: int | None = None
    context: int | None = None
    experts: int | None = None
    tied_embeddings: bool | None = None
    dtype: str = ""

    def kv_cache_bytes(self, batch: int, length: int, bits: int = 16) -> int | None:
        """Bytes of the key/value cache of ``batch`` sequences of ``length`` tokens.

        Formula: 2 (key and value) * layers * batch * length * kv_heads * head_dim * bits / 8.
        ``None`` where the configuration does not say enough.
        """
        if self.layers is None or self.kv_heads is None or self.head_dim is None:
            return None
        return 2 * self.layers * batch * length * self.kv_heads * self.head_dim * bits // 8

    def to_json(self) -> dict[str, object]:
        """Plain values by field name."""
        return asdict(self)


def from_config(config: Mapping[str, object], source: str) -> Architecture | None:
    """Read a Hugging Face ``config.json``.

    Nested ``text_config`` or ``llm_config`` objects (vision-language models) are looked at where
    the outer object has no layer count. ``None`` where it describes no transformer at all.
    """
    inner = config
    if _first(config, _LAYERS) is None:
        for key in ("text_config", "llm_config", "language_config", "decoder"):
            nested = config.get(key)
            if isinstance(nested, dict) and _first(cast(Mapping[str, object], nested), _LAYERS) is not None:
                inner = cast(Mapping[str, object], nested)
                break
    names = config.get("architectures")
    first = cast(list[object], names)[0] if isinstance(names, list) and names else ""
    name = first if isinstance(first, str) else ""
    model_type = config.get("model_type")
    if not name and not isinstance(model_type, str):
        return None
    heads, hidden = _first(inner, _HEADS), _first(inner, _HIDDEN)
    kv_heads = 1 if inner.get("multi_query") is True else _first(inner, _KV_HEADS) or heads
    head_dim = _first(inner, ("head_dim", "d_kv", "kv_channels")) or (hidden // heads if hidden and heads else None)
    tied = inner.get("tie_word_embeddings", config.get("tie_word_embeddings"))
    dtype = inner.get("torch_dtype") or inner.get("dtype") or config.get("torch_dtype") or config.get("dtype")
    return Architecture(
        name=name,
        model_type=model_type if isinstance(model_type, str) else "",
        source=source,
        layers=_first(inner, _LAYERS),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        hidden=hidden,
        feed_forward=_first(inner, _FEED_FORWARD),
        vocabulary=_first(inner, ("vocab_size", "n_vocab", "padded_vocab_size")),
        context=_first(inner, _CONTEXT),
        experts=_first(inner, ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")),
        tied_embeddings=tied if isinstance(tied, bool) else None,
        dtype=dtype if isinstance(dtype, str) else "",
    )


def _first(config: Mapping[str, object], names: Aliases) -> int | None:
    for name in names:
        value = config.get(name)
        if type(value) is int and 0 < value < 1 << 48:
            return value
    return None

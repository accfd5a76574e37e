"""A graph for a GGUF transformer, put together from its architecture name and tensor names.

GGUF stores no operators. The names follow gguf.md ("Standardized tensor names"): ``token_embd``,
``blk.N.attn_q``, ``blk.N.ffn_up``, ``output``. Only what a tensor proves is drawn: every weight
belongs to one node, activations and residuals connect them in the order all these models share.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.architecture import Architecture
from core.graph_builder import GraphBuilder
from core.ir import Attribute, Dim, Graph, Tensor


def reconstruct(tensors: Sequence[Tensor], architecture: Architecture | None) -> Graph | None:
    """The graph, ``None`` where there is no token embedding or no block to build it from."""
    by_name = {tensor.name: index for index, tensor in reversed(list(enumerate(tensors)))}
    layers = _layers(by_name)
    if "token_embd.weight" not in by_name or not layers:
        return None
    maker = _Maker(tensors, by_name)
    maker.tokens(architecture)
    for layer in layers:
        maker.block(layer)
    maker.head()
    name = architecture.model_type if architecture else "transformer"
    maker.builder.doc = (
        f"Reconstructed: GGUF stores no operators. Evidence: general.architecture is {name!r}; "
        f"tensors blk.{layers[0]} to blk.{layers[-1]} hold attention and feed-forward weights; "
        "each weight is drawn at the node its name belongs to."
    )
    return maker.builder.finish()


def _layers(by_name: dict[str, int]) -> list[int]:
    numbers = {name.split(".", 2)[1] for name in by_name if name.startswith("blk.") and name.count(".") >= 2}
    return sorted(int(n) for n in numbers if n.isdigit() and len(n) < 7)


class _Maker:
    """Adds nodes one after the other; ``self.at`` is the value that comes next."""

    def __init__(self, tensors: Sequence[Tensor], by_name: dict[str, int]) -> None:
        self.builder = GraphBuilder(0, "reconstructed", "reconstructed from tensor names")
        self._tensors, self._by_name = tensors, by_name
        self.at = -1

    def has(self, name: str) -> bool:
        return f"{name}.weight" in self._by_name

    def tokens(self, architecture: Architecture | None) -> None:
        ids = self.builder.value("tokens")
        self.builder.set_type(ids, "int32", ("batch", "sequence"))
        self.builder.inputs.append(ids)
        width = architecture.hidden if architecture else None
        self.at = self._node("Embedding", "token_embd", [ids], "", shape=("batch", "sequence", width))
        if self.has("position_embd"):
            self.at = self._node("PositionEmbedding", "position_embd", [self.at], "")
        if self.has("token_embd_norm"):
            self.at = self._norm("token_embd_norm", self.at, "")

    def block(self, layer: int) -> None:
        prefix = f"blk.{layer}"
        start = self.at
        inner = self._norms(prefix, ("attn_norm",), start)
        attended = self._attention(prefix, inner)
        if attended is not None:
            attended = self._norms(prefix, ("post_attention_norm", "attn_post_norm"), attended)
        # Without a norm of its own the feed-forward part runs beside attention on the same input.
        parallel = self.has(f"{prefix}.attn_norm") and not self.has(f"{prefix}.ffn_norm")
        if attended is not None and not parallel:
            start = self._plain("Add", f"{prefix}.attn_residual", [start, attended], prefix)
            start = self._norms(prefix, ("attn_output_norm",), start)
        fed = self._feed_forward(prefix, inner if parallel else self._norms(prefix, ("ffn_norm",), start))
        if fed is not None:
            fed = self._norms(prefix, ("post_ffw_norm", "ffn_post_norm"), fed)
            parts = [start, fed] if not parallel or attended is None else [start, attended, fed]
            start = self._plain("Add", f"{prefix}.ffn_residual", parts, prefix)
        elif parallel and attended is not None:
            start = self._plain("Add", f"{prefix}.attn_residual", [start, attended], prefix)
        self.at = self._others(prefix, self._norms(prefix, ("layer_output_norm",), start))

    def _norms(self, prefix: str, names: tuple[str, ...], at: int) -> int:
        """The norms of that block that have a weight, one after the other."""
        for name in names:
            if self.has(f"{prefix}.{name}"):
                at = self._norm(f"{prefix}.{name}", at, prefix)
        return at

    def head(self) -> None:
        if self.has("output_norm"):
            self.at = self._norm("output_norm", self.at, "")
        if self.has("output"):
            self.at = self._node("MatMul", "output", [self.at], "", shape=("batch", "sequence", None))
        else:
            name = self.builder.value("logits")
            weight = self._weight("token_embd.weight")
            attributes = [Attribute("note", "no output.weight: the token embedding is used again")]
            self.builder.node("MatMul", "output (tied)", [self.at, weight], [name], attributes=attributes)
            self.at = name
        self.builder.outputs.append(self.at)

    def _attention(self, prefix: str, at: int) -> int | None:
        scope = f"{prefix}.attention"
        if self.has(f"{prefix}.attn_qkv"):
            parts = [self._node("MatMul", f"{prefix}.attn_qkv", [at], scope)]
        else:
            names = [f"{prefix}.attn_{letter}" for letter in ("q", "k", "v") if self.has(f"{prefix}.attn_{letter}")]
            parts = [self._head_norm(name, self._node("MatMul", name, [at], scope), scope) for name in names]
        if not parts:
            return None
        mixed = self._plain("Attention", f"{prefix}.attention", parts, scope)
        output = f"{prefix}.attn_output"
        return self._node("MatMul", output, [mixed], scope) if self.has(output) else mixed

    def _head_norm(self, name: str, at: int, scope: str) -> int:
        """``attn_q_norm`` and ``attn_k_norm`` of models that normalise queries and keys."""
        return self._norm(f"{name}_norm", at, scope) if self.has(f"{name}_norm") else at

    def _feed_forward(self, prefix: str, at: int) -> int | None:
        scope = f"{prefix}.feed_forward"
        experts = "_exps" if self.has(f"{prefix}.ffn_up_exps") or self.has(f"{prefix}.ffn_down_exps") else ""
        up, gate, down = (f"{prefix}.ffn_{word}{experts}" for word in ("up", "gate", "down"))
        if not self.has(up) and not self.has(down):
            return None
        at = self._plain("Route", f"{prefix}.router", [at], scope, f"{prefix}.ffn_gate_inp") if experts else at
        wide = self._node("MatMul", up, [at], scope) if self.has(up) else at
        if self.has(gate):
            gated = self._plain("Activation", f"{gate}.activation", [self._node("MatMul", gate, [at], scope)], scope)
            wide = self._plain("Mul", f"{prefix}.ffn_gated", [gated, wide], scope)
        else:
            wide = self._plain("Activation", f"{prefix}.ffn_activation", [wide], scope)
        return self._node("MatMul", down, [wide], scope) if self.has(down) else wide

    def _others(self, prefix: str, at: int) -> int:
        """One box for weights of the block that none of the rules above placed (state space, adapters, ...)."""
        placed = self.builder.value_ids
        rest = [n for n in self._by_name if n.startswith(prefix + ".") and n not in placed and n.endswith(".weight")]
        if not rest:
            return at
        output = self.builder.value(f"{prefix}.other")
        inputs = [at, *(self._weight(name) for name in rest)]
        note = Attribute("note", "weights whose place in the block their names do not say")
        self.builder.node("Other", f"{prefix}.other", inputs, [output], scope=prefix, attributes=[note])
        return output

    def _norm(self, name: str, at: int, scope: str) -> int:
        kind = "LayerNorm" if f"{name}.bias" in self._by_name else "RMSNorm"
        return self._node(kind, name, [at], scope)

    def _node(
        self, op_type: str, name: str, inputs: list[int], scope: str, *, shape: tuple[Dim, ...] | None = None
    ) -> int:
        """A node that takes the weight (and bias) of ``name``."""
        weights = [self._weight(full) for full in (f"{name}.weight", f"{name}.bias") if full in self._by_name]
        output = self.builder.value(f"{name} output")
        if shape is not None:
            self.builder.set_type(output, None, shape)
        self.builder.node(op_type, name, [*inputs, *weights], [output], scope=scope)
        return output

    def _plain(self, op_type: str, name: str, inputs: list[int], scope: str, weight: str = "") -> int:
        taken = [self._weight(f"{weight}.weight")] if weight and self.has(weight) else []
        output = self.builder.value(f"{name} output")
        self.builder.node(op_type, name, [*inputs, *taken], [output], scope=scope)
        return output

    def _weight(self, name: str) -> int:
        value, index = self.builder.value(name), self._by_name[name]
        tensor = self._tensors[index]
        self.builder.initializer(value, index)
        self.builder.set_type(value, tensor.dtype if tensor.dtype != "opaque" else None, tensor.shape)
        return value

"""Network graphs as exporters write them, with meaningless names: what is found rests on the wiring."""

from __future__ import annotations

from collections.abc import Sequence

from core.graph_builder import GraphBuilder
from core.ir import Graph, Model, Tensor


class Net:
    """Adds operators one by one; weights are stored tensors of the given shapes."""

    def __init__(self) -> None:
        self.b = GraphBuilder(0, "main", "net")
        self.tensors: list[Tensor] = []
        self.scope = ""
        self._names = 0

    def _value(self) -> int:
        self._names += 1
        return self.b.value(f"k{self._names * 7919 % 104729:x}")

    def input(self, *shape: int) -> int:
        value = self._value()
        self.b.inputs.append(value)
        self.b.set_type(value, "float32", shape)
        return value

    def w(self, *shape: int) -> int:
        value = self._value()
        self.b.initializer(value, len(self.tensors))
        self.tensors.append(Tensor(self.b.value_names[value], "float32", shape, None, role="initializer", graph=0))
        return value

    def op(self, kind: str, *inputs: int) -> int:
        [made] = self.ops(kind, inputs, 1)
        return made

    def ops(self, kind: str, inputs: Sequence[int], count: int) -> list[int]:
        outputs = [self._value() for _ in range(count)]
        node = self.b.node(kind, f"q{self._names * 31 % 65521:x}", inputs, outputs)
        if self.scope:
            self.b.set_scope(node, self.scope)
        return outputs

    def linear(self, x: int, a: int, b: int) -> int:
        return self.op("Add", self.op("MatMul", x, self.w(a, b)), self.w(b))

    def layer_norm(self, x: int, width: int) -> int:
        centred = self.op("Sub", x, self.op("ReduceMean", x))
        spread = self.op("Sqrt", self.op("Add", self.op("ReduceMean", self.op("Pow", centred, self.w())), self.w()))
        return self.op("Add", self.op("Mul", self.op("Div", centred, spread), self.w(width)), self.w(width))

    def rms_norm(self, x: int, width: int) -> int:
        root = self.op("Sqrt", self.op("Add", self.op("ReduceMean", self.op("Pow", x, self.w())), self.w()))
        return self.op("Mul", self.w(width), self.op("Mul", x, self.op("Div", self.w(), root)))

    def gelu(self, x: int) -> int:
        erf = self.op("Add", self.op("Erf", self.op("Div", x, self.w())), self.w())
        return self.op("Mul", self.op("Mul", x, erf), self.w())

    def done(self, *outputs: int) -> Model:
        self.b.outputs.extend(outputs)
        graph: Graph = self.b.finish()
        return Model("onnx", "ONNX model", "net.onnx", (), {}, tuple(self.tensors), (graph,), {})


def bert(layers: int = 6, width: int = 64, scoped: bool = False) -> Model:
    """MiniLM as the tracing exporter writes it: heads split by a shape computed while running."""
    n = Net()
    ids, mask = n.input(1, 16), n.input(1, 16)
    bias = n.op("Mul", n.op("Sub", n.w(), n.op("Cast", n.op("Unsqueeze", mask, n.w(1)))), n.w())
    places = n.op(
        "Gather", n.w(512, width), n.op("Slice", n.w(1, 512), n.w(1), n.op("Unsqueeze", n.op("Shape", ids), n.w(1)))
    )
    words = n.op("Add", n.op("Gather", n.w(1000, width), ids), places)
    x = n.layer_norm(words, width)
    for i in range(layers):
        n.scope = f"encoder/layer.{i}" if scoped else ""

        def heads(value: int, at: int = x) -> int:
            shape = n.op("Concat", n.op("Gather", n.op("Shape", at), n.w()), n.w(1), n.w(1), n.w(1))
            return n.op("Transpose", n.op("Reshape", value, shape))

        q, k, v = (heads(n.linear(x, width, width)) for _ in range(3))
        scores = n.op("Add", n.op("Div", n.op("MatMul", q, n.op("Transpose", k)), n.w()), bias)
        mixed = n.op("MatMul", n.op("Softmax", scores), v)
        out = n.linear(n.op("Reshape", n.op("Transpose", mixed), n.w(3)), width, width)
        x = n.layer_norm(n.op("Add", out, x), width)
        x = n.layer_norm(n.op("Add", n.linear(n.gelu(n.linear(x, width, 4 * width)), 4 * width, width), x), width)
    n.scope = ""
    return n.done(x)


def vit(layers: int = 4, width: int = 32) -> Model:
    """A vision transformer: patches by a convolution, one projection for queries, keys and values."""
    n = Net()
    x = n.op("Conv", n.input(1, 3, 32, 32), n.w(width, 3, 8, 8), n.w(width))
    x = n.op("Transpose", n.op("Reshape", x, n.w(3)))
    x = n.op("Add", n.op("Concat", n.w(1, 1, width), x), n.w(1, 17, width))
    for _ in range(layers):
        qkv = n.op("Transpose", n.op("Reshape", n.linear(n.layer_norm(x, width), width, 3 * width), n.w(5)))
        q, k, v = (n.op("Gather", qkv, n.w()) for _ in range(3))
        weights = n.op("Softmax", n.op("MatMul", n.op("Mul", q, n.w()), n.op("Transpose", k)))
        mixed = n.op("Reshape", n.op("Transpose", n.op("MatMul", weights, v)), n.w(3))
        x = n.op("Add", x, n.linear(mixed, width, width))
        x = n.op("Add", x, n.linear(n.gelu(n.linear(n.layer_norm(x, width), width, 4 * width)), 4 * width, width))
    first = n.op("Gather", n.layer_norm(x, width), n.w())
    return n.done(n.op("Gemm", first, n.w(10, width), n.w(10)))


def llama(layers: int = 3, width: int = 32) -> Model:
    """RMSNorm, rotary embedding, a key and value cache, gated feed-forward."""
    n = Net()
    ids, cos, sin = n.input(1, 8), n.input(1, 8, 8), n.input(1, 8, 8)
    x = n.op("Gather", n.w(1000, width), ids)
    made: list[int] = []
    for _ in range(layers):
        h = n.rms_norm(x, width)
        q, k, v = (n.op("Transpose", n.op("Reshape", n.op("MatMul", h, n.w(width, width)), n.w(4))) for _ in range(3))

        def turned(value: int) -> int:
            half = n.op(
                "Concat", n.op("Neg", n.op("Slice", value, n.w(1), n.w(1))), n.op("Slice", value, n.w(1), n.w(1))
            )
            return n.op("Add", n.op("Mul", value, cos), n.op("Mul", half, sin))

        q, k = turned(q), n.op("Concat", n.input(1, 4, 8, 8), turned(k))
        v = n.op("Concat", n.input(1, 4, 8, 8), v)
        made += [k, v]
        weights = n.op("Softmax", n.op("Mul", n.op("MatMul", q, n.op("Transpose", k)), n.w()))
        mixed = n.op("Reshape", n.op("Transpose", n.op("MatMul", weights, v)), n.w(3))
        x = n.op("Add", x, n.op("MatMul", mixed, n.w(width, width)))
        h = n.rms_norm(x, width)
        gate, up = n.op("MatMul", h, n.w(width, 96)), n.op("MatMul", h, n.w(width, 96))
        bent = n.op("Mul", n.op("Mul", gate, n.op("Sigmoid", gate)), up)
        x = n.op("Add", x, n.op("MatMul", bent, n.w(96, width)))
    return n.done(n.op("MatMul", n.rms_norm(x, width), n.w(width, 1000)), *made)


def resnet(blocks: int = 4, width: int = 16) -> Model:
    """Convolutions with batch normalisation; the first block has a convolution on its skip."""
    n = Net()

    def conv(x: int, size: int = 3) -> int:
        made = n.op("Conv", x, n.w(width, width, size, size))
        return n.op("BatchNormalization", made, *(n.w(width) for _ in range(4)))

    x = n.op("MaxPool", n.op("Relu", conv(n.input(1, 16, 32, 32), 7)))
    for i in range(blocks):
        skip = conv(x, 1) if i == 0 else x
        x = n.op("Relu", n.op("Add", conv(n.op("Relu", conv(x))), skip))
    x = n.op("Flatten", n.op("GlobalAveragePool", x))
    return n.done(n.op("Softmax", n.op("Gemm", x, n.w(10, width), n.w(10))))


def fused(layers: int = 2, width: int = 32) -> Model:
    """One operator for attention, as onnxruntime's optimiser leaves it."""
    n = Net()
    x = n.input(1, 8, width)
    for _ in range(layers):
        q, k, v = (n.linear(x, width, width) for _ in range(3))
        x = n.op("SkipLayerNormalization", x, n.linear(n.op("MultiHeadAttention", q, k, v), width, width), n.w(width))
        grown = n.op("BiasGelu", n.op("MatMul", x, n.w(width, 64)), n.w(64))
        x = n.op("SkipLayerNormalization", n.linear(grown, 64, width), x, n.w(width))
    return n.done(x)

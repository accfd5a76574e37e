"""Make the bundled sample model: ``python tools/make_sample.py [app/sample/sample.onnx]``.

A small vision transformer with a convolutional stem that looks for edges: 32 x 32 grey image in, ten class
probabilities out. Its weights come from a fixed seed and simple formulas, rounded to 1/4096, so that every machine
writes the same bytes. It is not trained; it is there to be looked at.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

SEED = 20
IMAGE, FILTERS, WIDTH, HEADS, BLOCKS, CLASSES = 32, 12, 64, 4, 3, 10
SIDE = IMAGE // 4
TOKENS, HEAD = SIDE * SIDE, WIDTH // HEADS
TARGET = Path(__file__).parents[1] / "app" / "sample" / "sample.onnx"

Shape = Sequence[int | str]
Array = NDArray[np.float64]


class Maker:
    """Collects nodes, weights and declared shapes; the batch size stays a symbol."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []
        self.values: list[ValueInfoProto] = []
        # The legacy generator's stream is frozen by numpy's compatibility policy.
        self.random = np.random.RandomState(SEED)

    def weight(self, name: str, array: Array) -> str:
        rounded = (np.round(np.asarray(array) * 4096) / 4096).astype(np.float32)
        self.weights.append(numpy_helper.from_array(rounded, name))
        return name

    def sizes(self, name: str, sizes: Sequence[int]) -> str:
        self.weights.append(numpy_helper.from_array(np.array(sizes, np.int64), name))
        return name

    def normal(self, name: str, *shape: int, scale: float) -> str:
        return self.weight(name, self.random.standard_normal(shape) * scale)

    def op(self, op_type: str, scope: str, inputs: Sequence[str], shape: Shape, **attributes: object) -> str:
        """Add one operator; its name and its output's say where in the model it stands."""
        base = f"/{scope}/{op_type}"
        taken = sum(node.name == base or node.name.startswith(base + "_") for node in self.nodes)
        name = f"{base}_{taken}" if taken else base
        output = f"{name}_output"
        self.nodes.append(helper.make_node(op_type, list(inputs), [output], name, **attributes))
        self.values.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", *shape]))
        return output


def edge_filters() -> Array:
    """Twelve 5 x 5 Gabor filters: six directions, even and odd, two of three wavelengths each."""
    y, x = np.mgrid[-2:3, -2:3].astype(np.float64)
    filters = []
    for number in range(FILTERS):
        angle, phase, wavelength = np.pi * (number % 6) / 6, np.pi / 2 * (number // 6), 2.5 + number % 3
        along = x * np.cos(angle) + y * np.sin(angle)
        wave = np.exp(-(x * x + y * y) / 5) * np.cos(2 * np.pi * along / wavelength + phase)
        filters.append(wave - wave.mean())
    return np.array(filters)[:, None]


def positions() -> Array:
    """Sines and cosines of row and column, a quarter of the width each (Vaswani et al. 2017, section 3.5)."""
    quarter = WIDTH // 4
    rate = 1.0 / 30.0 ** (np.arange(quarter) / quarter)
    row, column = (axis.reshape(-1, 1) * rate for axis in np.mgrid[0:SIDE, 0:SIDE])
    return np.concatenate([np.sin(row), np.cos(row), np.sin(column), np.cos(column)], axis=1)[None] * 0.5


def stem(make: Maker, image: str) -> str:
    half = IMAGE // 2
    weight = make.weight("stem.conv1.weight", edge_filters())
    x = make.op("Conv", "stem/conv1", [image, weight], [FILTERS, half, half], kernel_shape=[5, 5], pads=[2] * 4,
                strides=[2, 2])  # fmt: skip
    parts = {
        "weight": make.random.uniform(0.8, 1.6, FILTERS),
        "bias": make.random.standard_normal(FILTERS) * 0.1,
        "running_mean": make.random.standard_normal(FILTERS) * 0.1,
        "running_var": make.random.uniform(0.4, 1.5, FILTERS),
    }
    names = [make.weight(f"stem.bn1.{part}", array) for part, array in parts.items()]
    x = make.op("BatchNormalization", "stem/bn1", [x, *names], [FILTERS, half, half], epsilon=1e-5)
    x = make.op("Relu", "stem/act1", [x], [FILTERS, half, half])
    kernel = make.normal("stem.conv2.weight", WIDTH, FILTERS, 3, 3, scale=(FILTERS * 9) ** -0.5)
    bias = make.weight("stem.conv2.bias", np.zeros(WIDTH))
    x = make.op("Conv", "stem/conv2", [x, kernel, bias], [WIDTH, SIDE, SIDE], kernel_shape=[3, 3], pads=[1] * 4,
                strides=[2, 2])  # fmt: skip
    x = make.op("Reshape", "patches", [x, make.sizes("patches.flat", [0, WIDTH, TOKENS])], [WIDTH, TOKENS])
    x = make.op("Transpose", "patches", [x], [TOKENS, WIDTH], perm=[0, 2, 1])
    return make.op("Add", "position", [x, make.weight("position.table", positions())], [TOKENS, WIDTH])


def norm(make: Maker, scope: str, x: str) -> str:
    path = scope.replace("/", ".")
    scale = make.weight(f"{path}.weight", 1 + make.random.standard_normal(WIDTH) * 0.05)
    bias = make.weight(f"{path}.bias", make.random.standard_normal(WIDTH) * 0.02)
    return make.op("LayerNormalization", scope, [x, scale, bias], [TOKENS, WIDTH], axis=-1, epsilon=1e-5)


def linear(make: Maker, scope: str, x: str, shape: Shape, rows: int, columns: int) -> str:
    path = scope.replace("/", ".")
    kernel = make.normal(f"{path}.weight", rows, columns, scale=rows**-0.5)
    bias = make.normal(f"{path}.bias", columns, scale=0.02)
    return make.op("Add", scope, [make.op("MatMul", scope, [x, kernel], shape), bias], shape)


def attention(make: Maker, scope: str, x: str) -> str:
    split, merge = make.sizes(f"{scope}.split", [0, TOKENS, HEADS, HEAD]), [0, TOKENS, WIDTH]
    parts: list[str] = []
    for part, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        y = linear(make, f"{scope}/{part}", x, [TOKENS, WIDTH], WIDTH, WIDTH)
        y = make.op("Reshape", f"{scope}/{part}", [y, split], [TOKENS, HEADS, HEAD])
        shape = [HEADS, HEAD, TOKENS] if part == "k" else [HEADS, TOKENS, HEAD]
        parts.append(make.op("Transpose", f"{scope}/{part}", [y], shape, perm=order))
    query, key, value = parts
    scores = make.op("MatMul", scope, [query, key], [HEADS, TOKENS, TOKENS])
    scale = make.weight(f"{scope}.scale", np.array(HEAD**-0.5))
    scores = make.op("Mul", scope, [scores, scale], [HEADS, TOKENS, TOKENS])
    weights = make.op("Softmax", scope, [scores], [HEADS, TOKENS, TOKENS], axis=-1)
    y = make.op("MatMul", scope, [weights, value], [HEADS, TOKENS, HEAD])
    y = make.op("Transpose", scope, [y], [TOKENS, HEADS, HEAD], perm=[0, 2, 1, 3])
    y = make.op("Reshape", scope, [y, make.sizes(f"{scope}.merge", merge)], [TOKENS, WIDTH])
    return linear(make, f"{scope}/proj", y, [TOKENS, WIDTH], WIDTH, WIDTH)


def gelu(make: Maker, scope: str, x: str, shape: Shape) -> str:
    """x * (1 + erf(x / sqrt 2)) / 2, spelled out as exporters do below opset 20."""
    y = make.op("Div", scope, [x, make.weight(f"{scope}.sqrt2", np.array(2**0.5))], shape)
    y = make.op("Erf", scope, [y], shape)
    y = make.op("Add", scope, [y, make.weight(f"{scope}.one", np.array(1.0))], shape)
    y = make.op("Mul", scope, [x, y], shape)
    return make.op("Mul", scope, [y, make.weight(f"{scope}.half", np.array(0.5))], shape)


def block(make: Maker, number: int, x: str) -> str:
    scope, hidden = f"blocks.{number}", [TOKENS, 2 * WIDTH]
    y = attention(make, f"{scope}/attn", norm(make, f"{scope}/norm1", x))
    x = make.op("Add", scope, [x, y], [TOKENS, WIDTH])
    y = linear(make, f"{scope}/mlp/fc1", norm(make, f"{scope}/norm2", x), hidden, WIDTH, 2 * WIDTH)
    y = gelu(make, f"{scope}/mlp/act", y, hidden)
    y = linear(make, f"{scope}/mlp/fc2", y, [TOKENS, WIDTH], 2 * WIDTH, WIDTH)
    return make.op("Add", scope, [x, y], [TOKENS, WIDTH])


def build() -> ModelProto:
    """The whole model."""
    make = Maker()
    x = stem(make, "image")
    for number in range(BLOCKS):
        x = block(make, number, x)
    x = make.op("ReduceMean", "pool", [norm(make, "norm", x)], [WIDTH], axes=[1], keepdims=0)
    x = linear(make, "head", x, [CLASSES], WIDTH, CLASSES)
    make.nodes.append(helper.make_node("Softmax", [x], ["probabilities"], "/head/Softmax", axis=-1))
    graph = helper.make_graph(
        make.nodes,
        "edge-vit",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, IMAGE, IMAGE])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", CLASSES])],
        make.weights,
        "Edge filters, three attention blocks, ten classes. Untrained.",
        make.values,
    )
    model = helper.make_model_gen_version(
        graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="modelglass sample", producer_version="1"
    )
    model.ir_version = 8
    helper.set_model_props(
        model, {"license": "Apache-2.0", "purpose": "something to look at", "seed": str(SEED), "trained": "no"}
    )
    return model


def main() -> None:
    """Write the model to the path given, else to its place in the application."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    target.write_bytes(build().SerializeToString(deterministic=True))
    print(f"{target}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()

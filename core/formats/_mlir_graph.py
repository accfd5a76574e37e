"""Graphs from parsed MLIR operations: functions, regions as subgraphs, constants as tensors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from core.dtypes import DTYPES
from core.formats._mlir_parse import Operation, Region
from core.formats._mlir_text import Payload
from core.formats._mlir_types import parse_type
from core.graph_builder import GraphBuilder
from core.ir import Attribute, ByteRange, Finding, Graph, GraphKind, GraphRef, Tensor
from core.limits import ELEMENTS

_PAYLOAD: Final = re.compile(r'"@payload:(\d+)"')
_DENSE: Final = re.compile(r"<(?P<value>.*)>\s*:\s*(?P<type>[^:]*)\Z", re.DOTALL)
_TERMINATORS: Final = {"return", "func.return", "stablehlo.return", "mhlo.return", "scf.yield", "linalg.yield", "yield"}
_FUNCTIONS: Final = {"func.func", "func"}
_MODULES: Final = {"module", "builtin.module"}


@dataclass(slots=True)
class _Scope:
    """One graph under construction; ``names`` are the SSA names seen in it."""

    builder: GraphBuilder
    outer: _Scope | None
    names: dict[str, int] = field(default_factory=dict[str, int])


class MlirGraphs:
    """Builds a graph a function and a subgraph a region.

    Attributes:
        graphs: ``main`` (or the first function) as the main graph, others as functions.
        tensors: constants, in order.
    """

    def __init__(self, operations: Sequence[Operation], payloads: Sequence[Payload]) -> None:
        self._payloads = payloads
        self._done: dict[int, Graph] = {}
        self._count = 0
        self.tensors: list[Tensor] = []
        self.findings: list[Finding] = []
        functions = list(_functions(operations))
        main = next((f for f in functions if f.symbol == "@main"), next(iter(functions), None))
        loose = [o for o in operations if o.name not in _MODULES and o.name not in _FUNCTIONS]
        if main is None and loose:
            main = Operation("func.func", [], regions=[Region(loose)])
            functions = [main]
        for function in sorted(functions, key=lambda f: f is not main):
            self._function(function, "main" if function is main else "function")
        self.graphs = tuple(self._done[index] for index in sorted(self._done))

    def _new(self, kind: GraphKind, name: str, outer: _Scope | None, parent: tuple[int, int, str] | None) -> _Scope:
        builder = GraphBuilder(self._count, kind, name, parent)
        self._count += 1
        return _Scope(builder, outer)

    def _function(self, operation: Operation, kind: GraphKind) -> None:
        scope = self._new(kind, operation.symbol.removeprefix("@").strip('"'), None, None)
        region = operation.regions[0] if operation.regions else Region()
        for name, text in [*operation.arguments, *region.arguments]:
            scope.builder.inputs.append(self._define(scope, name, text))
        self._region(scope, region, operation.result_types)

    def _region(self, scope: _Scope, region: Region, result_types: Sequence[str] = ()) -> int:
        for operation in region.operations:
            if operation.name in _TERMINATORS:
                outputs = [self._use(scope, name) for name in operation.operands]
                scope.builder.outputs = outputs
                for value, text in zip(outputs, result_types or operation.operand_types, strict=False):
                    self._type(scope.builder, value, text)
            else:
                self._operation(scope, operation)
        self._done[scope.builder.index] = scope.builder.finish()
        self.findings += scope.builder.findings
        return scope.builder.index

    def _operation(self, scope: _Scope, operation: Operation) -> None:
        if operation.name.endswith(".constant") and self._constant(scope, operation):
            return
        builder = scope.builder
        inputs = [self._use(scope, name) for name in operation.operands]
        node = builder.node_count
        children = [
            self._child(scope, operation, region, place, node) for place, region in enumerate(operation.regions)
        ]
        types = _result_types(operation)
        outputs = [
            self._define(scope, name, types[i] if i < len(types) else "") for i, name in enumerate(operation.results)
        ]
        domain, _, op_type = operation.name.rpartition(".")
        attributes = [Attribute(name, text[:10_000]) for name, text in operation.attributes.items()]
        if operation.symbol:
            attributes.append(Attribute("callee", operation.symbol))
        if operation.location:
            attributes.append(Attribute("location", operation.location[:1000]))
        attributes += [Attribute(f"region {place}", GraphRef(child)) for place, child in enumerate(children)]
        label = operation.results[0].split("#")[0] if operation.results else operation.name
        builder.node(
            op_type, label, inputs, outputs, domain=domain, scope=_scope_of(operation.location), attributes=attributes
        )
        for child in children:
            builder.subgraph(node, child)

    def _child(self, scope: _Scope, operation: Operation, region: Region, place: int, node: int) -> int:
        inner = self._new("subgraph", "", scope, (scope.builder.index, node, f"region {place}"))
        for (name, _), text in zip(operation.bound, operation.operand_types, strict=False):
            inner.builder.inputs.append(self._define(inner, name, text))
        for name, text in region.arguments:
            inner.builder.inputs.append(self._define(inner, name, text))
        return self._region(inner, region)

    def _define(self, scope: _Scope, name: str, text: str) -> int:
        builder = scope.builder
        label = name.removeprefix("%")
        value = builder.fresh_value(label) if label in builder.value_ids else builder.value(label)
        scope.names[name] = value
        self._type(builder, value, text)
        return value

    def _type(self, builder: GraphBuilder, value: int, text: str) -> None:
        if not text:
            return
        dtype, shape, _ = parse_type(text)
        if dtype is None and shape is None:
            builder.set_type_text(value, text[:1000])
        else:
            builder.set_type(value, dtype, shape)

    def _use(self, scope: _Scope, name: str) -> int:
        """The value of that SSA name, captured from an enclosing region where it is defined there."""
        if name in scope.names:
            return scope.names[name]
        label = name.removeprefix("%")
        if scope.outer is not None and _defined(scope.outer, name):
            outer = self._use(scope.outer, name)
            builder = scope.builder
            value = builder.fresh_value(label) if label in builder.value_ids else builder.value(label)
            builder.capture(value, scope.outer.builder.index, outer)
        else:
            value = scope.builder.value(label)
        scope.names[name] = value
        return value

    # --- constants

    def _constant(self, scope: _Scope, operation: Operation) -> bool:
        """Make a tensor of a ``dense`` constant; whether it was one."""
        text = operation.attributes.get("dense") or operation.attributes.get("value", "").removeprefix("dense")
        found = _DENSE.match(text.strip())
        if found is None or not operation.results:
            return False
        dtype, shape, quantization = parse_type(found["type"])
        if dtype is None or shape is None or any(not isinstance(size, int) for size in shape):
            return False
        sizes = tuple(size for size in shape if isinstance(size, int))
        name = operation.results[0]
        value = self._define(scope, name, found["type"])
        data, encoding, problem = self._dense(found["value"], dtype, sizes)
        index = len(self.tensors)
        self.tensors.append(
            Tensor(
                f"{scope.builder.name or 'main'}/{name.removeprefix('%')}", dtype, sizes, data, encoding=encoding,
                quantization=quantization, role="constant", graph=scope.builder.index, problem=problem,
            )
        )  # fmt: skip
        scope.builder.initializer(value, index)
        return True

    def _dense(self, text: str, dtype: str, shape: tuple[int, ...]) -> tuple[ByteRange | bytes | None, str, str]:
        """Where the elements are, how they are written, and why they cannot be read."""
        elements = 1
        for size in shape:
            elements *= size
        if elements > ELEMENTS:
            return None, "plain", f"shape {list(shape)} has too many elements"
        cut = _PAYLOAD.fullmatch(text)
        if cut:
            payload = self._payloads[int(cut[1])]
            if payload.hexadecimal:
                return ByteRange(0, payload.start, payload.stop), "mlir.hex", _hex_problem(payload, dtype, elements)
            return ByteRange(0, payload.start, payload.stop), "mlir.text", ""
        if text.startswith('"0x'):
            digits = text.strip('"')[2:]
            width = DTYPES[dtype].bits // 8
            splat = len(digits) == 2 * width and elements != 1
            return digits.encode(), "mlir.splat" if splat else "mlir.hex", ""
        return text.encode(), "mlir.text" if text.startswith("[") else "mlir.splat", ""


def _hex_problem(payload: Payload, dtype: str, elements: int) -> str:
    needs, has = 2 * DTYPES[dtype].nbytes(elements), payload.stop - payload.start
    return "" if needs == has else f"its shape needs {needs} hexadecimal digits, the file has {has}"


def _functions(operations: Sequence[Operation]) -> list[Operation]:
    found: list[Operation] = []
    pending = list(reversed(operations))
    while pending:
        operation = pending.pop()
        if operation.name in _FUNCTIONS:
            found.append(operation)
        elif operation.name in _MODULES:
            pending.extend(reversed([o for region in operation.regions for o in region.operations]))
    return found


def _defined(scope: _Scope | None, name: str) -> bool:
    while scope is not None:
        if name in scope.names:
            return True
        scope = scope.outer
    return False


def _result_types(operation: Operation) -> list[str]:
    """Types of the results: those after the arrow, else the ones given for all operands."""
    if operation.result_types:
        return operation.result_types
    types, count = operation.operand_types, len(operation.results)
    if len(types) == 1 and count > 1:
        return types * count
    return types[-count:] if count else []


def _scope_of(location: str) -> str:
    """``"jit(f)/block/add"(#loc3)`` gives ``jit(f)/block``; other locations give nothing."""
    found = re.match(r'"([^"]{1,500})"', location)
    return found[1].rpartition("/")[0] if found and "/" in found[1] and ":" not in found[1] else ""

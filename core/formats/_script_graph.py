"""A graph from TorchScript code: methods of submodules are inlined, their path is the scope.

The archive's code is a small subset of Python (torch/csrc/jit/serialization/python_print.cpp):
assignments, calls, ``if``, ``for``, ``while`` and ``return``. Each call of an operator becomes a
node; ``if`` and loops become nodes with subgraphs whose outer values are captures.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, cast

from core.formats._pickle_objects import Call, as_dict
from core.formats._script_code import ScriptCode, dotted
from core.graph_builder import GraphBuilder
from core.ir import Attribute, AttributeValue, Finding, Graph, GraphRef
from core.limits import check

NODES: Final = 500_000
DEPTH: Final = 60
"""Nesting of inlined calls and control flow."""

_PASS_THROUGH: Final = {"annotate", "unchecked_cast", "ops.prim.unchecked_cast"}
_IGNORED: Final = {"ops.prim.RaiseException", "uninitialized"}


_ONE: Final[dict[str, Callable[[object], bool]]] = {"__not__": operator.not_, "bool": bool}
_TWO: Final[dict[str, Callable[[object, object], bool]]] = {
    "eq": operator.eq, "ne": operator.ne, "__is__": operator.is_, "__isnot__": operator.is_not,
}  # fmt: skip


class Symbol(str):
    """A dotted name that is no constant, such as a function or a type."""

    __slots__ = ()


class _Unknown:
    pass


UNKNOWN: Final = _Unknown()
"""What a computation on constants, or code that was not understood, gives."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A value of the graph."""

    value: int
    graph: int


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """A module object of the pickle and the path that leads to it."""

    call: Call
    path: str

    @property
    def class_name(self) -> str:
        """Qualified TorchScript class."""
        return self.call.path


Item = Any
"""What an expression stands for: a Ref, a Module, a constant, or a list or tuple of these."""


@dataclass(slots=True)
class Frame:
    """One method being inlined."""

    names: dict[str, Item]
    scope: str
    returned: Item = None
    depth: int = 0


@dataclass(slots=True)
class _Open:
    """A graph under construction and the outer values it has captured so far."""

    builder: GraphBuilder
    outer: _Open | None
    captures: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])


class ScriptGraphs:
    """Walks ``forward`` of the root module.

    Attributes:
        graphs: the main graph first, then the bodies of ``if`` and loops.
        findings: code that was not understood, each named once.
    """

    def __init__(
        self, code: ScriptCode, root: Call, tensors: dict[str, int], constants: dict[str, int], path: str
    ) -> None:
        self._code, self._tensors, self._constants, self._path = code, tensors, constants, path
        self.findings: list[Finding] = []
        self._said: set[str] = set()
        self._done: dict[int, Graph] = {}
        self._graphs = self._nodes = 0
        self._open = self._new_graph("main", None)
        self._forward(Module(root, ""))
        self._close()
        self.graphs = tuple(self._done[index] for index in sorted(self._done))

    # --- graphs

    def _new_graph(self, kind: Any, parent: tuple[int, int, str] | None) -> _Open:
        builder = GraphBuilder(self._graphs, kind, "", parent)
        self._graphs += 1
        self._open = _Open(builder, getattr(self, "_open", None) if parent else None)
        return self._open

    def _close(self) -> int:
        opened = self._open
        self._done[opened.builder.index] = opened.builder.finish()
        if opened.outer is not None:
            self._open = opened.outer
        return opened.builder.index

    def _local(self, ref: Ref) -> int:
        """The value's id in the open graph, captured from the enclosing ones where it is theirs."""
        return self._capture(self._open, ref)

    def _capture(self, opened: _Open, ref: Ref) -> int:
        builder = opened.builder
        if ref.graph == builder.index or opened.outer is None:
            return ref.value
        key = (ref.graph, ref.value)
        if key not in opened.captures:
            outer = self._capture(opened.outer, ref)
            name = opened.outer.builder.value_names[outer]
            local = opened.captures[key] = (
                builder.value(name) if name not in builder.value_ids else builder.fresh_value(name)
            )
            builder.capture(local, opened.outer.builder.index, outer)
        return opened.captures[key]

    def _forward(self, root: Module) -> None:
        found = self._code.find_class(root.class_name)
        method = found.methods.get("forward") if found else None
        if method is None:
            self._say(f"class {root.class_name!r} has no forward method in the archive")
            return
        builder = self._open.builder
        names: dict[str, Item] = {}
        for place, argument in enumerate(method.args.args):
            if place == 0:
                names[argument.arg] = root
                continue
            value = builder.value(argument.arg)
            builder.inputs.append(value)
            word = ast.unparse(argument.annotation) if argument.annotation else "Tensor"
            if word == "Tensor":
                builder.set_type(value, None, None)
            else:
                builder.set_type_text(value, word[:200])
            names[argument.arg] = Ref(value, builder.index)
        frame = Frame(names, "")
        self._body(method.body, frame)
        builder.outputs.extend(self._local(ref) for ref in _refs(frame.returned))

    # --- statements

    def _body(self, body: list[ast.stmt], frame: Frame) -> None:
        for statement in body:
            match statement:
                case ast.Assign(targets=[target], value=value):
                    self._assign(target, self._expression(value, frame, target), frame)
                case ast.AnnAssign(target=target, value=value) if value is not None:
                    self._assign(target, self._expression(value, frame, target), frame)
                case ast.Expr(value=value):
                    self._expression(value, frame, None)
                case ast.Return(value=value):
                    frame.returned = self._expression(value, frame, None) if value is not None else None
                case ast.If():
                    self._if(statement, frame)
                case ast.For() | ast.While():
                    self._loop(statement, frame)
                case ast.Pass() | ast.Assert() | ast.Raise():
                    pass
                case _:
                    self._say(f"the statement {type(statement).__name__}")

    def _assign(self, target: ast.expr, item: Item, frame: Frame) -> None:
        match target:
            case ast.Name(id=name):
                frame.names[name] = item
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                items = _parts(item)
                if len(items) != len(parts):
                    items = self._unpack(item, parts, frame)
                for part, value in zip(parts, items, strict=True):
                    self._assign(part, value, frame)
            case _:
                pass  # self.x = ... changes module state, which has no place in the graph

    def _unpack(self, item: Item, parts: list[ast.expr], frame: Frame) -> list[Item]:
        names = [part.id if isinstance(part, ast.Name) else f"item{i}" for i, part in enumerate(parts)]
        return self._emit("prim", "TupleUnpack", [item], [], names, frame)

    def _if(self, statement: ast.If, frame: Frame) -> None:
        test = self._expression(statement.test, frame, None)
        if isinstance(test, bool):  # decided by the module's own attributes, such as ``training``
            self._body(statement.body if test else statement.orelse, frame)
            return
        names = sorted(_assigned(statement.body) & _assigned(statement.orelse))
        node = self._open.builder.node_count
        parent = (self._open.builder.index, node)
        branches = [
            self._branch(body, frame, names, (*parent, word))
            for word, body in (("then", statement.body), ("else", statement.orelse))
        ]
        if statement.body and any(isinstance(s, ast.Return) for s in [*statement.body, *statement.orelse]):
            names = [*names, "returned"]
        attributes = [Attribute(word, GraphRef(graph)) for word, graph in zip(("then", "else"), branches, strict=True)]
        outputs = self._emit("prim", "If", [test], attributes, names, frame, subgraphs=branches)
        for name, output in zip(names, outputs, strict=True):
            if name == "returned":
                frame.returned = output
            else:
                frame.names[name] = output

    def _branch(self, body: list[ast.stmt], frame: Frame, names: list[str], parent: tuple[int, int, str]) -> int:
        self._new_graph("subgraph", parent)
        inner = Frame(dict(frame.names), frame.scope, depth=frame.depth + 1)
        self._check_depth(inner)
        self._body(body, inner)
        results = [inner.names.get(name) for name in names]
        if inner.returned is not None:
            results.append(inner.returned)
        self._open.builder.outputs.extend(self._local(ref) for item in results for ref in _refs(item))
        return self._close()

    def _loop(self, statement: ast.For | ast.While, frame: Frame) -> None:
        test = statement.iter if isinstance(statement, ast.For) else statement.test
        bound = self._expression(test, frame, None)
        names = sorted(name for name in _assigned(statement.body) if name in frame.names)
        builder = self._open.builder
        opened = self._new_graph("subgraph", (builder.index, builder.node_count, "body"))
        inner = Frame(dict(frame.names), frame.scope, depth=frame.depth + 1)
        self._check_depth(inner)
        carried = [name for name in names if _refs(frame.names[name])]
        counter = (
            [statement.target.id] if isinstance(statement, ast.For) and isinstance(statement.target, ast.Name) else []
        )
        for name in [*counter, *carried]:
            value = opened.builder.value(name)
            opened.builder.inputs.append(value)
            inner.names[name] = Ref(value, opened.builder.index)
        self._body(statement.body, inner)
        opened.builder.outputs.extend(self._local(ref) for name in carried for ref in _refs(inner.names.get(name)))
        body = self._close()
        inputs = [bound, *(frame.names[name] for name in carried)]
        outputs = self._emit(
            "prim", "Loop", inputs, [Attribute("body", GraphRef(body))], carried, frame, subgraphs=[body]
        )
        frame.names.update(zip(carried, outputs, strict=True))

    # --- expressions

    def _expression(self, node: ast.expr, frame: Frame, target: ast.expr | None) -> Item:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return frame.names.get(name, Symbol(name))
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return [self._expression(part, frame, None) for part in parts]
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.Attribute():
                return self._attribute(node, frame)
            case ast.Call():
                return self._call(node, frame, target)
            case ast.Subscript(value=value, slice=index):
                items = [self._expression(value, frame, None), self._expression(index, frame, None)]
                return self._operator("__getitem__", items, frame, target)
            case ast.BinOp(left=left, op=op, right=right):
                items = [self._expression(left, frame, None), self._expression(right, frame, None)]
                return self._operator(type(op).__name__.lower(), items, frame, target)
            case ast.UnaryOp(op=op, operand=operand):
                return self._operator(
                    type(op).__name__.lower(), [self._expression(operand, frame, None)], frame, target
                )
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                items = [self._expression(left, frame, None), self._expression(right, frame, None)]
                return self._operator(type(op).__name__.lower(), items, frame, target)
            case ast.BoolOp(op=op, values=values):
                items = [self._expression(value, frame, None) for value in values]
                return self._operator(type(op).__name__.lower(), items, frame, target)
            case ast.Dict(keys=keys, values=values):
                return [self._expression(part, frame, None) for part in [*keys, *values] if part is not None]
            case ast.IfExp(test=test, body=body, orelse=orelse):
                items = [self._expression(part, frame, None) for part in (test, body, orelse)]
                return self._operator("select", items, frame, target)
            case _:
                self._say(f"the expression {type(node).__name__}")
                return UNKNOWN

    def _operator(self, name: str, items: list[Item], frame: Frame, target: ast.expr | None) -> Item:
        if not any(_refs(item) for item in items):
            return UNKNOWN  # arithmetic of constants and module attributes
        return self._emit("prim", name, items, [], _target_names(target), frame)[0]

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Item:
        name = dotted(node)
        if name.startswith("CONSTANTS."):
            return self._stored(f"constant {node.attr}", self._constants.get(node.attr))
        owner = self._expression(node.value, frame, None)
        return self._member(owner, node.attr) if isinstance(owner, Module) else Symbol(name)

    def _member(self, owner: Module, name: str) -> Item:
        state = as_dict(owner.call.state) or {}
        path = f"{owner.path}.{name}" if owner.path else name
        item = state.get(name)
        if isinstance(item, Call) and item.path.startswith("__torch__."):
            return Module(item, path)
        if path in self._tensors:
            return self._stored(path, self._tensors[path])
        return item if name in state and isinstance(item, str | int | float | bool | None) else Symbol(path)

    def _stored(self, name: str, tensor: int | None) -> Item:
        """The value that stands for a stored tensor, one in the main graph."""
        opened = self._open
        while opened.outer is not None:
            opened = opened.outer
        value = opened.builder.value(name)
        if tensor is not None:
            opened.builder.initializer(value, tensor)
        return Ref(value, opened.builder.index)

    def _call(self, node: ast.Call, frame: Frame, target: ast.expr | None) -> Item:
        name = dotted(node.func)
        bound = frame.names.get(name)
        if isinstance(bound, str) and bound.startswith("__torch__."):
            name = bound  # _0 = __torch__.torch.nn.functional.relu
        if name == "getattr" and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
            owner = self._expression(node.args[0], frame, None)
            return self._member(owner, str(node.args[1].value)) if isinstance(owner, Module) else UNKNOWN
        if name in _PASS_THROUGH and len(node.args) == 2:
            return self._expression(node.args[1], frame, target)
        if name in _IGNORED:
            return UNKNOWN
        arguments = [self._expression(argument, frame, None) for argument in node.args]
        if isinstance(node.func, ast.Attribute):
            owner = self._expression(node.func.value, frame, None) if not name or "." not in name else None
            if owner is None and isinstance(node.func.value, ast.Name):
                owner = frame.names.get(node.func.value.id)
            if isinstance(owner, Module):
                return self._method(owner, node.func.attr, arguments, frame)
        if name.startswith("__torch__."):
            return self._function(name, arguments, frame)
        keywords = [(k.arg or "arg", self._expression(k.value, frame, None)) for k in node.keywords]
        domain, op_type = _operator_name(name)
        decided = UNKNOWN if keywords else _decide(op_type, arguments)
        if isinstance(decided, bool):
            return decided
        if domain == "prim" and not any(_refs(item) for item in arguments):
            return UNKNOWN  # int(3), range(4), torch.device("cpu")
        attributes = [Attribute(key, _plain(value)) for key, value in keywords if not _refs(value)]
        attributes += [Attribute(f"argument {i}", _plain(v)) for i, v in enumerate(arguments) if not _refs(v)]
        arguments += [value for _, value in keywords if _refs(value)]
        return _single(self._emit(domain, op_type, arguments, attributes, _target_names(target), frame), target)

    def _method(self, owner: Module, name: str, arguments: list[Item], frame: Frame) -> Item:
        found = self._code.find_class(owner.class_name)
        method = found.methods.get(name) if found else None
        if method is None:
            self._say(f"method {owner.class_name}.{name}")
            return UNKNOWN
        return self._inline(method, [owner, *arguments], owner.path, frame)

    def _function(self, name: str, arguments: list[Item], frame: Frame) -> Item:
        function = self._code.find_function(name)
        if function is None:
            self._say(f"function {name}")
            return UNKNOWN
        return self._inline(function, arguments, frame.scope, frame)

    def _inline(self, method: ast.FunctionDef, arguments: list[Item], scope: str, frame: Frame) -> Item:
        names = {argument.arg: item for argument, item in zip(method.args.args, arguments, strict=False)}
        inner = Frame(names, scope, depth=frame.depth + 1)
        self._check_depth(inner)
        self._body(method.body, inner)
        return inner.returned

    def _emit(
        self, domain: str, op_type: str, items: list[Item], attributes: list[Attribute], names: list[str],
        frame: Frame, *, subgraphs: list[int] | None = None,
    ) -> list[Item]:  # fmt: skip
        """Add a node whose inputs are all values in ``items``; its outputs are called ``names``."""
        self._nodes += 1
        check("the number of nodes", self._nodes, NODES, path=self._path)
        builder = self._open.builder
        inputs = [self._local(ref) for item in items for ref in _refs(item)]
        prefix = f"{frame.scope}/" if frame.scope else ""
        outputs: list[int] = []
        for name in names:
            full = prefix + name
            outputs.append(builder.fresh_value(full) if full in builder.value_ids else builder.value(full))
        node = builder.node(
            op_type, builder.value_names[outputs[0]] if outputs else "", inputs, outputs,
            domain=domain, scope=frame.scope, attributes=attributes,
        )  # fmt: skip
        for graph in subgraphs or ():
            builder.subgraph(node, graph)
        return [Ref(output, builder.index) for output in outputs]

    def _check_depth(self, frame: Frame) -> None:
        check("the nesting of calls and control flow", frame.depth, DEPTH, path=self._path)

    def _say(self, what: str) -> None:
        if what not in self._said and len(self._said) < 50:
            self._said.add(what)
            text = f"The graph leaves out {what[:200]}: it was not understood."
            self.findings.append(Finding("torchscript.partial", "warning", text))


def _decide(op_type: str, arguments: list[Item]) -> Item:
    """The answer of a comparison of constants, which decides branches that are never taken."""
    if any(isinstance(a, Symbol) or not isinstance(a, str | int | float | bool | None) for a in arguments):
        return UNKNOWN
    if op_type in _ONE and len(arguments) == 1:
        return _ONE[op_type](arguments[0])
    if op_type in _TWO and len(arguments) == 2:
        return _TWO[op_type](arguments[0], arguments[1])
    return UNKNOWN


def _parts(item: Item) -> list[Item]:
    return list(cast(list[Item], item)) if isinstance(item, list | tuple) else []


def _refs(item: Item) -> list[Ref]:
    """Values inside an item, in order."""
    if isinstance(item, Ref):
        return [item]
    return [ref for part in _parts(item) for ref in _refs(part)]


def _plain(item: Item) -> AttributeValue:
    if isinstance(item, list | tuple):
        return tuple(_plain(part) for part in _parts(item))
    if isinstance(item, Module):
        return item.path
    return item if isinstance(item, int | float | str | bool | bytes | None) else None


def _single(outputs: list[Item], target: ast.expr | None) -> Item:
    return outputs if isinstance(target, ast.Tuple | ast.List) else outputs[0]


def _target_names(target: ast.expr | None) -> list[str]:
    match target:
        case ast.Name(id=name):
            return [name]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [part.id if isinstance(part, ast.Name) else f"item{i}" for i, part in enumerate(parts)]
        case _:
            return ["value"]


def _assigned(body: list[ast.stmt]) -> set[str]:
    """Names that statements assign, those inside nested control flow included."""
    return {
        node.id for statement in body for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }  # fmt: skip


def _operator_name(name: str) -> tuple[str, str]:
    """Domain and operator of a called name: ``torch.add`` is aten, ``ops.quantized.linear`` quantized."""
    parts = name.split(".")
    if parts[0] == "torch" and len(parts) > 1:
        return "aten", ".".join(parts[1:])
    if parts[0] == "ops" and len(parts) > 2:
        return parts[1], ".".join(parts[2:])
    return "prim", name or "call"

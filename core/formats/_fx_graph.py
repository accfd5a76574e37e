"""The graph of a pickled FX GraphModule, recovered from its generated ``forward`` by ``ast``.

The code is what ``torch.fx.Graph.python_code`` writes: one assignment a node, values set to
``None`` after their last use. It is parsed as text and never compiled or run.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Final, TypeGuard

from core.errors import BrokenFile
from core.formats._pickle_objects import Call, as_dict
from core.formats._torch_objects import child_table, module_state
from core.graph_builder import GraphBuilder
from core.ir import Attribute, AttributeValue, Finding, Graph
from core.limits import NODES, check

REDUCERS: Final = (
    "torch.fx.graph_module.reduce_graph_module",
    "torch.fx.graph_module.reduce_deploy_graph_module",
    "torch.fx.graph_module.reduce_package_graph_module",
)
CODE_BYTES: Final = 16 << 20
_SYMBOLS: Final[dict[type, str]] = {
    ast.Mult: "mul", ast.Div: "truediv", ast.MatMult: "matmul", ast.FloorDiv: "floordiv", ast.USub: "neg",
    ast.Not: "not",
}  # fmt: skip
"""Operators by the names of Python's ``operator`` module, where they differ from the syntax tree's."""


def is_graph_module(value: object) -> TypeGuard[Call]:
    """Whether a walked pickle describes an FX GraphModule."""
    return isinstance(value, Call) and value.path in REDUCERS


def recover(value: Call, tensors: Mapping[str, int], path: str) -> tuple[Graph, list[Finding]]:
    """The graph of ``forward`` and findings for statements that were not understood.

    Args:
        tensors: indexes of the model's tensors by dotted path.

    Raises:
        BrokenFile: if there is no code, or it is no Python.
    """
    body = next((table for table in map(as_dict, value.arguments) if table is not None), None) or {}
    code = body.get("_code")
    if not isinstance(code, str) or len(code) > CODE_BYTES:
        raise BrokenFile("is missing or too long", path=path, field="_code")
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BrokenFile(f"is no Python: {type(error).__name__}", path=path, field="_code") from None
    function = next((item for item in tree.body if isinstance(item, ast.FunctionDef)), None)
    if function is None:
        raise BrokenFile("defines no function", path=path, field="_code")
    maker = _Maker(body, tensors, path)
    maker.run(function)
    return maker.builder.finish(), maker.findings


class _Maker:
    def __init__(self, body: dict[Any, Any], tensors: Mapping[str, int], path: str) -> None:
        self.builder = GraphBuilder(0, "main", "forward")
        self.findings: list[Finding] = []
        self._body, self._tensors, self._path = body, tensors, path
        self._names: dict[str, int] = {}

    def run(self, function: ast.FunctionDef) -> None:
        for argument in function.args.args[1:]:
            value = self._names[argument.arg] = self.builder.value(argument.arg)
            self.builder.inputs.append(value)
        for statement in function.body:
            match statement:
                case ast.Assign(value=ast.Constant(value=None)):
                    pass  # the value is freed
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    self._names[name] = self._value(name, value)
                case ast.Return(value=ast.expr() as value):
                    self.builder.outputs.extend(self._taken(value))
                case ast.Expr(value=ast.Call() as call):
                    self._value(f"call_{self.builder.node_count}", call)
                case _:
                    what = ast.unparse(statement)[:120]
                    text = f"The graph leaves out {what!r}: it was not understood."
                    self.findings.append(Finding("fx.partial", "warning", text))

    def _value(self, name: str, node: ast.expr) -> int:
        """The value that an expression gives, through a node where it is an operation."""
        path = _path(node)
        if path.startswith("self."):
            return self._stored(path.removeprefix("self."))
        if isinstance(node, ast.Name) and node.id in self._names:
            return self._names[node.id]
        check("the number of nodes", self.builder.node_count, NODES, path=self._path)
        domain, op_type, scope = self._operation(node)
        inputs = self._taken(node)
        if scope:
            inputs += [self._stored(p) for p in self._tensors if p.rpartition(".")[0] == scope]
        output = self.builder.fresh_value(name) if name in self.builder.value_ids else self.builder.value(name)
        attributes = _attributes(node) if isinstance(node, ast.Call) else []
        self.builder.node(op_type, name, inputs, [output], domain=domain, scope=scope, attributes=attributes)
        return output

    def _operation(self, node: ast.expr) -> tuple[str, str, str]:
        """Domain, operator and module path of an expression."""
        match node:
            case ast.Call(func=function):
                name = _path(function)
                if name.startswith("self."):
                    scope = name.removeprefix("self.")
                    return "torch.nn", self._class_of(scope), scope
                if isinstance(function, ast.Attribute) and (not name or name.split(".")[0] in self._names):
                    return "Tensor", function.attr, ""
                domain, _, operator = name.rpartition(".")
                return domain, operator or "call", ""
            case ast.Subscript():
                return "operator", "getitem", ""
            case ast.BinOp(op=operator) | ast.UnaryOp(op=operator):
                return "operator", _SYMBOLS.get(type(operator), type(operator).__name__.lower()), ""
            case ast.Compare(ops=[operator, *_]):
                return "operator", type(operator).__name__.lower(), ""
            case _:
                return "operator", type(node).__name__.lower(), ""

    def _class_of(self, scope: str) -> str:
        state: dict[Any, Any] | None = self._body
        item: Any = None
        for part in scope.split("."):
            item = child_table((state or {}).get("_modules")).get(part)
            state = module_state(item)
        return item.path.rpartition(".")[2] or "Module" if isinstance(item, Call) else "Module"

    def _stored(self, path: str) -> int:
        value = self.builder.value(path)
        if path in self._tensors:
            self.builder.initializer(value, self._tensors[path])
        return value

    def _taken(self, node: ast.expr) -> list[int]:
        """Values that an expression takes, in order of appearance."""
        found: list[int] = []
        pending: list[ast.AST] = [node]
        while pending:
            item = pending.pop()
            if isinstance(item, ast.Name) and item.id in self._names:
                found.append(self._names[item.id])
            pending.extend(reversed(list(ast.iter_child_nodes(item))))
        return found


def _path(node: ast.expr) -> str:
    """``self.stem.0`` of ``self.stem`` and ``getattr(..., "0")`` in any nesting, empty for anything else."""
    match node:
        case ast.Attribute(value=owner, attr=name):
            before = _path(owner)
            return f"{before}.{name}" if before else ""
        case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str() as name)]):
            before = _path(owner)
            return f"{before}.{name}" if before else ""
        case ast.Name(id=name):
            return name
        case _:
            return ""


def _attributes(call: ast.Call) -> list[Attribute]:
    rows = [Attribute(f"argument {i}", v) for i, a in enumerate(call.args) if (v := _constant(a)) is not None]
    rows += [Attribute(k.arg, v) for k in call.keywords if k.arg and (v := _constant(k.value)) is not None]
    return rows


def _constant(node: ast.expr) -> AttributeValue:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(node, ast.List | ast.Tuple):
        return ast.unparse(node)[:1000]
    return value if isinstance(value, int | float | str | bool) else None

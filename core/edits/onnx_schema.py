"""What the operators' schemas allow: attributes and their types, how many inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import onnx
from onnx import defs, helper

from core.edits.kinds import AttributeInput
from core.errors import UsageError

_KINDS: Final[Mapping[Any, tuple[int, str]]] = {
    defs.OpSchema.AttrType.FLOAT: (onnx.AttributeProto.FLOAT, "a number"),
    defs.OpSchema.AttrType.INT: (onnx.AttributeProto.INT, "a whole number"),
    defs.OpSchema.AttrType.STRING: (onnx.AttributeProto.STRING, "a text"),
    defs.OpSchema.AttrType.FLOATS: (onnx.AttributeProto.FLOATS, "a list of numbers"),
    defs.OpSchema.AttrType.INTS: (onnx.AttributeProto.INTS, "a list of whole numbers"),
    defs.OpSchema.AttrType.STRINGS: (onnx.AttributeProto.STRINGS, "a list of texts"),
}
_STANDARD: Final = ("", "ai.onnx")


def schema_of(opsets: Mapping[str, int], op_type: str, domain: str) -> defs.OpSchema | None:
    """The schema that holds for an operator at the model's opset; ``None`` where nobody published one."""
    version = opsets.get("" if domain in _STANDARD else domain, 0)
    try:
        return defs.get_schema(op_type, version or defs.onnx_opset_version(), "" if domain in _STANDARD else domain)
    except defs.SchemaError:
        return None


def opsets_of(imports: Any) -> dict[str, int]:
    """Operator set version by domain, the standard one as the empty text."""
    return {"" if item.domain in _STANDARD else item.domain: item.version for item in imports}


def attribute(schema: defs.OpSchema | None, op_type: str, name: str, value: AttributeInput) -> onnx.AttributeProto:
    """An attribute of the type that the schema declares.

    Raises:
        UsageError: if the operator has no such attribute, or it is of another type.
    """
    if schema is None:  # nobody published one: the value says what it is
        return helper.make_attribute(name, value)
    declared = schema.attributes.get(name)
    if declared is None:
        known = ", ".join(sorted(schema.attributes)) or "none"
        raise UsageError(f"operator {op_type} has no attribute {name[:200]!r}; it has: {known}")
    kind = _KINDS.get(declared.type)
    if kind is None:
        raise UsageError(f"attribute {name} of {op_type} is a graph, tensor or type, which cannot be set like this")
    made = _made(name, kind[0], value)
    if made is None:
        raise UsageError(f"attribute {name} of {op_type} is {kind[1]}, found {str(value)[:100]!r}")
    return made


def count_problem(schema: defs.OpSchema | None, node: onnx.NodeProto) -> str:
    """Why a node has too few or too many inputs or outputs for its schema, empty where it fits."""
    if schema is None:
        return ""
    inputs, outputs = len(node.input), len(node.output)
    if not schema.min_input <= inputs <= schema.max_input:
        return f"{node.op_type} takes {_range(schema.min_input, schema.max_input)} inputs, it has {inputs}"
    if not schema.min_output <= outputs <= schema.max_output:
        return f"{node.op_type} gives {_range(schema.min_output, schema.max_output)} outputs, it has {outputs}"
    missing = [name for name, item in schema.attributes.items() if item.required]
    have = {item.name for item in node.attribute}
    lacking = [name for name in missing if name not in have]
    return f"{node.op_type} needs the attribute {lacking[0]}" if lacking else ""


def _made(name: str, kind: int, value: AttributeInput) -> onnx.AttributeProto | None:
    made, single = onnx.AttributeProto(name=name, type=kind), onnx.AttributeProto  # pyright: ignore[reportArgumentType]
    listed = value if isinstance(value, list) else None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == single.FLOAT and number:
        made.f = float(value)  # pyright: ignore[reportArgumentType]
    elif kind == single.INT and isinstance(value, int):
        made.i = int(value)
    elif kind == single.STRING and isinstance(value, str):
        made.s = value.encode()
    elif kind == single.FLOATS and listed is not None and all(isinstance(item, int | float) for item in listed):
        made.floats.extend(float(item) for item in listed)
    elif kind == single.INTS and listed is not None and all(isinstance(item, int) for item in listed):
        made.ints.extend(listed)  # pyright: ignore[reportArgumentType]
    elif kind == single.STRINGS and listed is not None and all(isinstance(item, str) for item in listed):
        made.strings.extend(item.encode() for item in listed if isinstance(item, str))
    else:
        return None
    return made


def _range(least: int, most: int) -> str:
    if most >= 2**31 - 1:
        return f"{least} or more"
    return str(least) if least == most else f"{least} to {most}"

"""What can be edited: a closed union of frozen dataclasses, and their form in a script.

A kind is the class name in snake case. Nodes are said by name, or by id (``g0.n12``) where a name
is missing or not unique; values by name within graph ``graph`` (0 is the main graph).
"""

from __future__ import annotations

import json
import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final, cast, get_args, get_origin, get_type_hints

from core.errors import UsageError

AttributeInput = int | float | str | list[int] | list[float] | list[str]
"""What an attribute can be set to."""


@dataclass(frozen=True, slots=True)
class RenameNode:
    """Give a node another name."""

    node: str
    to: str


@dataclass(frozen=True, slots=True)
class RenameValue:
    """Give a value, model input, output or initializer another name; all references follow."""

    value: str
    to: str
    graph: int = 0


@dataclass(frozen=True, slots=True)
class RenameGraph:
    """Give a graph another name."""

    to: str
    graph: int = 0


@dataclass(frozen=True, slots=True)
class SetAttribute:
    """Set or add an attribute of a node, of the type that the operator's schema declares."""

    node: str
    name: str
    value: AttributeInput


@dataclass(frozen=True, slots=True)
class RemoveAttribute:
    """Remove an attribute of a node, so that the operator's default holds."""

    node: str
    name: str


@dataclass(frozen=True, slots=True)
class ReplaceOperator:
    """Let a node be another operator with the same inputs and outputs."""

    node: str
    op_type: str
    domain: str = ""


@dataclass(frozen=True, slots=True)
class InsertNode:
    """Insert a unary operator between a value and what takes it.

    Attributes:
        consumers: nodes whose inputs change; all, and model outputs, where left out.
    """

    value: str
    op_type: str
    attributes: Mapping[str, AttributeInput]
    consumers: list[str] | None = None
    name: str = ""
    graph: int = 0


@dataclass(frozen=True, slots=True)
class InsertQuantization:
    """Insert QuantizeLinear and DequantizeLinear, per tensor, between a value and what takes it."""

    value: str
    scale: float
    zero_point: int
    dtype: str = "uint8"
    graph: int = 0


@dataclass(frozen=True, slots=True)
class RemoveNode:
    """Remove a node; what took its first output takes its first input instead."""

    node: str


@dataclass(frozen=True, slots=True)
class DeleteNodes:
    """Delete nodes whose outputs nothing else takes, and all that only they needed."""

    nodes: list[str]


@dataclass(frozen=True, slots=True)
class ReconnectInput:
    """Let an input of a node take another value; the empty name leaves an optional input out."""

    node: str
    index: int
    value: str


@dataclass(frozen=True, slots=True)
class ExtractSubgraph:
    """Keep only what leads from some values to others, as a model of its own."""

    inputs: list[str]
    outputs: list[str]


@dataclass(frozen=True, slots=True)
class AddOutput:
    """Make a value of the main graph a model output."""

    value: str


@dataclass(frozen=True, slots=True)
class RemoveOutput:
    """Make a model output an inner value; the model keeps at least one output."""

    value: str
    clean: bool = True


@dataclass(frozen=True, slots=True)
class FixDimension:
    """Give every dimension of a symbol's name one size."""

    symbol: str
    size: int


@dataclass(frozen=True, slots=True)
class SetDimension:
    """Set one dimension of a model input or output to a size or a symbol."""

    value: str
    axis: int
    to: int | str


@dataclass(frozen=True, slots=True)
class MakeBatchDynamic:
    """Let the first dimension of the model's inputs and outputs be a symbol."""

    symbol: str = "batch"


@dataclass(frozen=True, slots=True)
class SetInputType:
    """Let a model input be given as another element type; a Cast makes it what the model takes."""

    value: str
    dtype: str


@dataclass(frozen=True, slots=True)
class SetLayout:
    """Let a model input or output of rank 4 be given as NHWC or NCHW; a Transpose is inserted."""

    value: str
    layout: str


@dataclass(frozen=True, slots=True)
class FoldPreprocessing:
    """Let an image input take raw numbers: ``(x * scale - mean) / std`` a channel is in the model."""

    value: str
    mean: list[float]
    std: list[float]
    scale: float = 1.0
    dtype: str = "uint8"
    axis: int = 1


@dataclass(frozen=True, slots=True)
class ScaleTensor:
    """Multiply all elements of a stored tensor."""

    tensor: str
    factor: float
    graph: int = 0


@dataclass(frozen=True, slots=True)
class SetElements:
    """Set elements of a stored tensor that a slice such as ``0, :, 2:5`` selects to one number."""

    tensor: str
    at: str
    to: float
    graph: int = 0


@dataclass(frozen=True, slots=True)
class ReplaceTensor:
    """Replace a stored tensor's elements by those of a ``.npy`` file of the same type and shape.

    Attributes:
        sha256: of the file, so that the script makes the same revision wherever it is replayed.
    """

    tensor: str
    path: str
    sha256: str = ""
    graph: int = 0


@dataclass(frozen=True, slots=True)
class ConvertFloat:
    """Store and compute in half precision: float32 becomes ``float16`` or ``bfloat16``.

    Attributes:
        keep: nodes that stay in float32; Casts are inserted around them.
        boundary: whether model inputs and outputs stay float32.
    """

    to: str
    keep: list[str]
    boundary: bool = True


@dataclass(frozen=True, slots=True)
class SetMetadata:
    """Set or add an entry of the model's metadata."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class RemoveMetadata:
    """Remove an entry of the model's metadata."""

    key: str


@dataclass(frozen=True, slots=True)
class SetDoc:
    """Write the documentation of the model, or of a node."""

    text: str
    node: str = ""


Edit = (
    RenameNode | RenameValue | RenameGraph | SetAttribute | RemoveAttribute | ReplaceOperator | InsertNode
    | InsertQuantization | RemoveNode | DeleteNodes | ReconnectInput | ExtractSubgraph | AddOutput | RemoveOutput
    | FixDimension | SetDimension | MakeBatchDynamic | SetInputType | SetLayout | FoldPreprocessing | ScaleTensor
    | SetElements | ReplaceTensor | ConvertFloat | SetMetadata | RemoveMetadata | SetDoc
)  # fmt: skip

KINDS: Final[Mapping[str, type[Edit]]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower(): kind for kind in get_args(Edit)
}
"""Edits by the name they have in a script."""

_NAMES: Final = {kind: name for name, kind in KINDS.items()}
VERSION: Final = 1


def kind_of(edit: Edit) -> str:
    """The name of an edit's kind, such as ``rename_node``."""
    return _NAMES[type(edit)]


def to_json(edit: Edit) -> dict[str, Any]:
    """An edit as it stands in a script; fields at their defaults are left out."""
    shown: dict[str, Any] = {"edit": kind_of(edit)}
    for field in fields(edit):
        value = getattr(edit, field.name)
        if field.default is MISSING or value != field.default:
            shown[field.name] = value
    return shown


def from_json(entry: object, where: str = "the edit") -> Edit:
    """An edit out of its JSON form.

    Raises:
        UsageError: if the kind is unknown, or a field is missing, unknown or of another type.
    """
    given = dict(cast(dict[str, Any], entry)) if isinstance(entry, dict) else {}
    name = given.pop("edit", None)
    if not isinstance(name, str):
        raise UsageError(f'{where} has no "edit": expected one of {", ".join(KINDS)}')
    kind = KINDS.get(name)
    if kind is None:
        raise UsageError(f"{where}: there is no edit {name!r}; expected one of {', '.join(KINDS)}")
    hints, known = get_type_hints(kind), {field.name: field for field in fields(kind)}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise UsageError(f"{where}: {name} has no field {unknown[0]!r}; it has {', '.join(known)}")
    missing = [field.name for field in fields(kind) if field.default is MISSING and field.name not in given]
    if missing:
        raise UsageError(f"{where}: {name} lacks {missing[0]!r}")
    for key, value in given.items():
        if not _fits(value, hints[key]):
            raise UsageError(f"{where}: {key} of {name} is {json.dumps(value)[:100]}, expected {_shown(hints[key])}")
        if hints[key] is float:
            given[key] = float(value)
        elif hints[key] == list[float]:
            given[key] = [float(item) for item in value]
    made: Edit = kind(**given)
    return made


def script(edits: list[Edit]) -> str:
    """An edit script as text: JSON that ``modelglass edit`` replays."""
    return json.dumps({"version": VERSION, "edits": [to_json(edit) for edit in edits]}, indent=1, ensure_ascii=False)


def read_script(text: str) -> list[Edit]:
    """The edits of a script.

    Raises:
        UsageError: if it is no script of a known version, with the place of what is wrong.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the edit script is no JSON: {error}") from None
    fields_of = cast(dict[str, Any], document) if isinstance(document, dict) else {}
    edits = fields_of.get("edits")
    if fields_of.get("version") != VERSION or not isinstance(edits, list):
        raise UsageError(f'the edit script needs {{"version": {VERSION}, "edits": [...]}}')
    return [from_json(entry, f"edit {place}") for place, entry in enumerate(cast(list[object], edits), 1)]


def _fits(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is types.UnionType:
        return any(_fits(value, choice) for choice in get_args(hint))
    if origin is list:
        return isinstance(value, list) and all(_fits(item, get_args(hint)[0]) for item in cast(list[Any], value))
    if origin is not None:  # a mapping of attributes
        pairs = cast(dict[Any, Any], value).items() if isinstance(value, dict) else [(0, 0)]
        return all(isinstance(key, str) and _fits(item, AttributeInput) for key, item in pairs)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return value is None if hint is type(None) else isinstance(value, hint)


def _shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)

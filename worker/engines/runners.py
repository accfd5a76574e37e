"""The two things that can run a few nodes: a session of onnxruntime, and the reference evaluator of ``onnx``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import checker, external_data_helper
from onnx.reference import ReferenceEvaluator

from core.dtypes import DTYPES, dtype_of
from core.formats.onnx_types import ELEMENT_TYPES
from worker.engines import ort_sessions
from worker.engines.ort_sessions import ERRORS, Problem
from worker.engines.ort_values import elements, from_array, sequence_of, type_proto
from worker.scope import Scope

_REFERENCE_ERRORS: Final = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NotImplementedError, RuntimeError,
    TypeError, ValueError, OSError, checker.ValidationError,
)  # fmt: skip
"""What implementations of operators in Python raise when they meet what they do not expect."""

_SHARED: Final = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "int4", "uint4")
_SMALL: Final = {np.dtype(getattr(ml_dtypes, name)): name.replace("float8_", "float8") for name in _SHARED}
_WORDS: Final = 300


@dataclass(frozen=True, slots=True)
class Held:
    """A value of the runtime with its type as the runtime writes it, e.g. ``tensor(float)``."""

    value: ort.OrtValue
    type_text: str


class CannotRun(Exception):
    """Some nodes could not be run together; ``loaded`` says whether they could at least be loaded."""

    def __init__(self, problem: Problem, loaded: bool) -> None:
        super().__init__(problem.text)
        self.problem, self.loaded = problem, loaded


class Runner(Protocol):
    """Runs neighbouring nodes of one graph."""

    name: str
    one_by_one: bool

    def knows(self, domain: str, op_type: str) -> bool:
        """Whether it has an operator of that name."""
        ...

    def run(self, scope: Scope, nodes: tuple[int, ...], values: Mapping[str, Held], again: bool) -> list[Held]:
        """What the nodes make, in the order of ``scope.makes``.

        Args:
            values: by name, all that the nodes take and that is not stored.
            again: whether the same nodes will be run again with other values.

        Raises:
            CannotRun: if they cannot be run.
        """
        ...


class OrtRunner:
    """onnxruntime, with nothing optimised."""

    one_by_one = False

    def __init__(self, folder: str, threads: int) -> None:
        self.name = f"onnxruntime {ort.__version__}"
        self.options = ort_sessions.options(folder, threads)
        self._known = ort_sessions.known_operators()
        self._sessions: dict[tuple[Scope, tuple[int, ...]], ort.InferenceSession] = {}

    def knows(self, domain: str, op_type: str) -> bool:
        """Whether this build has a schema for it."""
        return ("" if domain == "ai.onnx" else domain, op_type) in self._known

    def run(self, scope: Scope, nodes: tuple[int, ...], values: Mapping[str, Held], again: bool) -> list[Held]:
        """See ``Runner``."""
        loaded = False
        try:
            session = self._session(scope, nodes, values, again)
            loaded = True
            types = {item.name: item.type for item in session.get_outputs()}
            feeds = {item.name: values[item.name].value for item in session.get_inputs()}
            names = [name for place in nodes for name in scope.makes[place]]
            found: list[ort.OrtValue] = list(session.run_with_ort_values(names, feeds))
        except (*ERRORS, MemoryError) as error:
            raise CannotRun(Problem.of(error), loaded) from None
        return [Held(value, types[name]) for name, value in zip(names, found, strict=True)]

    def _session(
        self, scope: Scope, nodes: tuple[int, ...], values: Mapping[str, Held], again: bool
    ) -> ort.InferenceSession:
        known = self._sessions.get((scope, nodes))
        if known is None:
            needed = {name for place in nodes for name in scope.needs[place] if name in values}
            types = {name: type_proto(values[name].type_text) for name in needed}
            known = ort_sessions.session(scope.part(nodes, types), self.options)
            if again:
                self._sessions[scope, nodes] = known
        return known


class ReferenceRunner:
    """The reference evaluator of ``onnx``, one node at a time."""

    one_by_one = True

    def __init__(self, folder: str) -> None:
        self.name = f"onnx reference {onnx.__version__}"
        self._folder = folder
        self._known: dict[tuple[Scope, tuple[int, ...]], ReferenceEvaluator] = {}

    def knows(self, domain: str, op_type: str) -> bool:
        """Whether the standard defines it."""
        return onnx.defs.has(op_type, "" if domain == "ai.onnx" else domain)

    def run(self, scope: Scope, nodes: tuple[int, ...], values: Mapping[str, Held], again: bool) -> list[Held]:
        """See ``Runner``."""
        try:
            evaluator = self._evaluator(scope, nodes, values, again)
            feeds = {name: _array(values[name]) for name in map(str, evaluator.input_names)}
            found = cast("Sequence[Any]", evaluator.run(None, feeds))  # pyright: ignore[reportUnknownMemberType]
            return [_held(item) for item in found]
        except MemoryError as error:
            raise CannotRun(Problem.of(error), True) from None
        except _REFERENCE_ERRORS as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())[:_WORDS]
            raise CannotRun(Problem(f"the reference evaluator says {text.rstrip('.')}"), False) from None

    def _evaluator(
        self, scope: Scope, nodes: tuple[int, ...], values: Mapping[str, Held], again: bool
    ) -> ReferenceEvaluator:
        known = self._known.get((scope, nodes))
        if known is not None:
            return known
        needed = {name for place in nodes for name in scope.needs[place] if name in values}
        part = scope.part(nodes, {name: type_proto(values[name].type_text) for name in needed})
        newest = onnx.defs.onnx_opset_version()
        for item in part.opset_import:
            if item.domain in ("", "ai.onnx") and item.version > newest:
                raise NotImplementedError(f"opset {item.version} is newer than the {newest} it knows")
        external_data_helper.load_external_data_for_model(part, self._folder)
        evaluator = ReferenceEvaluator(part)
        if again:
            self._known[scope, nodes] = evaluator
        return evaluator


def _array(held: Held) -> Any:
    """A value as the reference evaluator takes it."""
    if not held.value.is_tensor():
        raise NotImplementedError(f"a {held.type_text} cannot be handed to it")
    found = elements(held.value)
    small = next((dtype for dtype, name in _SMALL.items() if name == found.dtype.name), None)
    if small is None:
        return np.array(found.array)
    return found.array.astype(small) if found.dtype.kind in ("int", "uint") else np.array(found.array).view(small)


def _held(item: Any) -> Held:
    if isinstance(item, list):
        made = sequence_of([_held(part).value for part in cast("list[Any]", item)])
        return Held(made, made.data_type())
    if item is None:
        raise NotImplementedError("it makes an optional value that is empty")
    array: NDArray[Any] = np.asarray(item)
    name = _SMALL.get(array.dtype)
    if name is None:
        kind = "string" if array.dtype.kind in "OUST" else array.dtype.name
        if kind not in DTYPES:
            raise TypeError(f"it makes values of type {array.dtype}")
        made = from_array(array, dtype_of(kind))
    else:
        packed = dtype_of(name).packed
        bits = array.astype(np.int8 if name == "int4" else np.uint8) if packed else array.view(f"u{array.itemsize}")
        made = from_array(bits, dtype_of(name))
    return Held(made, made.data_type())


assert set(_SMALL.values()) <= set(ELEMENT_TYPES.values())

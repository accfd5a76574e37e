"""Keeping what a run makes: statistics of every value, elements of as many as fit."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DType
from core.ir import Finding, Model
from core.run.result import size_text
from core.run.spool import Spool
from core.statistics.arrays import of_array
from core.statistics.types import TensorStats
from core.trace.types import TracedValue
from worker.report import Report


@dataclass(frozen=True, slots=True)
class Place:
    """One execution of one graph, as ``TracedValue`` names it."""

    graph: int = 0
    step: int = 0
    path: str = ""


MAIN: Final = Place()


class Sink(Protocol):
    """What takes the values of a run as they are made: ``Capture`` stores them, a data set only counts them."""

    def inside(self, place: Place) -> Sink | None:
        """What takes the values of another execution, ``None`` where nothing there is looked at."""
        ...

    def tensor(
        self, name: str, node: str, dtype: DType, shape: tuple[int, ...], stored: NDArray[np.uint8], array: NDArray[Any]
    ) -> None:
        """Take one tensor, as ``Capture.tensor``."""
        ...

    def other(self, name: str, node: str, type_text: str, shape: tuple[int, ...], reason: str) -> None:
        """Take note of a value that is no tensor."""
        ...

    def missing(self, name: str, node: str, dtype: str, reason: str) -> None:
        """Take note of a value that could not be made."""
        ...


class Capture:
    """Writes ``values.bin`` and one ``value`` event for each value.

    Elements of the values asked for first and of the model's outputs have their room set aside;
    the others are stored in the order in which they come, as long as there is room for all of one.
    """

    def __init__(
        self, spool: Spool, report: Report, model: Model, room: int, first: Collection[str], sizes: Mapping[str, int]
    ) -> None:
        """``room`` in bytes; ``first`` and ``sizes`` (predicted bytes) by name in the main graph."""
        self._report, self._model, self._room = report, model, room
        self._first = set(first)
        self._aside = {name: sizes.get(name, 0) for name in first}
        self._waiting = sum(self._aside.values())
        self._file = open(spool.values_file, "wb", buffering=0)  # noqa: SIM115 closed by ``__exit__``
        self._at = 0
        self._full = ""

    def inside(self, place: Place) -> Sink:
        """The same store for the values of another execution."""
        return _Inside(self, place)

    def tensor(
        self, name: str, node: str, dtype: DType, shape: tuple[int, ...], stored: NDArray[np.uint8], array: NDArray[Any]
    ) -> None:
        """Keep one tensor of the main graph.

        Args:
            node: id of the node that made it, empty for an input.
            stored: its bytes; for text left empty.
            array: one element a place, as ``core.statistics.arrays.of_array`` takes it.
        """
        self.keep(MAIN, name, node, dtype, shape, stored, array)

    def other(self, name: str, node: str, type_text: str, shape: tuple[int, ...], reason: str) -> None:
        """Note a value that is no tensor, e.g. a sequence of ``shape[0]`` tensors."""
        self.note(MAIN, name, node, type_text, shape, reason)

    def missing(self, name: str, node: str, dtype: str, reason: str) -> None:
        """Note a value that could not be made."""
        self.note(MAIN, name, node, dtype, (), reason)

    def keep(
        self,
        place: Place,
        name: str,
        node: str,
        dtype: DType,
        shape: tuple[int, ...],
        stored: NDArray[np.uint8],
        array: NDArray[Any],
    ) -> None:
        """As ``tensor``, of any execution; a name that the file does not have is passed over."""
        if name not in self._model.graphs[place.graph].value_index:
            return
        try:
            stats: TensorStats | None = of_array(array, dtype)
            why = ""
        except MemoryError:
            stats, why = None, "there was no memory left for its statistics"
        if dtype.kind == "string":
            text = json.dumps([str(item) for item in array.reshape(-1)])
            stored = np.frombuffer(text.encode("ascii"), np.uint8)
        start, stop, reason = self._store(name if place == MAIN else "", stored)
        self._say(place, TracedValue("", name, node, dtype.name, shape, stats, 0, start, stop, why or reason))

    def note(self, place: Place, name: str, node: str, type_text: str, shape: tuple[int, ...], reason: str) -> None:
        """As ``other``, of any execution."""
        if place == MAIN:
            self._came(name)
        if name not in self._model.graphs[place.graph].value_index:
            return
        self._say(place, TracedValue("", name, node, type_text, shape, None, reason=reason))

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, t: TracebackType | None) -> None:
        self._file.close()

    def _came(self, name: str) -> None:
        self._waiting -= self._aside.pop(name, 0)

    def _store(self, name: str, stored: NDArray[np.uint8]) -> tuple[int, int, str]:
        self._came(name)
        left = self._room - self._at - (0 if name in self._first else self._waiting)
        if stored.nbytes > left:
            return -1, -1, self._full or f"the {size_text(self._room)} for stored values are used up"
        start = self._at
        view = memoryview(stored.data)
        try:
            while view:
                view = view[self._file.write(view) or 0 :]
        except OSError as error:
            self._file.truncate(start)
            self._file.seek(start)
            self._full, self._room = f"the disk took no more ({error.strerror})", start
            self._report.finding(Finding("run.disk", "warning", f"Not all values are stored: {self._full}."))
            return -1, -1, self._full
        self._at += stored.nbytes
        return start, self._at, ""

    def _say(self, place: Place, value: TracedValue) -> None:
        index = self._model.graphs[place.graph].value_index[value.name]
        self._report.value(replace(value, id=f"g{place.graph}.v{index}", step=place.step, path=place.path))


class _Inside:
    """The values of one execution of a graph other than the first one of the main graph."""

    def __init__(self, capture: Capture, place: Place) -> None:
        self._capture, self._place = capture, place

    def inside(self, place: Place) -> Sink:
        return _Inside(self._capture, place)

    def tensor(
        self, name: str, node: str, dtype: DType, shape: tuple[int, ...], stored: NDArray[np.uint8], array: NDArray[Any]
    ) -> None:
        self._capture.keep(self._place, name, node, dtype, shape, stored, array)

    def other(self, name: str, node: str, type_text: str, shape: tuple[int, ...], reason: str) -> None:
        self._capture.note(self._place, name, node, type_text, shape, reason)

    def missing(self, name: str, node: str, dtype: str, reason: str) -> None:
        self._capture.note(self._place, name, node, dtype, (), reason)

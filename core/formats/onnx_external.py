"""External data of an ONNX model: data files beside it, each one a further source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from core.errors import ModelError, OutsideFolder
from core.ir import ByteRange, Finding
from core.limits import FILES
from core.source import Source, contained


@dataclass(frozen=True, slots=True)
class Place:
    """Where external bytes are, or why they cannot be read."""

    data: ByteRange | None = None
    problem: str = ""


class ExternalFiles:
    """Data files met so far; the model's own file is source 0."""

    def __init__(self, source: Source) -> None:
        self._folder = Path(source.path).parent
        self.sources = [source]
        self.findings: list[Finding] = []
        self._known: dict[str, int | str] = {}
        self._refused = set[str]()

    def place(self, entries: dict[str, str]) -> Place:
        """The bytes that ``external_data`` entries name; looks at the file's size, reads nothing.

        Keys ``location``, ``offset`` and ``length`` as in onnx.proto.
        """
        location = entries.get("location", "")
        known = self._known.get(location)
        if known is None:
            known = self._known[location] = self._open(location)
        if isinstance(known, str):
            return Place(problem=known)
        size = self.sources[known].size
        offset, length = _number(entries.get("offset", "0")), _number(entries.get("length", ""))
        shown = repr(location[:200])
        if offset is None or offset > size:
            return Place(problem=_wrong("offset", entries.get("offset", ""), shown, size))
        if entries.get("length") is None:
            length = size - offset
        if length is None or length > size - offset:
            return Place(problem=_wrong("length", entries.get("length", ""), shown, size))
        return Place(ByteRange(known, offset, offset + length))

    def _open(self, location: str) -> int | str:
        if len(self.sources) > FILES:
            return f"the model names more than {FILES} data files"
        shown = location[:200]
        try:
            path = contained(self._folder, location)
            if Path(self.sources[0].path).resolve() == path:
                return 0
            self.sources.append(Source(path, location[:1024]))
        except OutsideFolder as error:
            message = f"The model {error.message}; nothing is read from there."
            return self._refuse("onnx.external_outside", message, location, f"it {error.message}")
        except ModelError as error:
            message = f"The data file {shown!r} {error.message}; tensors stored in it have no values."
            return self._refuse("onnx.external", message, location, f"its data file {shown!r} {error.message}")
        return len(self.sources) - 1

    def _refuse(self, code: str, message: str, location: str, problem: str) -> str:
        self.findings.append(Finding(code, "error", message, f"file {location[:200]}"))
        self._refused.add(problem)
        return problem

    def reported(self, problem: str) -> bool:
        """Whether a tensor's problem is one of a data file that has its own finding."""
        return problem in self._refused


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _wrong(what: str, found: str, location: str, size: int) -> str:
    return f"its {what} {found[:40]!r} in the data file {location} is not within that file's {size} bytes"

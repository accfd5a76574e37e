"""An edited file as pieces: short new bytes, and long runs that stay where they are until written."""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from core.errors import SourceChanged
from core.limits import MIB
from core.source import Source


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes ``start`` to ``stop`` (end excluded) of a file that is not changed."""

    source: Source
    start: int
    stop: int

    @property
    def nbytes(self) -> int:
        """Length in bytes."""
        return self.stop - self.start

    def read(self, start: int, stop: int) -> bytes:
        """Bytes ``start`` to ``stop`` of the span; reads from disk."""
        return self.source.read(self.start + start, self.start + stop)


@dataclass(frozen=True, slots=True)
class Made:
    """Bytes that an edit computes out of others whenever they are asked for.

    Attributes:
        make: gives bytes ``start`` to ``stop``; both are multiples of ``unit`` or the end.
        unit: bytes that are made together, such as one element.
    """

    nbytes: int
    make: Callable[[int, int], bytes]
    unit: int = 1

    def read(self, start: int, stop: int) -> bytes:
        """Bytes ``start`` to ``stop``; may read from disk."""
        first = start - start % self.unit
        last = min(self.nbytes, -(-stop // self.unit) * self.unit)
        return self.make(first, last)[start - first : stop - first]


Piece = bytes | Span | Made


def size_of(piece: Piece) -> int:
    """Length of a piece in bytes."""
    return len(piece) if isinstance(piece, bytes) else piece.nbytes


def part_of(piece: Piece, start: int, stop: int) -> bytes:
    """Bytes ``start`` to ``stop`` of a piece; may read from disk."""
    return piece[start:stop] if isinstance(piece, bytes) else piece.read(start, stop)


def stream(pieces: Sequence[Piece], block: int = MIB) -> Iterator[bytes]:
    """All bytes in order, in blocks of at most ``block`` bytes; reads from disk."""
    for piece in pieces:
        size = size_of(piece)
        step = max(1, block - block % piece.unit) if isinstance(piece, Made) and piece.unit <= block else block
        for at in range(0, size, step):
            yield part_of(piece, at, min(at + step, size))


class Spliced(Source):
    """An edited file that was not written yet, read as if it were one.

    Its identity is that of its pieces, so an artifact opened from it is not taken for another.
    """

    __slots__ = ("_ends", "_pieces", "_under")

    def __init__(self, pieces: Sequence[Piece], path: str, name: str, mark: str) -> None:
        """Take the pieces in order.

        Args:
            path: of the file that was edited; used in messages.
            mark: what tells this content from others, such as a revision's id.
        """
        self.path, self.name = path, name
        self._pieces = tuple(piece for piece in pieces if size_of(piece))
        self._ends = list[int]()
        total = 0
        for piece in self._pieces:
            total += size_of(piece)
            self._ends.append(total)
        self.size = total
        self._under = tuple({id(p.source): p.source for p in self._pieces if isinstance(p, Span)}.values())
        newest = max((source.modified_ns for source in self._under), default=0)
        self._identity = (total, newest, int(hashlib.sha256(mark.encode()).hexdigest()[:15], 16))
        self._fd = None
        self.bytes_read = 0

    def read(self, start: int, stop: int) -> bytes:
        """Read bytes ``start`` to ``stop``; as ``Source.read``."""
        self._check_range(start, stop)
        parts, at = list[bytes](), start
        place = bisect.bisect_right(self._ends, start)
        while at < stop:
            piece, end = self._pieces[place], self._ends[place]
            first = end - size_of(piece)
            parts.append(part_of(piece, at - first, min(stop, end) - first))
            at, place = min(stop, end), place + 1
        self.bytes_read += stop - start
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_into(self, start: int, buffer: memoryview) -> None:
        """Fill ``buffer`` with the bytes from ``start`` on."""
        for at in range(0, len(buffer), MIB):
            stop = min(at + MIB, len(buffer))
            buffer[at:stop] = self.read(start + at, start + stop)

    def expect(self, start: int) -> None:
        """Nothing to hint at: what is read next may lie in any file."""

    def check_unchanged(self) -> None:
        """Compare the files beneath with what they were; as ``Source.check_unchanged``."""
        for source in self._under:
            source.check_unchanged()

    def close(self) -> None:
        """Give the files beneath back."""
        for source in self._under:
            source.close()

    def _changed(self) -> SourceChanged:
        return SourceChanged("was edited from a file that changed since", path=self.path, hint="Reopen the file.")

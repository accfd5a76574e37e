"""Regular expressions matched in time linear in the text, whatever the pattern.

A subset of the usual syntax: literals, ``.``, ``[a-z]`` and ``[^a-z]``, ``\\d \\w \\s`` and their
opposites, ``( | )``, ``* + ?``, ``{m,n}`` up to 64, ``^`` and ``$``. No back references and no
look-around: with them matching cannot be linear. Thompson (1968), with the states met so far kept
as a table, so that a character costs one look-up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from core.errors import UsageError

PATTERN_LENGTH: Final = 256
TEXT_LENGTH: Final = 4096
"""Characters of a text that are looked at."""
_STATES: Final = 1500
_REPEAT: Final = 64
_TABLE: Final = 20_000

Test = Callable[[str], bool]
_CLASSES: Final[dict[str, Test]] = {
    "d": str.isdecimal,
    "D": lambda c: not c.isdecimal(),
    "w": lambda c: c.isalnum() or c == "_",
    "W": lambda c: not (c.isalnum() or c == "_"),
    "s": str.isspace,
    "S": lambda c: not c.isspace(),
}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


@dataclass(slots=True)
class _State:
    """One step: on a character that passes ``test`` go to ``then``; without ``test`` go to all ``free``.

    ``anchor`` is ``^`` or ``$`` where the step needs the start or the end of the text.
    """

    test: Test | None = None
    then: int = -1
    free: list[int] = field(default_factory=list[int])
    anchor: str = ""


class Regex:
    """A compiled pattern.

    Raises:
        UsageError: if the pattern is too long, not closed or uses what is not offered.
    """

    def __init__(self, pattern: str, *, ignore_case: bool = True) -> None:
        if len(pattern) > PATTERN_LENGTH:
            raise UsageError(f"the pattern has {len(pattern)} characters, allowed are {PATTERN_LENGTH}")
        self._fold = ignore_case
        self._states: list[_State] = []
        self._final = self._state()
        self._start = _Parser(self, pattern).whole()
        self._table: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._endings: dict[tuple[frozenset[int], bool], bool] = {}
        self._first = self._closure({self._start}, at_start=True, at_end=False)
        self._empty = self._closure({self._start}, at_start=True, at_end=True)

    def search(self, text: str) -> bool:
        """Whether some part of ``text`` (its first ``TEXT_LENGTH`` characters) matches."""
        if self._fold:
            text = text.lower()
        text = text[:TEXT_LENGTH]
        now = self._first if text else self._empty
        for character in text:
            if self._final in now:
                return True
            now = self._step(now, character)
        return self._final in now or self._ends(now, at_start=not text)

    def _ends(self, now: frozenset[int], *, at_start: bool) -> bool:
        found = self._endings.get((now, at_start))
        if found is None:
            found = self._endings[now, at_start] = self._final in self._closure(now, at_start=at_start, at_end=True)
        return found

    def _step(self, now: frozenset[int], character: str) -> frozenset[int]:
        found = self._table.get((now, character))
        if found is None:
            if len(self._table) > _TABLE:
                self._table.clear()
                self._endings.clear()
            reached = {s.then for s in (self._states[n] for n in now) if s.test is not None and s.test(character)}
            reached.add(self._start)  # a match may begin anywhere
            found = self._table[now, character] = self._closure(reached, at_start=False, at_end=False)
        return found

    def _closure(self, states: set[int] | frozenset[int], *, at_start: bool, at_end: bool) -> frozenset[int]:
        seen, stack = set(states), list(states)
        while stack:
            state = self._states[stack.pop()]
            if state.test is not None or (state.anchor == "^" and not at_start) or (state.anchor == "$" and not at_end):
                continue
            for other in state.free:
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        return frozenset(seen)

    def _state(self, test: Test | None = None, then: int = -1, free: list[int] | None = None, anchor: str = "") -> int:
        if len(self._states) >= _STATES:
            raise UsageError("the pattern is too large", hint="Repeat less in {m,n}.")
        self._states.append(_State(test, then, free or [], anchor))
        return len(self._states) - 1


Piece = Callable[[int], int]
"""Builds the states of a part of a pattern before the state it is given; returns where it begins."""


class _Parser:
    """Recursive descent over the pattern; parts are functions, so a repeated part is built anew."""

    def __init__(self, regex: Regex, pattern: str) -> None:
        self.regex, self.pattern, self.at, self.depth = regex, pattern, 0, 0

    def whole(self) -> int:
        piece = self._choice()
        if self.at < len(self.pattern):
            raise self._wrong("a ) that closes nothing")
        return piece(self.regex._final)  # pyright: ignore[reportPrivateUsage]

    def _choice(self) -> Piece:
        ways = [self._sequence()]
        while self._take("|"):
            ways.append(self._sequence())
        if len(ways) == 1:
            return ways[0]
        return lambda then: self._make(free=[way(then) for way in ways])

    def _sequence(self) -> Piece:
        parts: list[Piece] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            parts.append(self._repeated())

        def build(then: int) -> int:
            for part in reversed(parts):
                then = part(then)
            return then

        return build

    def _repeated(self) -> Piece:
        piece = self._atom()
        while self.at < len(self.pattern) and self.pattern[self.at] in "*+?{":
            mark = self.pattern[self.at]
            self.at += 1
            if mark == "{":
                piece = self._counted(piece)
            else:
                low, high = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}[mark]
                piece = self._times(piece, low, high)
            self._take("?")  # a lazy mark changes what is captured, not what matches
        return piece

    def _counted(self, piece: Piece) -> Piece:
        stop = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at : stop].partition(",")
        if stop < 0 or not low.isdecimal() or (high and not high.isdecimal()):
            raise self._wrong("a { without a number")
        self.at = stop + 1
        least = int(low)
        most = int(high) if high else -1 if comma else least
        if max(least, most) > _REPEAT or -1 < most < least:
            raise self._wrong(f"a repetition beyond {_REPEAT}")
        return self._times(piece, least, most)

    def _times(self, piece: Piece, low: int, high: int) -> Piece:
        def build(then: int) -> int:
            if high < 0:
                loop = self._make(free=[then])
                self.regex._states[loop].free.append(piece(loop))  # pyright: ignore[reportPrivateUsage]
                then = loop
            for _ in range(max(high - low, 0)):
                then = self._make(free=[piece(then), then])
            for _ in range(low):
                then = piece(then)
            return then

        return build

    def _atom(self) -> Piece:
        character = self.pattern[self.at]
        self.at += 1
        if character == "(":
            return self._group()
        if character in "^$":
            return lambda then: self._make(free=[then], anchor=character)
        if character in "*+?{":
            raise self._wrong(f"a {character} that repeats nothing")
        test = self._test(character)
        return lambda then: self._make(test, then)

    def _group(self) -> Piece:
        if self._take("?") and not self._take(":"):
            raise self._wrong("a (?, which is not offered: matching stays linear")
        self.depth += 1
        if self.depth > _REPEAT:
            raise self._wrong("too many brackets in each other")
        piece = self._choice()
        self.depth -= 1
        if not self._take(")"):
            raise self._wrong("a ( that is not closed")
        return piece

    def _test(self, character: str) -> Test:
        if character == ".":
            return lambda c: c != "\n"
        if character == "[":
            return self._set()
        if character == "\\":
            return self._escape()
        return self._same(character)

    def _same(self, character: str) -> Test:
        wanted = character.lower() if self.regex._fold else character  # pyright: ignore[reportPrivateUsage]
        return lambda c: c == wanted

    def _escape(self) -> Test:
        if self.at >= len(self.pattern):
            raise self._wrong("a \\ at the end")
        character = self.pattern[self.at]
        self.at += 1
        if character in _CLASSES:
            return _CLASSES[character]
        if character.isalnum() and character not in _ESCAPES:
            raise self._wrong(f"\\{character}, which is not offered")
        return self._same(_ESCAPES.get(character, character))

    def _set(self) -> Test:
        opposite = self._take("^")
        tests: list[Test] = []
        first = True
        while first or not self._take("]"):
            if self.at >= len(self.pattern):
                raise self._wrong("a [ that is not closed")
            first = False
            character = self.pattern[self.at]
            self.at += 1
            if character == "\\":
                tests.append(self._escape())
            elif self.pattern[self.at : self.at + 1] == "-" and self.pattern[self.at + 1 : self.at + 2] not in (
                "",
                "]",
            ):
                tests.append(self._range(character, self.pattern[self.at + 1]))
                self.at += 2
            else:
                tests.append(self._same(character))
        return lambda c: any(test(c) for test in tests) != opposite

    def _range(self, low: str, high: str) -> Test:
        if low > high:
            raise self._wrong(f"a range {low}-{high} that holds nothing")
        if self.regex._fold:  # pyright: ignore[reportPrivateUsage]
            return lambda c: low <= c <= high or low <= c.upper() <= high
        return lambda c: low <= c <= high

    def _make(self, test: Test | None = None, then: int = -1, free: list[int] | None = None, anchor: str = "") -> int:
        return self.regex._state(test, then, free, anchor)  # pyright: ignore[reportPrivateUsage]

    def _take(self, character: str) -> bool:
        if self.pattern[self.at : self.at + 1] == character:
            self.at += 1
            return True
        return False

    def _wrong(self, what: str) -> UsageError:
        return UsageError(f"the pattern has {what} (character {self.at})")

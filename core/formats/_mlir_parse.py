"""A tolerant parser for MLIR operations, generic and pretty-printed alike.

It knows the shape of the language (results, name, operands, attributes, regions, types) and no
dialect: what it cannot place stays text in the operation's attributes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from core.errors import BrokenFile
from core.formats._mlir_text import Token
from core.limits import NESTING, NODES, check

_OPEN: Final = {"(": ")", "[": "]", "{": "}", "<": ">"}
_CLOSE: Final = set(_OPEN.values())
_BARE: Final = {"return", "call", "module", "func", "constant"}
"""Operations that are printed without their dialect."""


@dataclass(slots=True)
class Operation:
    """One operation.

    Attributes:
        results: names such as ``%0``; ``%0:3`` gives ``%0#0`` to ``%0#2``.
        bound: region arguments and the operands they begin with (``%x = %y`` in parentheses).
        types: texts of operand and result types, in order of appearance.
        symbol: ``@name`` it defines or refers to.
    """

    name: str
    results: list[str]
    operands: list[str] = field(default_factory=list[str])
    attributes: dict[str, str] = field(default_factory=dict[str, str])
    regions: list[Region] = field(default_factory=list["Region"])
    operand_types: list[str] = field(default_factory=list[str])
    result_types: list[str] = field(default_factory=list[str])
    bound: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    arguments: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    symbol: str = ""
    location: str = ""


@dataclass(slots=True)
class Region:
    """Operations between braces; ``arguments`` of its first block with their types."""

    operations: list[Operation] = field(default_factory=list[Operation])
    arguments: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


class Parser:
    """Parses the tokens of one file."""

    def __init__(self, found: list[Token], path: str) -> None:
        self._tokens, self._at, self._path = found, 0, path
        self._count = 0

    def operations(self) -> list[Operation]:
        """All top-level operations.

        Raises:
            BrokenFile: where braces do not match. LimitExceeded: beyond 200 nested regions.
        """
        return self._region(0).operations

    # --- tokens

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at].text if at < len(self._tokens) else ""

    def _kind(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at].kind if at < len(self._tokens) else "end"

    def _take(self) -> str:
        if self._at >= len(self._tokens):
            raise BrokenFile("the text ends inside an operation", path=self._path)
        self._at += 1
        return self._tokens[self._at - 1].text

    def _skip_group(self) -> str:
        """Text of a bracketed group, its brackets included."""
        start, stack = self._at, list[str]()
        while True:
            text = self._take()
            if text in _OPEN:
                stack.append(_OPEN[text])
                check("the nesting of brackets", len(stack), 100_000, path=self._path)
            elif text in _CLOSE:
                if not stack or stack.pop() != text:
                    raise BrokenFile(
                        f"bracket {text!r} closes nothing", path=self._path, byte=self._tokens[self._at - 1].start
                    )
                if not stack:
                    return self._text(start, self._at)

    def _text(self, start: int, stop: int) -> str:
        return "".join(_spaced(token) for token in self._tokens[start:stop]).strip()

    # --- regions and operations

    def _region(self, depth: int) -> Region:
        check("the nesting of regions", depth, NESTING, path=self._path)
        region = Region()
        while self._at < len(self._tokens):
            text = self._peek()
            if text == "}":
                if depth == 0:
                    raise BrokenFile(
                        "a closing brace has no opening one", path=self._path, byte=self._tokens[self._at].start
                    )
                return region
            if text.startswith("^"):
                self._take()
                arguments = self._block_arguments() if self._peek() == "(" else []
                if not region.operations and not region.arguments:
                    region.arguments = arguments
                if self._peek() == ":":
                    self._take()
            elif text.startswith(("#", "!")) and self._peek(1) == "=":
                self._alias()
            else:
                region.operations.append(self._operation(depth))
        if depth > 0:
            raise BrokenFile("the text ends inside a region", path=self._path)
        return region

    def _alias(self) -> None:
        """``#loc1 = loc(...)``: not needed, up to the next line's first token."""
        self._take()
        self._take()
        while self._at < len(self._tokens) and not self._tokens[self._at].first:
            if self._peek() in _OPEN:
                self._skip_group()
            else:
                self._take()

    def _block_arguments(self) -> list[tuple[str, str]]:
        """``(%a: type, %b: type)`` after a block label or a function name."""
        rows: list[tuple[str, str]] = []
        self._take()
        while self._peek() != ")":
            name = self._take()
            if self._peek() == ":":
                self._take()
                rows.append((name, self._type()))
            while self._peek() not in (",", ")"):
                if self._peek() in _OPEN:
                    self._skip_group()
                else:
                    self._take()
            if self._peek() == ",":
                self._take()
        self._take()
        return rows

    def _operation(self, depth: int) -> Operation:
        self._count += 1
        check("the number of operations", self._count, NODES, path=self._path)
        results = self._results()
        name = self._take().strip('"')
        operation = Operation(name, results)
        if name in ("func.func", "func", "module", "builtin.module"):
            self._definition(operation, depth)
        else:
            self._rest(operation, depth)
        return operation

    def _results(self) -> list[str]:
        start, results = self._at, list[str]()
        while self._peek().startswith("%"):
            name = self._take()
            if self._peek() == ":" and self._peek(1).isdigit():
                self._take()
                count = check("the number of results", int(self._take()), 100_000, path=self._path)
                results.extend(f"{name}#{i}" for i in range(count))
            else:
                results.append(name)
            if self._peek() == ",":
                self._take()
            elif self._peek() == "=":
                self._take()
                return results
            else:
                break
        self._at = start
        if self._peek().startswith("%"):
            raise BrokenFile(
                f"{self._peek()[:60]!r} begins no operation", path=self._path, byte=self._tokens[start].start
            )
        return []

    def _definition(self, operation: Operation, depth: int) -> None:
        """``func.func public @name(arguments) -> results attributes {...} {body}`` and ``module @name {...}``."""
        while self._at < len(self._tokens):
            text = self._peek()
            if text.startswith("@"):
                operation.symbol = self._take()
                if self._peek() == "(":
                    operation.arguments = self._block_arguments()
            elif text == "->":
                self._take()
                operation.result_types = self._result_list()
            elif text == "attributes":
                self._take()
                self._attributes(operation)
            elif text == "{":
                operation.regions.append(self._braced(depth))
                self._location(operation)
                return
            elif self._kind() == "word" and not self._tokens[self._at].first:
                self._take()
            else:
                return

    def _result_list(self) -> list[str]:
        """Types after an arrow, attributes of results left out."""
        if self._peek() != "(":
            return [self._type()]
        rows: list[str] = []
        self._take()
        while self._peek() != ")":
            rows.append(self._type())
            if self._peek() == "{":
                self._skip_group()
            if self._peek() == ",":
                self._take()
        self._take()
        return rows

    def _braced(self, depth: int) -> Region:
        self._take()
        region = self._region(depth + 1)
        self._take()
        return region

    def _rest(self, operation: Operation, depth: int) -> None:
        """Everything after the name, up to where the next operation begins."""
        word = ""
        while self._at < len(self._tokens) and not self._ends(operation):
            text, kind = self._peek(), self._kind()
            if text == ":" and word != "init":
                self._take()
                self._signature(operation)
                word = ""
            elif text == "(":
                self._parenthesis(operation, depth)
            elif text == "{":
                if self._is_attributes():
                    self._attributes(operation)
                else:
                    operation.regions.append(self._braced(depth))
            elif text == "->":
                self._take()
                operation.result_types = self._result_list()
            elif text == "x" and self._peek(1) == "[" and word:
                self._take()  # contracting_dims = [1] x [0]
                self._value_of(operation, word)
            elif text in ("[", "<"):
                self._value_of(operation, word)
            elif kind == "name" and text.startswith("%"):
                operation.operands.append(self._operand())
            elif text == "=" and word:
                self._take()
                self._value_of(operation, word)
            elif text == "loc" and self._peek(1) == "(":
                self._location(operation)
            else:
                word = self._word(operation)

    def _word(self, operation: Operation) -> str:
        token = self._take()
        if token.startswith("@"):
            operation.symbol = operation.symbol or token
        elif token not in (",", ":", "init") and self._peek() != "=" and self._kind(-1) in ("word", "string", "number"):
            place = sum(key.startswith("argument ") for key in operation.attributes)
            operation.attributes[f"argument {place}"] = token.strip('"')
        return token

    def _ends(self, operation: Operation) -> bool:
        """Whether the token at hand begins the next operation or ends the region."""
        text, token = self._peek(), self._tokens[self._at]
        if text in ("}", ")") or text.startswith("^"):
            return True
        complete = token.first or bool(operation.result_types or operation.operand_types)
        if text.startswith("%"):
            return complete and self._defines()
        if token.kind == "string":
            return token.first and self._peek(1) == "("
        if text.startswith(("#", "!")):
            return token.first and self._peek(1) == "="
        return complete and token.kind == "word" and ("." in text or text in _BARE) and self._peek(1) != "="

    def _defines(self) -> bool:
        """Whether ``%a, %b:2 =`` stands here."""
        at = 0
        while self._peek(at).startswith("%"):
            at += 1
            if self._peek(at) == ":" and self._peek(at + 1).isdigit():
                at += 2
            if self._peek(at) == "=":
                return True
            if self._peek(at) != ",":
                return False
            at += 1
        return False

    def _operand(self) -> str:
        name = self._take()
        if self._peek() == "#" or (
            self._kind() == "name" and self._peek().startswith("#") and self._peek()[1:].isdigit()
        ):
            return name + self._take()
        return name

    def _parenthesis(self, operation: Operation, depth: int) -> None:
        """Operands, regions ``({...}, {...})``, or ``(%x = %y, ...)``."""
        self._take()
        while self._peek() != ")":
            text = self._peek()
            if text == "{":
                operation.regions.append(self._braced(depth))
            elif text.startswith("%"):
                name = self._operand()
                if self._peek() == "=":
                    self._take()
                    value = self._operand()
                    operation.bound.append((name, value))
                    operation.operands.append(value)
                else:
                    operation.operands.append(name)
            elif text in _OPEN:
                self._skip_group()
            else:
                self._take()
        self._take()

    def _is_attributes(self) -> bool:
        first, second = self._peek(1), self._peek(2)
        return first == "}" or (self._kind(1) in ("word", "string") and second in ("=", ",", "}"))

    def _attributes(self, operation: Operation) -> None:
        """``{name = value, flag}``."""
        self._take()
        while self._peek() != "}":
            name = self._take().strip('"')
            if self._peek() == "=":
                self._take()
                operation.attributes[name] = self._value()
            elif name != ",":
                operation.attributes[name] = "unit"
        self._take()

    def _value_of(self, operation: Operation, word: str) -> None:
        name = word or f"argument {len(operation.attributes)}"
        value = self._value()
        before = operation.attributes.get(name)
        operation.attributes[name] = value if before is None or before == word else f"{before} {value}"

    def _value(self) -> str:
        """One attribute value: up to a comma or closing bracket, groups whole, its type included."""
        start = self._at
        while self._at < len(self._tokens):
            text = self._peek()
            if text in (",", "}", ")", "]", ">") or (self._at > start and self._tokens[self._at].first):
                break
            if text in _OPEN:
                self._skip_group()
                if self._peek() != ":" and self._peek() not in _OPEN:
                    break
            elif text == ":" and self._at > start and self._peek(1) in ("(",):
                break
            elif text == ":" and self._at > start:
                self._take()
                self._type()
                break
            else:
                self._take()
                if self._peek() not in (*_OPEN, ":", ".", "-", "+", "::"):
                    break
        return self._text(start, self._at)

    def _signature(self, operation: Operation) -> None:
        """``(a, b) -> c``, ``a, b -> c`` or ``a, b`` after a colon."""
        if self._peek() == "(":
            self._take()
            while self._peek() != ")":
                operation.operand_types.append(self._type())
                if self._peek() == ",":
                    self._take()
            self._take()
        else:
            operation.operand_types.append(self._type())
            while self._peek() == "," and not self._peek(1).startswith("%"):
                self._take()
                operation.operand_types.append(self._type())
        if self._peek() == "->":
            self._take()
            operation.result_types = self._result_list()

    def _type(self) -> str:
        """One type: a word or ``!name`` with its angle brackets, a tuple, or a function type."""
        start = self._at
        if self._peek() == "(":
            self._skip_group()
            if self._peek() == "->":
                self._take()
                self._result_list()
        else:
            self._take()
            while self._peek() == "<" and not self._tokens[self._at].first:
                self._skip_group()
        return self._text(start, self._at)

    def _location(self, operation: Operation) -> None:
        if self._peek() == "loc" and self._peek(1) == "(":
            self._take()
            operation.location = self._skip_group().strip("()")


def _spaced(token: Token) -> str:
    return token.text + " " if token.text in (",", ":", "=") else token.text

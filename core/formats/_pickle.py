"""Pickles as data: every opcode is walked, nothing is imported, called or built.

Protocol: the opcode descriptions in CPython's pickletools (protocols 0 to 5). A global becomes a
``Global``, every call a ``Call`` that only remembers what would have been called with what.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from core.errors import BrokenFile
from core.formats._pickle_objects import Call, Global, Persistent

ITEMS: Final = 4_000_000
"""Opcodes of one pickle."""


@dataclass(slots=True)
class Pickle:
    """What one pickle says.

    Attributes:
        value: the top of the stack at STOP, or what was there at the damage.
        stop: first byte after the pickle.
        damage: the sentence and byte where reading ended early, else ``None``.
    """

    value: Any
    globals: list[Global]
    stop: int
    damage: tuple[str, int] | None = None


_NUMBERS: Final = {code: struct.Struct("<" + code) for code in "iIBHQ"}
_uint: Final = struct.Struct("<I").unpack_from


def walk(data: bytes, start: int = 0, *, base: int = 0) -> Pickle:
    """Walk one pickle from ``start``; ``base`` is added to the bytes reported.

    Damage does not raise: what was understood before it is returned with the place.
    """
    machine = _Machine(data, start, base)
    try:
        machine.run()
    except (IndexError, KeyError, ValueError, TypeError, AttributeError, struct.error, BrokenFile) as error:
        text = error.message if isinstance(error, BrokenFile) else f"the pickle is damaged: {type(error).__name__}"
        top = machine.stack[-1] if machine.stack else None
        return Pickle(top, machine.globals, machine.at, (text, base + machine.op_at))
    return Pickle(machine.value, machine.globals, machine.at)


class _Machine:
    """The stack, the memo and the position of one walk."""

    def __init__(self, data: bytes, start: int, base: int) -> None:
        self.data, self.at, self.base, self.op_at = data, start, base, start
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.globals: list[Global] = []
        self.value: Any = None
        self.marks: list[int] = []

    def run(self) -> None:  # noqa: PLR0915 (one loop, so that nothing is called for the common opcodes)
        """Walk up to STOP; the opcodes that fill a checkpoint are taken without a call."""
        data, stack, memo, size, at = self.data, self.stack, self.memo, len(self.data), self.at
        for _ in range(ITEMS):
            self.op_at = at
            if at >= size:
                raise BrokenFile("the pickle ends before its STOP")
            opcode = data[at]
            if opcode == 0x71:  # BINPUT
                memo[data[at + 1]] = stack[-1]
                at += 2
            elif opcode == 0x68:  # BINGET
                stack.append(memo[data[at + 1]])
                at += 2
            elif opcode == 0x72:  # LONG_BINPUT
                memo[_uint(data, at + 1)[0]] = stack[-1]
                at += 5
            elif opcode == 0x6A:  # LONG_BINGET
                stack.append(memo[_uint(data, at + 1)[0]])
                at += 5
            elif opcode == 0x4B:  # BININT1
                stack.append(data[at + 1])
                at += 2
            elif opcode == 0x4D:  # BININT2
                stack.append(data[at + 1] | data[at + 2] << 8)
                at += 3
            elif opcode == 0x58 and at + 5 <= size:  # BINUNICODE
                end = at + 5 + _uint(data, at + 1)[0]
                if end > size:
                    raise BrokenFile(f"an opcode needs {end - at - 5} bytes, {size - at - 5} are left")
                stack.append(data[at + 5 : end].decode("utf-8", "replace"))
                at = end
            elif opcode == 0x28:  # MARK
                self.marks.append(len(stack))
                at += 1
            elif opcode == 0x74:  # TUPLE
                start = self.marks.pop()
                stack[start:] = [tuple(stack[start:])]
                at += 1
            elif opcode == 0x52 and len(stack) > 1:  # REDUCE
                arguments = stack.pop()
                stack[-1] = Call(stack[-1], arguments)
                at += 1
            elif opcode == 0x2E:  # STOP
                self.at = at + 1
                self.value = stack.pop()
                return
            else:
                step = _STEPS.get(opcode)
                if step is None:
                    raise BrokenFile(f"byte {opcode:#04x} is no pickle opcode")
                self.at = at + 1
                step(self)
                at = self.at
        raise BrokenFile(f"the pickle has more than {ITEMS} opcodes")

    # --- reading arguments

    def take(self, length: int) -> bytes:
        if length < 0 or length > len(self.data) - self.at:
            left = len(self.data) - self.at
            raise BrokenFile(f"an opcode needs {length} bytes, {left} are left")
        start = self.at
        self.at += length
        return self.data[start : self.at]

    def number(self, code: str) -> int:
        layout = _NUMBERS[code]
        return layout.unpack(self.take(layout.size))[0]

    def line(self) -> bytes:
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise BrokenFile("a line of the pickle has no end")
        start, self.at = self.at, end + 1
        return self.data[start:end]

    def text(self, length: int) -> str:
        return self.take(length).decode("utf-8", "replace")

    # --- the stack

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def since_mark(self) -> list[Any]:
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def found(self, module: str, name: str) -> Global:
        item = Global(module, name, self.base + self.op_at)
        if len(self.globals) < 100_000:
            self.globals.append(item)
        return item

    def call(self, function: Any, args: Any) -> None:
        self.push(Call(function, args))


Step = Callable[[_Machine], None]
_STEPS: Final[dict[int, Step]] = {}


def _op(opcode: str) -> Callable[[Step], Step]:
    def register(step: Step) -> Step:
        _STEPS[ord(opcode)] = step
        return step

    return register


def _constant(opcode: str, make: Callable[[], Any]) -> None:
    _STEPS[ord(opcode)] = lambda m: m.push(make())


def _read(opcode: str, read: Callable[[_Machine], Any]) -> None:
    _STEPS[ord(opcode)] = lambda m: m.push(read(m))


for _opcode, _make in {
    "N": lambda: None,
    "\x88": lambda: True,
    "\x89": lambda: False,
    ")": tuple,
    "]": list,
    "}": dict,
    "\x8f": list,
}.items():
    _constant(_opcode, cast(Callable[[], Any], _make))


def _long_text(m: _Machine) -> int | bool:
    raw = m.line()
    if raw in (b"00", b"01"):
        return raw == b"01"
    if len(raw) > 4000:
        raise BrokenFile("a number has more than 4000 digits")
    return int(raw.rstrip(b"L"))


def _quoted(m: _Machine) -> str:
    raw = m.line().strip()
    if len(raw) < 2 or raw[:1] != raw[-1:] or raw[:1] not in b"'\"":
        raise BrokenFile("a STRING opcode has no quotes")
    return raw[1:-1].decode("latin-1")


def _long(m: _Machine, length: int) -> int:
    if length > 4096:
        raise BrokenFile(f"an integer has {length} bytes")
    return int.from_bytes(m.take(length), "little", signed=True)


_READS: Final[dict[str, Callable[[_Machine], Any]]] = {
    "I": _long_text,
    "L": _long_text,
    "J": lambda m: m.number("i"),
    "\x8a": lambda m: _long(m, m.number("B")),
    "\x8b": lambda m: _long(m, m.number("i")),
    "F": lambda m: float(m.line()),
    "G": lambda m: struct.unpack(">d", m.take(8))[0],
    "S": _quoted,
    "T": lambda m: m.take(m.number("i")).decode("latin-1"),
    "U": lambda m: m.take(m.number("B")).decode("latin-1"),
    "V": lambda m: m.line().decode("raw-unicode-escape"),
    "X": lambda m: m.text(m.number("I")),
    "\x8c": lambda m: m.text(m.number("B")),
    "\x8d": lambda m: m.text(m.number("Q")),
    "B": lambda m: m.take(m.number("I")),
    "C": lambda m: m.take(m.number("B")),
    "\x8e": lambda m: m.take(m.number("Q")),
    "\x96": lambda m: m.take(m.number("Q")),
    "P": lambda m: Persistent(m.line().decode("latin-1")),
    "Q": lambda m: Persistent(m.stack.pop()),
    "l": lambda m: m.since_mark(),
    "\x91": lambda m: m.since_mark(),
    "\x85": lambda m: (m.stack.pop(),),
    "\x86": lambda m: tuple(_last(m, 2)),
    "\x87": lambda m: tuple(_last(m, 3)),
    "2": lambda m: m.stack[-1],
    "g": lambda m: m.memo[int(m.line())],
}
for _opcode, _reader in _READS.items():
    _read(_opcode, _reader)


def _last(m: _Machine, count: int) -> list[Any]:
    if len(m.stack) < count:
        raise BrokenFile("the stack is empty")
    items = m.stack[-count:]
    del m.stack[-count:]
    return items


@_op("\x80")
def _proto(m: _Machine) -> None:
    version = m.number("B")
    if version > 5:
        raise BrokenFile(f"pickle protocol {version} is unknown")


@_op("\x95")
def _frame(m: _Machine) -> None:
    length = m.number("Q")
    if length > len(m.data) - m.at:
        raise BrokenFile(f"a frame says {length} bytes, {len(m.data) - m.at} are left")


@_op("0")
def _pop(m: _Machine) -> None:
    if m.marks and m.marks[-1] == len(m.stack):
        m.marks.pop()
    else:
        m.stack.pop()


@_op("1")
def _pop_mark(m: _Machine) -> None:
    m.since_mark()


@_op("\x97")
def _next_buffer(m: _Machine) -> None:
    m.push(Persistent("out-of-band buffer"))


@_op("\x98")
def _read_only(_: _Machine) -> None:
    """READONLY_BUFFER changes nothing that is shown."""


@_op("d")
def _dict(m: _Machine) -> None:
    items = m.since_mark()
    target: dict[Any, Any] = {}
    m.push(target)
    _set_items(target, items)


@_op("s")
def _set_item(m: _Machine) -> None:
    key, value = _last(m, 2)
    _set_items(m.stack[-1], [key, value])


@_op("u")
def _set_many(m: _Machine) -> None:
    items = m.since_mark()
    _set_items(m.stack[-1], items)


def _set_items(target: Any, items: list[Any]) -> None:
    rows = target.items if isinstance(target, Call) else target
    if not isinstance(rows, dict):
        raise BrokenFile("items are set on something that is no dictionary")
    table = cast(dict[Any, Any], rows)
    for key, value in zip(items[::2], items[1::2], strict=True):
        table[_key(key)] = value


def _key(key: Any) -> Any:
    """The key itself where it is a plain value; identity stands for anything that cannot be hashed safely."""
    return (
        key if isinstance(key, str | int | float | bytes | bool | None) else f"<{type(key).__name__} at {id(key):#x}>"
    )


@_op("a")
def _append(m: _Machine) -> None:
    value = m.stack.pop()
    _extend(m.stack[-1], [value])


@_op("e")
def _appends(m: _Machine) -> None:
    items = m.since_mark()
    _extend(m.stack[-1], items)


@_op("\x90")
def _add_items(m: _Machine) -> None:
    items = m.since_mark()
    _extend(m.stack[-1], items)


def _extend(target: Any, items: list[Any]) -> None:
    rows = target.elements if isinstance(target, Call) else target
    if not isinstance(rows, list):
        raise BrokenFile("elements are appended to something that is no list")
    cast(list[Any], rows).extend(items)


@_op("p")
def _put(m: _Machine) -> None:
    m.memo[int(m.line())] = m.stack[-1]


@_op("\x94")
def _memoize(m: _Machine) -> None:
    m.memo[len(m.memo)] = m.stack[-1]


@_op("c")
def _global(m: _Machine) -> None:
    module, name = m.line().decode("utf-8", "replace"), m.line().decode("utf-8", "replace")
    m.push(m.found(module, name))


@_op("\x93")
def _stack_global(m: _Machine) -> None:
    module, name = _last(m, 2)
    # A name that is computed by the pickle itself cannot be judged; it is shown as it stands.
    m.push(
        m.found(module if isinstance(module, str) else "<computed>", name if isinstance(name, str) else "<computed>")
    )


@_op("\x82")
def _ext1(m: _Machine) -> None:
    m.push(m.found("copyreg.extension", str(m.number("B"))))


@_op("\x83")
def _ext2(m: _Machine) -> None:
    m.push(m.found("copyreg.extension", str(m.number("H"))))


@_op("\x84")
def _ext4(m: _Machine) -> None:
    m.push(m.found("copyreg.extension", str(m.number("i"))))


@_op("R")
def _reduce(m: _Machine) -> None:
    function, args = _last(m, 2)
    m.call(function, args)


@_op("\x81")
def _new(m: _Machine) -> None:
    function, args = _last(m, 2)
    m.call(function, args)


@_op("\x92")
def _new_with_names(m: _Machine) -> None:
    function, args, names = _last(m, 3)
    m.call(function, (args, names))


@_op("i")
def _inst(m: _Machine) -> None:
    module, name = m.line().decode("utf-8", "replace"), m.line().decode("utf-8", "replace")
    m.call(m.found(module, name), tuple(m.since_mark()))


@_op("o")
def _obj(m: _Machine) -> None:
    items = m.since_mark()
    m.call(items[0], tuple(items[1:]))


@_op("b")
def _build(m: _Machine) -> None:
    state = m.stack.pop()
    target = m.stack[-1]
    if isinstance(target, Call):
        target.state = state

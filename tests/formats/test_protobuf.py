"""The protobuf walker against Google's: any bytes at all, in windows that end anywhere."""

from pathlib import Path

import numpy as np
import pytest
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from onnx import AttributeProto

from core.formats._protobuf import (
    BYTES,
    FIXED32,
    FIXED64,
    GROUP,
    SMALLEST,
    VARINT,
    Damage,
    Window,
    fields,
    signed,
    signed32,
    varint,
    varints,
)  # fmt: skip
from core.source import Source

BOUNDED = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def walked(window: Window, size: int) -> tuple[list[tuple[int, int, object]], Damage]:
    """Fields with their payloads, as UnknownFieldSet gives them."""
    damage, found = Damage("file"), list[tuple[int, int, object]]()
    for field, wire, a, b in fields(window, 0, size, "Message", damage):
        if wire == VARINT:
            found.append((field, wire, a))
        elif wire == BYTES:
            found.append((field, wire, window.bytes(a, b)))
        elif wire in (FIXED32, FIXED64):
            found.append((field, wire, int.from_bytes(window.bytes(a, b), "little")))
        else:
            found.append((field, wire, None))
    return found, damage


def has_zero(found: UnknownFieldSet) -> bool:
    """Whether a field number is 0, which the specification forbids and Google's Python takes."""
    return any(f.field_number == 0 or (f.wire_type == GROUP and has_zero(f.data)) for f in found)


def by_google(data: bytes) -> list[tuple[int, int, object]] | None:
    """The fields of a message that knows none, ``None`` where it is not valid."""
    try:
        message = Empty.FromString(data)
    except DecodeError:
        return None
    if has_zero(UnknownFieldSet(message)):
        return None
    return [(f.field_number, f.wire_type, None if f.wire_type == GROUP else f.data) for f in UnknownFieldSet(message)]


@st.composite
def messages(draw: st.DrawFn, depth: int = 0) -> bytes:
    out = b""
    for _ in range(draw(st.integers(0, 6))):
        field = draw(st.one_of(st.integers(1, 20), st.integers(1, (1 << 29) - 1)))
        wire = draw(st.sampled_from([VARINT, FIXED64, BYTES, FIXED32] + ([GROUP] if depth < 3 else [])))
        tag = number(field << 3 | wire)
        if wire == VARINT:
            out += tag + number(draw(st.integers(0, (1 << 64) - 1)))
        elif wire == BYTES:
            length = draw(st.one_of(st.integers(0, 9), st.integers(SMALLEST - 12, SMALLEST + 12), st.just(9000)))
            out += tag + number(length) + bytes(i & 0xFF for i in range(length))
        elif wire == GROUP:
            out += tag + draw(messages(depth + 1)) + number(field << 3 | 4)
        else:
            out += tag + bytes(range(8 if wire == FIXED64 else 4))
    return out


@BOUNDED
@given(messages())
def test_valid_messages_are_walked_as_by_google(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "message"
    path.write_bytes(data or b"\x08\x01")
    found, damage = walked(Window(Source(path)), path.stat().st_size)
    assert damage.errors == []
    assert found == by_google(path.read_bytes())


@BOUNDED
@example(b"\x0b\x0c")  # an empty group
@example(b"\x0b\x14")  # a group that ends with another number
@example(b"\x08" + b"\xff" * 9 + b"\x01")  # ten bytes, the largest number
@example(b"\x08" + b"\xff" * 10 + b"\x01")  # eleven
@example(b"\x88\x80\x80\x80\x00\x01")  # a tag longer than it must be
@example(b"\x00\x01")  # field number 0
@example(b"\x0f")  # wire type 7
@example(b"\x0c")  # the end of no group
@given(st.one_of(st.binary(max_size=40), messages().map(lambda m: m[:-1])))
def test_what_google_refuses_is_noted_and_what_it_takes_is_read(data: bytes) -> None:
    expected = by_google(data)
    found, damage = walked(Window(data), len(data))
    assert bool(damage.count) == (expected is None)
    if expected is not None:
        assert found == expected
    else:
        assert damage.errors[0].byte is not None
        assert 0 <= damage.errors[0].byte <= len(data)


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=50))
def test_packed_numbers_are_decoded_as_written(values: list[int]) -> None:
    raw = b"".join(number(v % (1 << 64)) for v in values)
    assert AttributeProto.FromString(b"\x42" + number(len(raw)) + raw).ints == values  # the encoding is right
    assert varints(raw).view(np.int64).tolist() == values


@pytest.mark.parametrize("data", [b"\x80", b"\x01\xff", b"\xff" * 10 + b"\x01"])
def test_packed_numbers_that_do_not_end_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="packed number"):
        varints(data)


def test_signs() -> None:
    assert [signed(0), signed((1 << 64) - 1), signed(1 << 63)] == [0, -1, -(1 << 63)]
    assert [signed32((1 << 64) - 1), signed32(1 << 32 | 5), signed32(0x80000000)] == [-1, 5, -(1 << 31)]


def test_a_number_is_taken_modulo_two_to_the_64() -> None:
    data = b"\xff" * 9 + b"\x7f"
    found = by_google(b"\x08" + data)
    assert found == [(1, VARINT, varint(data, 0, 10)[0])]


def test_payloads_are_stepped_over(tmp_path: Path) -> None:
    """Ten payloads of 1 MiB: less than 100 KiB of the file are read."""
    path = tmp_path / "large"
    payload = bytes(1 << 20)
    path.write_bytes((b"\x08\x01\x12" + number(len(payload)) + payload) * 10)
    source = Source(path)
    damage = Damage(source.path)
    assert len(list(fields(Window(source), 0, source.size, "Message", damage))) == 20
    assert damage.count == 0
    assert source.bytes_read < 100_000


def test_groups_nested_too_deep_are_refused() -> None:
    data = b"\x0b" * 100_000 + b"\x0c" * 100_000
    _, damage = walked(Window(data), len(data))
    assert damage.count == 1


def test_damage_is_counted_and_not_hoarded() -> None:
    damage = Damage("file")
    for at in range(1000):
        damage.add("wrong", at, "Message")
    assert damage.count == 1000
    assert len(damage.errors) == Damage.KEPT

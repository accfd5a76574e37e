"""JSON of files nobody here made: bounded, no duplicate keys, no endless nesting."""

from __future__ import annotations

import json
from typing import NoReturn, TypeAlias, cast

from core.errors import BrokenFile

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class _Duplicate(ValueError):
    pass


def parse(data: bytes, *, path: str, what: str, byte: int = 0) -> Json:
    """Parse UTF-8 JSON.

    Args:
        what: name of the part of the file, for messages.
        byte: where ``data`` begins in the file.

    Raises:
        BrokenFile: if it is no UTF-8, no JSON, nested too deeply, or an object repeats a key.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BrokenFile("is not UTF-8", path=path, byte=byte + error.start, field=what) from None
    try:
        value = cast(Json, json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant))
    except RecursionError:
        raise BrokenFile("is nested too deeply", path=path, byte=byte, field=what) from None
    except json.JSONDecodeError as error:
        at = byte + len(text[: error.pos].encode("utf-8", "surrogatepass"))
        raise BrokenFile(f"is not JSON: {error.msg}", path=path, byte=at, field=what) from None
    except ValueError as error:
        raise BrokenFile(str(error), path=path, byte=byte, field=what) from None
    return value


def parse_object(data: bytes, *, path: str, what: str, byte: int = 0) -> dict[str, Json]:
    """Parse UTF-8 JSON whose outermost value is an object.

    Raises:
        BrokenFile: as ``parse``, or if it is something else.
    """
    value = parse(data, path=path, what=what, byte=byte)
    if not isinstance(value, dict):
        raise BrokenFile(
            "has the wrong type", path=path, byte=byte, field=what, expected="an object", found=kind(value)
        )
    return value


def kind(value: Json) -> str:
    """The JSON name of a value's type."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a fraction"
        case str():
            return "a string"
        case list():
            return "an array"
        case dict():
            return "an object"


def text(value: str) -> str:
    """The string with lone surrogates, which no UTF-8 file can hold, replaced by U+FFFD."""
    return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if not _plain(value) else value


def _plain(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    items = dict(pairs)
    if len(items) != len(pairs):
        seen: set[str] = set()
        name = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise _Duplicate(f"names {text(name)[:100]!r} twice")
    return items


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"holds {name}, which JSON does not have")

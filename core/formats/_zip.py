"""Zip archives as a list of members with byte ranges; nothing is extracted to disk.

Specification: PKWARE APPNOTE 6.3.10, sections 4.3.7 (local header), 4.3.12 (central directory),
4.3.14 to 4.3.16 (end records and zip64).
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from core.errors import BrokenFile, LimitExceeded
from core.inflate import inflate
from core.ir import Finding
from core.limits import ARCHIVE_MEMBERS, ARCHIVE_RATIO, KIB, MIB, NAME_BYTES, check
from core.source import Source

STORED: Final = 0
DEFLATED: Final = 8
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_DIRECTORY_BYTES: Final = 256 * MIB
_FULL: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Member:
    """One entry of the central directory.

    Attributes:
        method: 0 stored, 8 deflated.
        stored: bytes in the archive; ``size`` after inflating.
        header: where its local header begins.
        link: whether it is a symbolic link (Unix mode in the external attributes).
        encrypted: whether it can only be read with a password.
    """

    name: str
    method: int
    crc: int
    stored: int
    size: int
    header: int
    link: bool
    encrypted: bool


class Archive:
    """The members of a zip file; reads its central directory when constructed.

    Raises:
        BrokenFile: if there is no usable central directory.
        LimitExceeded: if it lists more than ``limits.ARCHIVE_MEMBERS`` members.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.findings: list[Finding] = []
        count, size, offset, shift = self._end()
        self.shift = shift
        self.members = self._directory(count, size, offset + shift)
        self._inspect_names()
        if shift:
            text = f"{shift} bytes of something else stand before the archive."
            self.findings.append(Finding("zip.prepended", "warning", text, "byte 0"))

    @cached_property
    def by_name(self) -> dict[str, Member]:
        """Members by name; of equal names the last one, as most readers have it."""
        return {member.name: member for member in self.members}

    def span(self, member: Member) -> tuple[int, int]:
        """First byte and end of the member's stored bytes; reads its local header.

        Raises:
            BrokenFile: if the local header contradicts the central directory.
        """
        start = member.header + self.shift
        path = self.source.path
        if start + _LOCAL.size > self.source.size:
            raise BrokenFile(f"member {member.name[:200]!r} lies past the end of the file", path=path, byte=start)
        raw = self.source.read(start, min(start + _LOCAL.size + 256, self.source.size))
        fields = _LOCAL.unpack_from(raw)
        if fields[0] != b"PK\3\4":
            raise BrokenFile(
                "is missing",
                path=path,
                byte=start,
                field=f"local header of {member.name[:200]!r}",
                found=fields[0].hex(" "),
            )
        name_length, extra = fields[9], fields[10]
        name = raw[_LOCAL.size : _LOCAL.size + name_length]
        if len(name) == name_length and _text(name, fields[2]) != member.name:
            found = _text(name, fields[2])[:200]
            raise BrokenFile(
                "differ", path=path, byte=start, field="member names in local header and directory",
                expected=repr(member.name[:200]), found=repr(found),
            )  # fmt: skip
        begin = start + _LOCAL.size + name_length + extra
        if begin + member.stored > self.source.size:
            raise BrokenFile(
                f"member {member.name[:200]!r} needs {member.stored} bytes past the end of the file",
                path=path,
                byte=begin,
            )
        return begin, begin + member.stored

    def read(self, member: Member, bound: int, *, prefix: bool = False) -> bytes:
        """Read and inflate a member of at most ``bound`` bytes, its CRC checked.

        Args:
            prefix: read only the first ``bound`` bytes of a longer one, without the CRC check.

        Raises:
            BrokenFile: if it is damaged, encrypted or packed in an unknown way.
            LimitExceeded: if it is longer, or inflates more than ``limits.ARCHIVE_RATIO`` to 1.
        """
        if member.encrypted:
            raise BrokenFile(f"member {member.name[:200]!r} is encrypted", path=self.source.path)
        if not prefix:
            check(f"the size of member {member.name[:200]!r}", member.size, bound, path=self.source.path)
        start, stop = self.span(member)
        if member.method == STORED:
            data = b"".join(self.source.blocks(start, min(stop, start + bound)))
        elif member.method == DEFLATED:
            self.check_ratio(member)
            data = inflate(self.source, start, stop, min(bound, member.size))
        else:
            raise BrokenFile(f"member {member.name[:200]!r} uses packing method {member.method}", path=self.source.path)
        if len(data) == member.size:
            if zlib.crc32(data) != member.crc:
                raise BrokenFile(
                    "does not match its bytes",
                    path=self.source.path,
                    byte=start,
                    field=f"CRC of member {member.name[:200]!r}",
                )
        elif not prefix:
            raise BrokenFile(
                "is wrong", path=self.source.path, byte=start, field=f"size of member {member.name[:200]!r}",
                expected=member.size, found=len(data),
            )  # fmt: skip
        return data

    def check_ratio(self, member: Member) -> None:
        """Refuse a member that inflates beyond ``limits.ARCHIVE_RATIO`` (small ones may).

        Raises:
            LimitExceeded: with both sizes.
        """
        if member.size > 16 * MIB and member.size > ARCHIVE_RATIO * max(1, member.stored):
            text = f"member {member.name[:200]!r} inflates {member.stored} bytes to {member.size}"
            hint = f"Modelglass inflates at most {ARCHIVE_RATIO} to 1; repack the archive without compression."
            raise LimitExceeded(text, path=self.source.path, hint=hint)

    def _end(self) -> tuple[int, int, int, int]:
        """Member count, directory size, offset, and bytes that stand before the archive."""
        source = self.source
        begin = max(0, source.size - 64 * KIB - _END.size)
        tail = source.read(begin, source.size)
        at = tail.rfind(b"PK\5\6")
        if at < 0 or at + _END.size > len(tail):
            hint = "The archive is cut off or is still being written; download or save it again."
            raise BrokenFile("has no zip central directory at its end", path=source.path, byte=source.size, hint=hint)
        _, _, _, _, count, size, offset, _ = _END.unpack_from(tail, at)
        directory_end = begin + at
        wide = self._end64(begin + at)
        if wide is not None:  # torch writes the zip64 records even where it does not need them
            count, size, offset, directory_end = wide
        check("the number of archive members", count, ARCHIVE_MEMBERS, path=source.path)
        shift = directory_end - size - offset
        if shift < 0 or size > directory_end or size > _DIRECTORY_BYTES:
            raise BrokenFile(
                "leaves the file", path=source.path, byte=begin + at, field="central directory",
                expected=f"at most {directory_end} bytes", found=f"{size} bytes at {offset}",
            )  # fmt: skip
        return count, size, offset, shift

    def _end64(self, end: int) -> tuple[int, int, int, int] | None:
        source, locator = self.source, end - 20
        if locator < 0:
            return None
        raw = source.read(locator, end)
        if raw[:4] != b"PK\6\7":
            return None
        at = int.from_bytes(raw[8:16], "little")
        # Bytes before the archive move the record; it then ends where its locator begins.
        for place in (at, locator - _END64.size):
            if 0 <= place <= source.size - _END64.size:
                fields = _END64.unpack(source.read(place, place + _END64.size))
                if fields[0] == b"PK\6\6":
                    return fields[7], fields[8], fields[9], place
        raise BrokenFile("is missing", path=source.path, byte=at, field="zip64 end record")

    def _directory(self, count: int, size: int, start: int) -> tuple[Member, ...]:
        data = b"".join(self.source.blocks(start, start + size))
        members, at = list[Member](), 0
        for _ in range(count):
            if at + _CENTRAL.size > len(data) or data[at : at + 4] != b"PK\1\2":
                raise BrokenFile(
                    "is damaged", path=self.source.path, byte=start + at, field="central directory",
                    expected=f"{count} members", found=len(members),
                )  # fmt: skip
            member, at = _member(data, at)
            members.append(member)
        return tuple(members)

    def _inspect_names(self) -> None:
        seen: set[str] = set()
        for member in self.members:
            name = member.name
            if name in seen:
                self._found("zip.duplicate", f"Two members are called {name[:200]!r}; readers disagree which counts.")
            seen.add(name)
            parts = name.replace("\\", "/").split("/")
            if ".." in parts or parts[0] == "" or "\0" in name or parts[0][1:2] == ":":
                self._found("zip.path", f"Member {name[:200]!r} would be unpacked outside the target folder.")
            if member.link:
                self._found("zip.link", f"Member {name[:200]!r} is a symbolic link; it is not followed.")

    def _found(self, code: str, message: str) -> None:
        if len(self.findings) < 100:
            self.findings.append(Finding(code, "error", message))


def _member(data: bytes, at: int) -> tuple[Member, int]:
    fields = _CENTRAL.unpack_from(data, at)
    flags, method, crc, stored, size = fields[3], fields[4], fields[7], fields[8], fields[9]
    name_length, extra_length, comment_length, attributes, header = (
        fields[10],
        fields[11],
        fields[12],
        fields[15],
        fields[16],
    )
    check("the length of a member name", name_length, NAME_BYTES)
    name_end = at + _CENTRAL.size + name_length
    name = _text(data[at + _CENTRAL.size : name_end], flags)
    if _FULL in (stored, size, header):
        stored, size, header = _wide(data[name_end : name_end + extra_length], stored, size, header)
    link = (attributes >> 28) & 0xF == 0xA
    return Member(
        name, method, crc, stored, size, header, link, bool(flags & 1)
    ), name_end + extra_length + comment_length


def _wide(extra: bytes, stored: int, size: int, header: int) -> tuple[int, int, int]:
    """Replace 32-bit fields of all ones by those of the zip64 extra field (id 1), in its order."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            body, place = extra[at + 4 : at + 4 + length], 0
            values = [size, stored, header]
            for index, value in enumerate(values):
                if value == _FULL and place + 8 <= len(body):
                    values[index] = int.from_bytes(body[place : place + 8], "little")
                    place += 8
            return values[1], values[0], values[2]
        at += 4 + length
    return stored, size, header


def _text(raw: bytes, flags: int) -> str:
    return raw.decode("utf-8", "replace") if flags & 0x800 or raw.isascii() else raw.decode("cp437")

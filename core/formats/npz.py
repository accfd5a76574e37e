"""NumPy ``.npz``: a zip of ``.npy`` members, stored or deflated; no pickle is ever read."""

from __future__ import annotations

from core.errors import BrokenFile, LimitExceeded, ModelError
from core.formats._zip import STORED, Archive, Member
from core.formats.head import Head
from core.formats.npy import HEADER_BOUND, MAGIC, Header, array_model, parse, parse_bytes, tensor_of
from core.ir import ByteRange, Finding, Model, Tensor
from core.limits import KIB, TENSORS, check


def match(head: Head) -> int:
    """3 for a zip whose first member is called ``*.npy``; 2 by suffix for any zip."""
    if head.source is None or not head.start.startswith(b"PK"):
        return 0
    length = int.from_bytes(head.start[26:28], "little")
    if head.start[:4] == b"PK\3\4" and head.start[30 : 30 + length].endswith(b".npy"):
        return 3
    return 2 if head.suffix == ".npz" else 0


def read(head: Head) -> Model:
    """Open an ``.npz``; reads the directory and the header of each array.

    Raises:
        BrokenFile: if there is no usable central directory, or no array at all.
    """
    assert head.source is not None
    archive = Archive(head.source)
    arrays = [m for m in archive.members if m.name.endswith(".npy") and not m.link]
    check("the number of arrays", len(arrays), TENSORS, path=head.path)
    if not arrays:
        raise BrokenFile("is a zip archive without .npy members", path=head.path)
    tensors = tuple(_array(archive, member) for member in arrays)
    others = [m.name for m in archive.members if not m.name.endswith(".npy")]
    extra = [*archive.findings]
    if others:
        text = f"{len(others)} members are no arrays and are not read, e.g. {others[0][:200]!r}."
        extra.append(Finding("npz.other", "info", text))
    return array_model(head, "npz", "NumPy archive", tensors, tuple(extra))


def _array(archive: Archive, member: Member) -> Tensor:
    name = member.name.removesuffix(".npy")
    try:
        if member.method == STORED:
            start, stop = archive.span(member)
            return tensor_of(name, parse(archive.source, start, stop), 0, start, stop)
        return _deflated(archive, member, name)
    except ModelError as error:
        return Tensor(name, "opaque", (), None, problem=error.message)


def _deflated(archive: Archive, member: Member, name: str) -> Tensor:
    """An array whose bytes are inflated on demand (encoding ``deflate``)."""
    head = archive.read(member, 4 * KIB, prefix=True)
    if not head.startswith(MAGIC):
        raise BrokenFile("is no NumPy array", path=archive.source.path, field=f"member {member.name[:200]!r}")
    needs = int.from_bytes(head[8:12], "little") if head[6] >= 2 else int.from_bytes(head[8:10], "little")
    if needs + 12 > len(head) and len(head) < member.size:
        if needs > HEADER_BOUND:
            raise LimitExceeded(f"header length is {needs}, allowed is 0 to {HEADER_BOUND}", path=archive.source.path)
        head = archive.read(member, needs + 12, prefix=True)
    archive.check_ratio(member)
    header = parse_bytes(head, member.size, archive.source)
    plain = tensor_of(name, header, 0, 0, member.size)
    return plain if plain.problem else _inflated_later(plain, header, archive.span(member))


def _inflated_later(plain: Tensor, header: Header, span: tuple[int, int]) -> Tensor:
    if plain.encoding != "plain":
        problem = "is compressed and big-endian at once, which is not decoded"
        return Tensor(plain.name, plain.dtype, plain.shape, None, problem=problem)
    return Tensor(
        plain.name, plain.dtype, plain.shape, ByteRange(0, *span), f"deflate+{header.length}", strides=plain.strides
    )

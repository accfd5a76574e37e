"""What a torch pickle describes: tensors with their storages, found anywhere in the object.

The rebuild functions are those of ``torch/_utils.py``; storages are persistent ids
``("storage", class, key, location, elements)`` (torch/serialization.py). Nothing is called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from core.formats._pickle_objects import Call, Global, Persistent, as_dict, as_tuple
from core.formats.npy import PLAIN, column_major
from core.limits import ELEMENTS, NESTING, RANK, TENSORS

STORAGE_DTYPES: Final[dict[str, str]] = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "QInt8Storage": "int8", "QUInt8Storage": "uint8", "QInt32Storage": "int32",
    "QUInt4x2Storage": "uint4", "QUInt2x4Storage": "uint2", "UntypedStorage": "uint8",
}  # fmt: skip
TORCH_DTYPES: Final[dict[str, str]] = {
    "float64": "float64", "double": "float64", "float32": "float32", "float": "float32", "float16": "float16",
    "half": "float16", "bfloat16": "bfloat16", "float8_e4m3fn": "float8e4m3fn", "float8_e5m2": "float8e5m2",
    "float8_e4m3fnuz": "float8e4m3fnuz", "float8_e5m2fnuz": "float8e5m2fnuz", "float8_e8m0fnu": "float8e8m0",
    "float4_e2m1fn_x2": "float4e2m1", "int64": "int64", "long": "int64", "int32": "int32", "int": "int32",
    "int16": "int16", "short": "int16", "int8": "int8", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32",
    "uint64": "uint64", "bool": "bool", "complex64": "complex64", "cfloat": "complex64", "complex128": "complex128",
    "cdouble": "complex128", "qint8": "int8", "quint8": "uint8", "qint32": "int32",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Storage:
    """A storage as a persistent id names it.

    Attributes:
        key: member or key of its bytes.
        elements: how many the pickle says it has.
    """

    key: str
    dtype: str
    elements: int
    location: str


@dataclass(frozen=True, slots=True)
class Found:
    """One tensor of the object.

    Attributes:
        storage: ``None`` where it has no bytes in the file (meta, sparse, numpy, unknown kinds).
        offset, strides: in elements.
        array: bytes of a numpy array that the pickle holds itself.
        problem: why it cannot be decoded.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    offset: int
    storage: Storage | None
    array: bytes | None = None
    problem: str = ""
    parameter: bool = False


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """One ``nn.Module`` of a whole pickled model: its path and class, never executed."""

    path: str
    type_name: str


def storage_of(value: Any) -> Storage | None:
    """The storage behind a persistent id, ``None`` where it is something else."""
    if isinstance(value, Call) and value.path.endswith("TypedStorage"):
        value = next((item for item in value.arguments if isinstance(item, Persistent)), value)
    if not isinstance(value, Persistent):
        return None
    parts = as_tuple(value.id)
    if len(parts) < 5 or parts[0] != "storage" or not isinstance(parts[1], Global):
        return None
    name = parts[1].name
    dtype = STORAGE_DTYPES.get(name) or TORCH_DTYPES.get(name, "uint8")
    elements = parts[4] if type(parts[4]) is int else -1
    return Storage(str(parts[2]), dtype, elements, str(parts[3]))


def tensors(value: Any) -> Iterator[Found]:
    """All tensors reachable from ``value``, in order, each under the path that leads to it.

    Every object is visited once, so a pickle whose memo refers back to itself a billion times
    costs what its bytes cost; a tensor met again under another name is yielded again only where
    a dictionary or a module holds it (tied weights).
    """
    visited: set[int] = set()
    pending: list[tuple[str, Any, int]] = [("", value, 0)]
    count = 0
    while pending:
        path, item, depth = pending.pop()
        found = _tensor(path, item)
        if found is not None:
            count += 1
            if count > TENSORS:
                return
            yield found
            continue
        if id(item) in visited or depth > NESTING:
            continue
        if isinstance(item, dict | list | tuple | Call):
            visited.add(id(cast(object, item)))
            pending.extend(reversed([(_join(path, key), child, depth + 1) for key, child in _children(item)]))


def modules(value: Any) -> list[ModuleRow]:
    """Module paths and classes of a whole pickled ``nn.Module``, outermost first."""
    rows: list[ModuleRow] = []
    visited: set[int] = set()
    pending: list[tuple[str, Any]] = [("", value)]
    while pending and len(rows) < 100_000:
        path, item = pending.pop()
        if id(item) in visited:
            continue
        visited.add(id(item))
        state = module_state(item)
        if state is not None and "_modules" in state:
            rows.append(ModuleRow(path, cast(Call, item).path))
            children = child_table(state["_modules"])
            pending.extend(reversed([(_join(path, key), child) for key, child in children.items()]))
        elif isinstance(item, dict):
            table = cast(dict[Any, Any], item)
            pending.extend(reversed([(_join(path, key), child) for key, child in table.items() if _may_hold(child)]))
    return rows


def _may_hold(child: Any) -> bool:
    """Whether a module may be here: most entries of a checkpoint are tensors, which have no state."""
    return isinstance(child, dict) or (isinstance(child, Call) and module_state(child) is not None)


def scalars(value: Any, bound: int = 500) -> dict[str, str]:
    """Plain values at the top of a checkpoint (epoch, hyper-parameters), as text by path."""
    rows: dict[str, str] = {}
    pending: list[tuple[str, Any, int]] = [("", value, 0)]
    while pending and len(rows) < bound:
        path, item, depth = pending.pop()
        if path and isinstance(item, str | int | float | bool):
            rows[path] = str(item)[:2000]
        elif depth < 3 and not (isinstance(item, Call) and item.path in _REBUILD):
            table = child_table(item)
            pending.extend(reversed([(_join(path, key), child, depth + 1) for key, child in table.items()][:bound]))
    return rows


def _children(item: Any) -> Iterator[tuple[Any, Any]]:
    state = module_state(item)
    if state is not None and "_modules" in state:
        for part in ("_parameters", "_buffers", "_modules"):
            yield from child_table(state.get(part)).items()
        return
    if isinstance(item, Call):
        table = child_table(item)
        yield from table.items()
        yield from enumerate(item.elements)
        yield from _children(item.state)
        if not table:
            yield from (("", arg) for arg in item.arguments)
    elif isinstance(item, dict):
        yield from cast(dict[Any, Any], item).items()
    elif isinstance(item, list | tuple):
        yield from enumerate(cast(list[Any], item))


def module_state(item: Any) -> dict[str, Any] | None:
    """The attribute table of a pickled ``nn.Module`` (or what could be one), else ``None``."""
    if not isinstance(item, Call):
        return None
    if item.path.startswith("torch.fx.graph_module.reduce_"):
        return next((table for table in map(as_dict, item.arguments) if table is not None), None)
    return as_dict(item.state)


def child_table(value: Any) -> dict[Any, Any]:
    """The dictionary behind a dict, an OrderedDict or anything that got items; else empty."""
    if isinstance(value, dict):
        return cast(dict[Any, Any], value)
    if isinstance(value, Call):
        if value.items:
            return value.items
        first = value.arguments[:1]
        if first and isinstance(first[0], list):  # protocol 0 and 1: OrderedDict([[key, value], ...])
            pairs = cast(list[Any], first[0])
            return {p[0]: p[1] for p in pairs if isinstance(p, list | tuple) and len(cast(Any, p)) == 2}
    return {}


def _join(path: str, key: Any) -> str:
    text = str(key)[:1000]
    return f"{path}.{text}" if path and text else path or text


def _tensor(path: str, item: Any) -> Found | None:
    """The tensor that ``item`` would be rebuilt to, ``None`` where it is something else."""
    if not isinstance(item, Call):
        return None
    rebuild = _REBUILD.get(item.path)
    if rebuild is None:
        return None
    try:
        return rebuild(path, item, item.arguments)
    except (IndexError, TypeError, ValueError, AttributeError) as error:
        return Found(path, "opaque", (), None, 0, None, problem=f"{item.path} has unusable arguments ({error})")


def _sizes(value: Any) -> tuple[int, ...]:
    if isinstance(value, Call):  # torch.Size((2, 3))
        value = value.args[0]
    items = tuple(value)
    if len(items) > RANK or (items and set(map(type, items)) != {int}):
        raise ValueError(f"sizes {str(items)[:60]}")
    return items


def _strided(path: str, item: Call, args: tuple[Any, ...]) -> Found:
    """``_rebuild_tensor_v2(storage, offset, size, stride, ...)`` and v3, which adds the dtype."""
    storage = storage_of(args[0])
    shape, strides, offset = _sizes(args[2]), _sizes(args[3]), args[1]
    if type(offset) is not int or len(shape) != len(strides):
        raise ValueError("offset or strides")
    dtype = storage.dtype if storage else "opaque"
    named = args[6] if item.path.endswith("_v3") else None
    if isinstance(named, Global):
        dtype = TORCH_DTYPES.get(named.name, "opaque")
    problem = _view_problem(shape, strides, offset) if storage else "its storage is no storage"
    if dtype == "opaque" and not problem:
        problem = "its element type is unknown"
    return Found(path, dtype, shape, strides, offset, storage, problem=problem)


def _view_problem(shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> str:
    if min((offset, *shape, *strides)) < 0:
        return f"size {list(shape)}, stride {list(strides)} or offset {offset} is negative"
    return f"size {list(shape)} has too many elements" if math.prod(shape) > ELEMENTS else ""


def _parameter(path: str, item: Call, args: tuple[Any, ...]) -> Found | None:
    inner = _tensor(path, args[0])
    if inner is None:
        return None
    return Found(
        inner.name,
        inner.dtype,
        inner.shape,
        inner.strides,
        inner.offset,
        inner.storage,
        inner.array,
        inner.problem,
        True,
    )


def _from_type(path: str, item: Call, args: tuple[Any, ...]) -> Found | None:
    """``_rebuild_from_type_v2(function, type, args, state)``: a subclass around another rebuild."""
    return _tensor(path, Call(args[0], args[2]))


def _sparse(path: str, item: Call, args: tuple[Any, ...]) -> Found:
    shape = _sizes(args[1][2]) if len(args) > 1 and isinstance(args[1], tuple) and len(cast(Any, args[1])) > 2 else ()
    return Found(path, "float32", shape, None, 0, None, problem="is a sparse tensor, which is not decoded")


def _meta(path: str, item: Call, args: tuple[Any, ...]) -> Found:
    dtype = TORCH_DTYPES.get(args[0].name, "opaque") if isinstance(args[0], Global) else "opaque"
    return Found(path, dtype, _sizes(args[1]), None, 0, None, problem="is a meta tensor, which has no values")


def _numpy(path: str, item: Call, args: tuple[Any, ...]) -> Found | None:
    """``numpy._core.multiarray._reconstruct`` whose state is (version, shape, dtype, fortran, bytes)."""
    state = as_tuple(item.state)
    if len(state) < 5:
        return None
    _, shape, kind, fortran, raw = state[:5]
    sizes, code, big = _sizes(shape), "", False
    if isinstance(kind, Call):
        code = str(next(iter(kind.arguments), ""))
        big = ">" in as_tuple(kind.state)
    data = _raw_bytes(raw)
    if data is None:
        return Found(path, "opaque", sizes, None, 0, None, problem="holds Python objects, which are not read")
    known = PLAIN.get(code.lstrip("<>|="), "opaque")
    problem = "is big-endian, which is not decoded here" if big else ""
    if known == "opaque":
        problem = f"its element type {code[:40]!r} is no plain number"
    return Found(path, known, sizes, column_major(sizes) if fortran else None, 0, None, data, problem)


def _raw_bytes(raw: Any) -> bytes | None:
    """The elements of an array: bytes, or latin-1 text (alone, or in ``_codecs.encode``) below protocol 3."""
    if isinstance(raw, Call) and raw.path == "_codecs.encode":
        raw = next(iter(raw.arguments), None)
    if isinstance(raw, str):
        return raw.encode("latin-1")
    return raw if isinstance(raw, bytes) else None


Rebuild = Callable[[str, Call, tuple[Any, ...]], Found | None]

_REBUILD: Final[dict[str, Rebuild]] = {
    "torch._utils._rebuild_tensor": _strided,
    "torch._utils._rebuild_tensor_v2": _strided,
    "torch._utils._rebuild_tensor_v3": _strided,
    "torch._utils._rebuild_qtensor": _strided,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._utils._rebuild_sparse_tensor": _sparse,
    "torch._utils._rebuild_nested_tensor": _sparse,
    "torch._utils._rebuild_meta_tensor_no_storage": _meta,
    "torch._tensor._rebuild_from_type_v2": _from_type,
    "torch.nn.parameter.Parameter": _parameter,
    "numpy.core.multiarray._reconstruct": _numpy,
    "numpy._core.multiarray._reconstruct": _numpy,
}

"""A model as Arrow tables: its tensors, and nodes and values straight from the graph columns."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DTYPES
from core.ir import ByteRange, Graph, Tensor
from core.store.arrow import clamp, coded, constant, lists, pa, rows_of_ints, texts

_DTYPE_NAMES = tuple(DTYPES)


def tensor_rows(tensors: Sequence[Tensor], artifact: int) -> Any:
    """The ``tensors`` rows of an artifact."""
    ranges = [t.data if isinstance(t.data, ByteRange) else None for t in tensors]
    return pa.table(
        {
            "artifact": constant(artifact, len(tensors), "int32"),
            "idx": pa.array(np.arange(len(tensors), dtype=np.int32)),
            "name": texts([t.name for t in tensors]),
            "dtype": texts([t.dtype for t in tensors]),
            "encoding": texts([t.encoding for t in tensors]),
            "shape": rows_of_ints(t.shape for t in tensors),
            "elements": pa.array([clamp(t.elements) for t in tensors], pa.int64()),
            "bytes": pa.array([clamp(t.nbytes) for t in tensors], pa.int64()),
            "source": pa.array([-1 if r is None else r.source for r in ranges], pa.int32()),
            "start": pa.array([-1 if r is None else r.start for r in ranges], pa.int64()),
            "stop": pa.array([-1 if r is None else r.stop for r in ranges], pa.int64()),
            "role": texts([t.role for t in tensors]),
            "graph": pa.array([t.graph for t in tensors], pa.int32()),
            "storage": pa.array([t.storage for t in tensors], pa.int32()),
            "quantized": pa.array([t.quantization is not None for t in tensors], pa.bool_()),
            "problem": texts([t.problem for t in tensors]),
        }
    )


def node_rows(graph: Graph, artifact: int, first: int) -> Any:
    """The ``nodes`` rows of one graph; ``first`` is the number of nodes in the graphs before it."""
    c, count = graph.columns, graph.node_count
    return pa.table(
        {
            "artifact": constant(artifact, count, "int32"),
            "graph": constant(graph.index, count, "int32"),
            "idx": pa.array(np.arange(count, dtype=np.int32)),
            "row": pa.array(np.arange(first, first + count, dtype=np.int32)),
            "name": texts(c.node_names),
            "op_type": coded(c.op_type, c.strings),
            "domain": coded(c.domain, c.strings),
            "scope": coded(c.scope, c.strings),
            "inputs": lists(c.input_offsets, c.inputs),
            "outputs": lists(c.output_offsets, c.outputs),
        }
    )


def value_rows(graph: Graph, artifact: int, first: int) -> Any:
    """The ``values`` rows of one graph; ``first`` is the number of values in the graphs before it."""
    c, count = graph.columns, graph.value_count
    return pa.table(
        {
            "artifact": constant(artifact, count, "int32"),
            "graph": constant(graph.index, count, "int32"),
            "idx": pa.array(np.arange(count, dtype=np.int32)),
            "row": pa.array(np.arange(first, first + count, dtype=np.int32)),
            "name": texts(c.value_names),
            "dtype": coded(c.dtype, _DTYPE_NAMES),
            "shape": _shapes(graph),
            "producer": pa.array(c.producer),
            "consumers": pa.array(np.diff(c.consumer_offsets)),
            "tensor": pa.array(c.tensor),
            "is_input": pa.array((c.flags & 1).astype(np.bool_)),
            "is_output": pa.array((c.flags & 2).astype(np.bool_)),
        }
    )


def mark(tables: Sequence[Any]) -> str:
    """A checksum over the rows of some tables, equal for equal rows of any artifact key."""
    value = 0
    for table in tables:
        value = zlib.crc32(f"{table.schema}{table.num_rows}".encode(), value)
        for column in table.drop_columns(["artifact"]).columns:
            for chunk in column.chunks:
                for buffer in chunk.buffers():
                    if buffer is not None:
                        value = zlib.crc32(buffer, value)
    return f"{value:08x}"


def _shapes(graph: Graph) -> Any:
    """Dimensions as text: each distinct one is written once and taken by code."""
    c = graph.columns
    distinct: NDArray[np.int64]
    distinct, where = np.unique(c.dims, return_inverse=True)
    words: list[str] = [str(d) if d >= 0 else "?" if d == -1 else c.strings[-2 - d] for d in map(int, distinct)]
    flat = pa.DictionaryArray.from_arrays(pa.array(where.astype(np.int32)), texts(words)).cast(pa.string())
    return lists(c.dim_offsets, flat, c.rank < 0)

"""Opening ONNX: 1.8 GB of embedded weights beside a cold read of its metadata, 50,000 nodes beside ``onnx.load``.

Each figure is a child process: CPU caches and allocators of one side do not help the other. The file is
written for real (no holes) and dropped from the page cache before each run of the first part.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, save

RUNS = 5
SAMPLE = Path(__file__).parents[2] / "app" / "sample" / "sample.onnx"
LAYERS = 450
SIDE = 1000

COMMON = """
import json, os, sys, time
def memory(key):
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(key))
def drop(path):
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
path = sys.argv[1]
"""

OURS_COLD = (
    COMMON
    + """
from core import open_model
from core.formats.table import FORMATS
[__import__(f.module) for f in FORMATS]
open_model(sys.argv[2])  # the code is warm, as in a running dashboard; the file is not
drop(path)
before, start = memory("VmRSS"), time.perf_counter()
model = open_model(path)
rows = [(t.name, t.dtype, t.shape) for t in model.tensors]
took = time.perf_counter() - start
ranges = []
for t in model.tensors:
    ranges.append((t.data.start, t.data.stop))
print(json.dumps([took, memory("VmHWM") - before, model.node_count + len(rows), sorted(ranges)]))
"""
)

COLD_READ = (
    COMMON
    + """
ranges = json.loads(sys.stdin.read())
drop(path)
fd = os.open(path, os.O_RDONLY)
start, at, total = time.perf_counter(), 0, 0
for first, stop in [*ranges, (os.fstat(fd).st_size,) * 2]:
    total += len(os.pread(fd, first - at, at))
    at = stop
print(json.dumps([time.perf_counter() - start, 0, total]))
"""
)

OURS = (
    COMMON
    + """
from core import open_model
from core.formats.table import FORMATS
[__import__(f.module) for f in FORMATS]
before, start = memory("VmRSS"), time.process_time()
model = open_model(path)
g = model.main_graph
count = g.node_count + len(g.columns.inputs) + len(g.columns.outputs)
print(json.dumps([time.process_time() - start, memory("VmHWM") - before, count]))
"""
)

ONNX = (
    COMMON
    + """
import onnx
before, start = memory("VmRSS"), time.process_time()
model = onnx.load(path)
rows = [(n.name, n.op_type, list(n.input), list(n.output)) for n in model.graph.node]
count = len(rows) + sum(len(r[2]) + len(r[3]) for r in rows)
print(json.dumps([time.process_time() - start, memory("VmHWM") - before, count]))
"""
)


def main() -> None:
    """Print two lines: ours, the peer, their ratio, the target, and memory above what was there before."""
    print(f"{'file':<44}{'ours s':>9}{'peer s':>9}{'ratio':>8}{'target':>8}{'memory MB':>11}{'target':>8}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.onnx"
        make_large(path)
        ours = [_run(OURS_COLD, path) for _ in range(RUNS)]
        ranges = json.dumps(ours[0][3])
        theirs = [_run(COLD_READ, path, ranges) for _ in range(RUNS)]
        size = path.stat().st_size / 1e9
        _line(f"{size:.1f} GB embedded weights, cold, wall time", ours, theirs, 2.0, 16)
        path.unlink()
        path = Path(folder) / "nodes.onnx"
        make_nodes(path)
        ours, theirs = [_run(OURS, path) for _ in range(RUNS)], [_run(ONNX, path) for _ in range(RUNS)]
        assert ours[0][2] == theirs[0][2], "both sides must list the same nodes and ports"
        _line("50,000 nodes, CPU time, against onnx.load + rows", ours, theirs, 1.2, 80)


def _line(title: str, ours: list[list[float]], theirs: list[list[float]], target: float, memory: int) -> None:
    mine, other = (statistics.median(run[0] for run in runs) for runs in (ours, theirs))
    peak = max(run[1] for run in ours) / 1000
    print(f"{title:<44}{mine:>9.4f}{other:>9.4f}{mine / other:>8.2f}{target:>8.2f}{peak:>11.1f}{memory:>8}")


def _run(code: str, path: Path, given: str = "") -> list[float]:
    environment = dict(os.environ, PYTHONPATH=str(Path(__file__).parents[2]))
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(SAMPLE)],
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def make_large(path: Path) -> None:
    """A chain of matrix products with 1.8 GB of weights inside, written message by message."""
    row = np.random.default_rng(0).standard_normal((SIDE, SIDE)).astype(np.float32).tobytes()
    nodes = [helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"], name=f"layer{i}") for i in range(LAYERS)]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", SIDE]) for n in ("v0", f"v{LAYERS}")]
    graph = bytearray(helper.make_graph(nodes, "g", ends[:1], ends[1:]).SerializeToString())
    heads = []
    for i in range(LAYERS):
        tensor = TensorProto(dims=[SIDE, SIDE], data_type=TensorProto.FLOAT, name=f"w{i}").SerializeToString()
        tensor += b"\x4a" + _varint(len(row))
        heads.append(b"\x2a" + _varint(len(tensor) + len(row)) + tensor)
    total = len(graph) + sum(len(head) + len(row) for head in heads)
    rest = (
        helper.make_model(helper.make_graph([], "", [], []), ir_version=9).SerializeToString().replace(b"\x3a\x00", b"")
    )
    with path.open("wb") as file:
        file.write(rest + b"\x3a" + _varint(total) + graph)
        for head in heads:
            file.write(head)
            file.write(row)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def make_nodes(path: Path) -> None:
    """50,000 operators in a chain with attributes on every fifth."""
    nodes = [
        helper.make_node(
            "Relu" if i % 5 else "Softmax",
            [f"value_{i}"],
            [f"value_{i + 1}"],
            name=f"/layers.{i // 100}/op_{i}",
            **({} if i % 5 else {"axis": -1}),
        )
        for i in range(50_000)
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n"]) for n in ("value_0", "value_50000")]
    save(helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:])), path)


if __name__ == "__main__":
    main()

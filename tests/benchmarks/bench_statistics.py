"""Speed and memory of tensor statistics, beside ``numpy.sum`` over float32 in memory.

    python -m tests.benchmarks.bench_statistics [--gigabytes 4] [--folder FOLDER]

Kernels are compiled, or loaded from their cache, before anything is timed; that is printed apart.
Memory is VmHWM after the scan less VmRSS before it, the mark reset in between (Linux only).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from core import open_model
from core.dtypes import dtype_of
from core.ir import ByteRange, Model, Tensor
from core.limits import MIB
from core.source import Source
from core.statistics import engine
from core.statistics.scan import scan
from core.statistics.tensors import of_tensor

TARGETS = {"float32": 0.10, "float16": 0.15, "bfloat16": 0.15, "int8": 0.20}
OTHERS = ("float64", "int64")
MEMORY_TARGET = 16.0
PART = 512 * MIB


def main(arguments: list[str] | None = None) -> None:
    """Print one line a figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--memory-of", type=Path, default=None, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.memory_of is not None:
        _memory_of(chosen.memory_of)
        return
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        engine.keep_compiled_in(Path(folder) / "kernels")
        started = time.perf_counter()
        if not engine.warm_up():
            print("Numba is missing: figures are those of the numpy path")
        print(f"kernels compiled in {time.perf_counter() - started:.1f} s (once, then cached)")
        array = np.random.default_rng(0).standard_normal(PART // 8).astype(np.float32)
        path = _random_file(Path(folder) / "weights.bin", int(chosen.gigabytes * (1 << 30)))
        _speeds(path, array)
        _memory(path)
        path.unlink()
        _safetensors(Path(folder) / "model.safetensors", array)


def _sum_speed(array: np.ndarray) -> float:
    """Measured anew beside each figure, for other work on the machine comes and goes."""
    return array.nbytes / _best(array.sum) / 1e9


def _best(work: Callable[[], object], times: int = 3) -> float:
    taken: list[float] = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)


def _random_file(path: Path, size: int) -> Path:
    """Normal float32 numbers without a zero, so that no part of the file is a hole."""
    random = np.random.default_rng(1)
    with path.open("wb") as file:
        while file.tell() < size:
            block = random.standard_normal(16 * MIB, dtype=np.float32) * np.float32(0.02)
            block[block == 0] = 1
            for _ in range(4):
                file.write(block.tobytes()[: size - file.tell()])
    return path


def _model(path: Path, dtype: str, size: int) -> Model:
    tensor = Tensor("weights", dtype, (size * 8 // dtype_of(dtype).bits,), ByteRange(0, 0, size))
    return Model("bench", "benchmark file", str(path), (Source(path),), {}, (tensor,), (), {})


def _speeds(path: Path, array: np.ndarray) -> None:
    """The best of three rounds, each with ``numpy.sum`` in it; targets are those of one pass."""
    size = min(PART, path.stat().st_size)
    for dtype in (*TARGETS, *OTHERS):
        model = _model(path, dtype, size)
        rounds = [(_sum_speed(array), _speed(size, lambda m=model: of_tensor(m, 0, exact=False))) for _ in range(3)]
        reference, one = (max(figures) for figures in zip(*rounds, strict=True))
        started = time.process_time()
        of_tensor(model, 0, exact=False)
        core = size / (time.process_time() - started) / 1e9
        two = _speed(size, lambda m=model: of_tensor(m, 0, exact=True))
        target = TARGETS.get(dtype)
        verdict = (
            "" if target is None else f" (target {target:.2f}, {'met' if one / reference >= target else 'MISSED'})"
        )
        print(
            f"{dtype:9} {one:6.2f} GB/s = {one / reference:.2f} of numpy.sum's {reference:.2f} GB/s{verdict}; "
            f"{core:.2f} GB a CPU second; exact quantiles {two:.2f} GB/s"
        )


def _speed(size: int, work: Callable[[], object]) -> float:
    return size / _best(work, 1) / 1e9


def _memory(path: Path) -> None:
    """Scan in a process of its own, so that nothing freed before is used again unseen."""
    if not sys.platform.startswith("linux"):
        print("memory: only measured on Linux")
        return
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-m", "tests.benchmarks.bench_statistics", "--memory-of", str(path)]
    subprocess.run(command, cwd=root, env={**os.environ, "PYTHONPATH": root}, check=True)


def _memory_of(path: Path) -> None:
    engine.warm_up()
    of_tensor(_model(path, "float32", 2 * MIB), 0)
    model, size = _model(path, "float32", path.stat().st_size), path.stat().st_size
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    started = time.perf_counter()
    stats = of_tensor(model, 0)
    taken, grown = time.perf_counter() - started, _status("VmHWM") - before
    verdict = "met" if grown <= MEMORY_TARGET else "MISSED"
    print(
        f"{size / (1 << 30):.1f} GiB tensor: +{grown:.1f} MB (target +{MEMORY_TARGET:.0f}, {verdict}), "
        f"{taken:.1f} s, {size / taken / 1e9:.2f} GB/s, rank error {stats.error:.5f}"
    )


def _status(name: str) -> float:
    text = Path("/proc/self/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith(name)).split()[1]) / 1024


def _safetensors(path: Path, array: np.ndarray) -> None:
    from safetensors.numpy import save_file

    random = np.random.default_rng(2)
    layers = {
        f"layers.{i}.{name}": random.standard_normal(shape, dtype=np.float32)
        for i in range(12)
        for name, shape in (("attention", (1024, 3072)), ("mlp", (1024, 5120)), ("norm", (1024,)), ("bias", (5120,)))
    }
    save_file(layers, path)
    size = path.stat().st_size
    del layers
    model, reference = open_model(path), _sum_speed(array)
    started = time.perf_counter()
    found = dict(scan(model))
    taken = time.perf_counter() - started
    exact = sum(s.exact for s in found.values())
    print(
        f"{size / 1e6:.0f} MB safetensors: {len(found)} tensors in {taken:.2f} s, {size / taken / 1e9:.2f} GB/s "
        f"= {size / taken / 1e9 / reference:.2f} of numpy.sum, {exact} with exact quantiles"
    )


if __name__ == "__main__":
    main()

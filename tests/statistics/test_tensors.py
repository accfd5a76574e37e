import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.dtypes import DTYPES, dtype_of, to_numbers
from core.errors import Cancelled, NotFound, SourceChanged, Unavailable
from core.ir import ByteRange, Model, Tensor
from core.source import Source
from core.statistics import channels, engine, tensors
from core.statistics.scan import order, scan, scan_with_digests
from core.statistics.tensors import measured, of_tensor
from core.statistics.types import TensorStats
from tests.statistics import oracle

STORED = sorted(d.name for d in DTYPES.values() if d.bits)
ELEMENTS = 300_007  # no multiple of anything, and of wide types more than one block


@pytest.fixture(autouse=True)
def _stream_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "SMALL_BYTES", 1000)


def model_of(folder: Path, *stored: tuple[str, tuple[int, ...], bytes], **more: object) -> Model:
    """A model whose tensors lie one after another in one file, three bytes from its start."""
    path = folder / "weights.bin"
    path.write_bytes(b"abc" + b"".join(data for _, _, data in stored))
    made, at = [], 3
    for i, (dtype, shape, data) in enumerate(stored):
        made.append(Tensor(f"t{i}", dtype, shape, ByteRange(0, at, at + len(data)), **more))
        at += len(data)
    return Model("test", "test file", str(path), (Source(path),), {}, tuple(made), (), {})


def noise(dtype: str, elements: int, seed: int = 0) -> bytes:
    return np.random.default_rng(seed).bytes(dtype_of(dtype).nbytes(elements))


@pytest.mark.parametrize("dtype", STORED)
def test_every_type_from_disk(dtype: str, tmp_path: Path) -> None:
    data = noise(dtype, ELEMENTS)
    model = model_of(tmp_path, (dtype, (ELEMENTS,), data))
    found = of_tensor(model, 0)
    numbers = to_numbers(data, dtype_of(dtype), ELEMENTS)
    smallest = {
        "complex64": 2.0**-126,
        "complex128": 2.0**-1022,
        "float16": 2.0**-14,
        "float64": 2.0**-1022,
        "float32": 2.0**-126,
        "bfloat16": 2.0**-126,
    }.get(dtype, 0.0)
    if (mini := dtype_of(dtype).mini) and mini.mantissa:
        smallest = 2.0 ** (1 - mini.bias)
    with np.errstate(invalid="ignore", over="ignore"):
        if dtype.startswith("complex"):
            wide = numbers.astype(np.complex128)
            numbers = np.where(np.isnan(wide.real) | np.isnan(wide.imag), np.nan, np.abs(wide))
        oracle.check(found, numbers, smallest)
    assert found.exact


def test_small_and_embedded_tensors(tmp_path: Path) -> None:
    data = np.arange(6, dtype="<f4").tobytes()
    model = model_of(tmp_path, ("float32", (2, 3), data), ("float32", (0, 3), b""), ("float32", (), data[4:8]))
    assert of_tensor(model, 0) == of_tensor(model, Tensor("e", "float32", (6,), data))
    assert of_tensor(model, 0).mean == 2.5
    assert of_tensor(model, 1) == TensorStats(count=0)
    assert of_tensor(model, 2).max == 1.0


def test_views_and_byte_order(tmp_path: Path) -> None:
    array = np.random.default_rng(8).standard_normal((40, 30)).astype(np.float32)
    model = model_of(tmp_path, ("float32", (30, 20), array.tobytes()), strides=(1, 30), offset=15)
    oracle.check(of_tensor(model, 0), array.reshape(-1)[15 : 15 + 20 * 30], 2.0**-126)
    big = model_of(tmp_path, ("float32", (40, 30), array.astype(">f4").tobytes()), encoding="big")
    oracle.check(of_tensor(big, 0), array, 2.0**-126)
    tail = model_of(tmp_path, ("float32", (100,), array.tobytes()), offset=1100)
    oracle.check(of_tensor(tail, 0), array.reshape(-1)[1100:], 2.0**-126)


def test_what_cannot_be_measured(tmp_path: Path) -> None:
    model = model_of(tmp_path, ("float32", (2,), bytes(8)))
    with pytest.raises(NotFound, match="no tensor 5"):
        of_tensor(model, 5)
    with pytest.raises(Unavailable, match="cut off"):
        of_tensor(model, Tensor("broken", "float32", (3,), None, problem="cut off"))
    with pytest.raises(Unavailable):
        of_tensor(model, Tensor("odd", "float32", (3,), bytes(12), encoding="martian"))


def test_stopped_and_changed(tmp_path: Path) -> None:
    data = noise("float64", ELEMENTS)
    model = model_of(tmp_path, ("float64", (ELEMENTS,), data))
    seen: list[tuple[int, int]] = []
    with pytest.raises(Cancelled):
        of_tensor(model, 0, progress=lambda done, total: seen.append((done, total)), cancelled=lambda: bool(seen))
    assert 0 < seen[-1][0] < seen[-1][1] == len(data)
    Path(model.path).write_bytes(bytes(10))
    with pytest.raises(SourceChanged):
        of_tensor(model, 0)


@pytest.mark.parametrize("elements", [5, ELEMENTS])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int4", "complex64"])
def test_content_hash_from_the_same_reading(dtype: str, elements: int, tmp_path: Path) -> None:
    data = noise(dtype, elements)
    model = model_of(tmp_path, (dtype, (elements, 1), data))
    found = measured(model, 0, digest=True)
    assert found.digest == hashlib.sha256(f"{dtype}[{elements}, 1]\0".encode() + data).hexdigest()
    plain = of_tensor(model, 0)
    assert found.stats.quantiles == plain.quantiles
    assert found.stats.histogram == plain.histogram


def test_scan_is_ordered_resumable_and_keeps_what_it_has(tmp_path: Path) -> None:
    sizes = [5000, 10, 700, 10]
    model = model_of(tmp_path, *(("float32", (n,), noise("float32", n, n)) for n in sizes))
    assert order(model) == [1, 3, 2, 0]
    seen: list[tuple[int, int]] = []
    found = dict(scan(model, progress=lambda done, total: seen.append((done, total))))
    assert list(found) == [1, 3, 2, 0]
    assert found == {i: of_tensor(model, i) for i in range(4)}
    assert seen[-1] == (4 * sum(sizes), 4 * sum(sizes))
    assert seen == sorted(seen)
    kept: dict[int, TensorStats] = {}
    stopping = scan(model, cancelled=lambda: len(kept) == 2)
    kept.update([next(stopping)])
    kept.update([next(stopping)])
    with pytest.raises(Cancelled):
        next(stopping)
    assert list(kept) == [1, 3]
    rest = dict(scan(model, known=kept))
    assert {**kept, **rest} == found
    digests = {i: m.digest for i, m in scan_with_digests(model)}
    assert digests[1] == digests[3] != digests[2]


def test_scan_leaves_out_what_cannot_be_decoded(tmp_path: Path) -> None:
    model = model_of(tmp_path, ("float32", (3,), bytes(12)), ("float32", (4,), bytes(16)))
    broken = Model(
        "test", "test", model.path, model.sources, {}, (Tensor("x", "float32", (3,), None, problem="gone"), model.tensors[1]), (), {}
    )  # fmt: skip
    assert [i for i, _ in scan(broken)] == [1]


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize(("dtype", "shape"), [("float32", (70, 90, 60)), ("bfloat16", (3, 4, 7)), ("int4", (5, 3, 3))])
def test_channels_from_disk(dtype: str, shape: tuple[int, ...], axis: int, tmp_path: Path) -> None:
    elements = int(np.prod(shape))
    data = noise(dtype, elements)
    found = channels.of_tensor(model_of(tmp_path, (dtype, shape, data)), 0, axis)
    with np.errstate(invalid="ignore"):
        array = to_numbers(data, dtype_of(dtype), elements).reshape(shape)
        expected = channels.of_array(array, axis)
    assert found.to_json() == expected.to_json()
    assert len(found) == shape[axis]


def test_numba_stays_out_of_small_scans(tmp_path: Path) -> None:
    script = (
        "import sys, numpy as np, core\n"
        "from core.statistics import engine, scan, arrays, channels, findings, spectral\n"
        "arrays.of_array(np.zeros((4000, 2500), np.float32))\n"
        "assert engine.for_scan(engine.KERNEL_BYTES).__name__ == 'core.statistics.vectors'\n"
        "print(sorted({'numba', 'onnx', 'duckdb', 'pandas', 'pyarrow'} & set(sys.modules)))\n"
    )
    root = str(Path(__file__).parents[2])
    run = subprocess.run(
        [sys.executable, "-c", script],
        check=False,
        cwd=root,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
    )
    assert (run.stdout.strip(), run.returncode) == ("[]", 0), run.stderr


@pytest.mark.slow
def test_kernels_and_their_cache(tmp_path: Path) -> None:
    assert engine.warm_up()
    assert engine.for_scan(2 << 20).__name__ == "core.statistics.kernels"
    data = noise("float32", 9_000_001)
    model = model_of(tmp_path, ("float32", (9_000_001,), data))
    numbers = np.frombuffer(data, "<f4")
    oracle.check(of_tensor(model, 0), numbers, 2.0**-126)

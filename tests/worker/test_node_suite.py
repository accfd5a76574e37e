"""The node tests of the ONNX standard: what onnxruntime answers as expected, our worker answers too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper

from tests.corpus import fetch
from tests.worker.running import Arrays, plain_options, same, trace

FOLDERS = ("node", "simple", "pytorch-converted", "pytorch-operator")


def cases(folder: Path) -> Iterator[tuple[Path, Arrays, Arrays]]:
    """Model, inputs and expected outputs; only tests whose inputs and outputs are plain tensors."""
    for path in sorted(folder.glob("*/model.onnx")):
        graph = onnx.load(path, load_external_data=False).graph
        if all(item.type.HasField("tensor_type") for item in (*graph.input, *graph.output)):
            data = path.parent / "test_data_set_0"
            inputs = {item.name: value for item, value in zip(graph.input, _arrays(data, "input"), strict=False)}
            outputs = {item.name: value for item, value in zip(graph.output, _arrays(data, "output"), strict=False)}
            yield path, inputs, outputs


def _arrays(folder: Path, kind: str) -> Iterator[np.ndarray]:
    for index in range(len(list(folder.glob(f"{kind}_*.pb")))):
        yield numpy_helper.to_array(onnx.load_tensor(folder / f"{kind}_{index}.pb"))


def answered(path: Path, inputs: Arrays, expected: Arrays) -> Arrays | None:
    """What onnxruntime answers where that is what the test expects, else ``None``."""
    try:
        session = ort.InferenceSession(path.read_bytes(), plain_options())
        found = dict(zip(expected, session.run(list(expected), inputs), strict=True))
    except Exception:  # noqa: BLE001 the runtime's refusals have no common class
        return None
    return found if all(_close(found[name], value) for name, value in expected.items()) else None


def _close(found: np.ndarray, expected: np.ndarray) -> bool:
    if expected.dtype.kind in "OU":
        return found.tolist() == expected.tolist()
    alike = found.dtype == expected.dtype and found.shape == expected.shape
    return alike and np.allclose(found, expected, rtol=1e-3, atol=1e-3, equal_nan=True)


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_worker_answers_what_onnxruntime_answers(folder: str, tmp_path: Path) -> None:
    least = {"node": 864, "simple": 17, "pytorch-converted": 59, "pytorch-operator": 24}[folder]
    count, wrong = 0, []
    for path, inputs, expected in cases(fetch("libonnx_testdata") / folder):
        found = answered(path, inputs, expected)
        if found is None:
            continue
        count += 1
        traced = trace(path, inputs, tmp_path)
        if traced.result.status != "complete" or not all(same(traced.array(name), found[name]) for name in found):
            wrong.append((path.parent.name, traced.result.status, traced.result.reason))
    assert wrong == []
    assert count >= least, count

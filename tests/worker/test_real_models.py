"""Real models: every value of every node equals onnxruntime's own, bit for bit, however it is cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.limits import MIB
from core.opening import open_model
from core.trace.types import RunLimits
from tests.corpus import fetch
from tests.worker.running import all_outputs, default_inputs, same, trace

MODELS = (
    "magika", "silero_vad", "silero_vad_16k_op15", "rapidocr_det", "rapidocr_rec", "rapidocr_cls",
    "openwakeword_alexa", "openwakeword_embedding_model", "openwakeword_hey_jarvis", "openwakeword_melspectrogram",
    "openwakeword_silero_vad",
)  # fmt: skip


@pytest.mark.corpus
@pytest.mark.parametrize("name", MODELS)
def test_every_value_is_onnxruntimes_own(name: str, tmp_path: Path) -> None:
    path = fetch(name)
    model = open_model(path)
    inputs = default_inputs(model, samples=1280) if name == "openwakeword_melspectrogram" else default_inputs(model)
    model.close()
    expected = all_outputs(path, inputs)
    for limits in (RunLimits(), RunLimits(capture=MIB // 2)):
        traced = trace(path, inputs, tmp_path, limits)
        assert traced.result.status == "complete", traced.result.reason
        assert set(expected) <= set(traced.values)
        wrong = [key for key, value in expected.items() if not same(traced.array(key), value)]
        assert not wrong


@pytest.mark.corpus
def test_statistics_are_numpys_in_float64(tmp_path: Path) -> None:
    path = fetch("rapidocr_det")
    model = open_model(path)
    inputs = default_inputs(model)
    model.close()
    expected = all_outputs(path, inputs)
    traced = trace(path, inputs, tmp_path)
    for name, array in expected.items():
        stats, exact = traced.values[name].stats, array.astype(np.float64)
        assert stats is not None
        assert stats.count == array.size
        assert stats.min == exact.min()
        assert stats.max == exact.max()
        scale = np.abs(exact).mean()
        assert stats.mean == pytest.approx(exact.mean(), abs=1e-12 * scale)
        assert stats.std == pytest.approx(exact.std(), abs=1e-12 * np.sqrt((exact**2).mean()))
        assert stats.quantiles["0.5"] == pytest.approx(np.quantile(exact, 0.5), abs=1e-12)

"""Charts by their traces: the numbers that went in, in the words that were meant."""

from __future__ import annotations

import numpy as np
import pytest

from app.components import charts
from app.theme import DARK, LIGHT
from core.statistics.types import Histogram

HOSTILE = "<b>x</b> <a href='javascript:alert(1)'>&"


def test_a_histogram_has_a_bar_a_bin_at_its_place() -> None:
    figure = charts.histogram(Histogram((0.0, 1.0, 3.0), (5, 2)), LIGHT)
    (bar,) = figure.data
    assert list(bar.x) == [0.5, 2.0]
    assert list(bar.width) == [1.0, 2.0]
    assert list(bar.y) == [5, 2]
    assert (figure.layout.yaxis.type, figure.layout.yaxis.title.text) == ("linear", "elements")
    assert charts.histogram(Histogram((0.0, 1.0), (1,)), LIGHT, log=True).layout.yaxis.type == "log"


def test_a_heatmap_of_both_signs_is_centred_on_zero() -> None:
    (trace,) = charts.heatmap(np.array([[-1.0, 2.0], [np.nan, np.inf]]), LIGHT).data
    assert (trace.zmin, trace.zmax) == (-2.0, 2.0)
    assert trace.colorscale[4][1] == LIGHT.diverging[4]
    assert trace.z[0].tolist() == [-1.0, 2.0]
    assert np.isnan(trace.z[1]).all()


def test_a_heatmap_of_one_sign_is_sequential_over_its_range() -> None:
    (trace,) = charts.heatmap(np.array([[1.0, 4.0]]), DARK).data
    assert (trace.zmin, trace.zmax) == (1.0, 4.0)
    assert trace.colorscale[0][1] == DARK.sequential[0]


@pytest.mark.parametrize("value", [0.0, 3.0, np.nan])
def test_a_heatmap_of_equal_values_keeps_a_range(value: float) -> None:
    (trace,) = charts.heatmap(np.full((2, 2), value), LIGHT).data
    assert trace.zmin < trace.zmax


def test_a_large_heatmap_is_thinned_out_and_keeps_its_places() -> None:
    values = np.arange(2000, dtype=np.float32).reshape(1000, 2)
    (trace,) = charts.heatmap(values, LIGHT).data
    assert trace.z.shape == (500, 2)
    assert list(trace.y[:3]) == [0, 2, 4]
    assert trace.z[1].tolist() == [4.0, 5.0]


def test_a_long_line_keeps_its_extremes() -> None:
    values = np.zeros(100_000)
    values[54_321], values[99_999] = 9.0, -7.0
    high, low, mean = charts.line(values, LIGHT).data
    assert max(high.y) == 9.0
    assert min(low.y) == -7.0
    assert mean.name == "mean of 100"
    assert len(mean.x) == 1000


def test_a_short_line_is_every_value() -> None:
    (trace,) = charts.line(np.array([1, 2, 3], np.int8), LIGHT).data
    assert list(trace.y) == [1.0, 2.0, 3.0]


def test_magnitude_is_logarithmic_and_leaves_zeros_out() -> None:
    figure = charts.magnitude([0, 1, 2], ["a", HOSTILE, "c"], [1.0, 0.0, None], [2.0, 3.0, None], LIGHT, marked=1)
    largest, rms = figure.data
    assert list(rms.y) == [1.0, None, None]
    assert list(largest.y) == [2.0, 3.0, None]
    assert figure.layout.yaxis.type == "log"
    assert figure.layout.shapes[0].x0 == 1
    assert "<" not in rms.text[1]


def test_spread_draws_two_bands_around_the_median() -> None:
    columns = {"0.05": [-2.0], "0.25": [-1.0], "0.5": [0.5], "0.75": [1.0], "0.95": [2.0]}
    figure = charts.spread([4], ["a"], columns, LIGHT)
    assert [trace.name for trace in figure.data if trace.name] == ["5 to 95 %", "25 to 75 %", "median"]
    assert [list(trace.y) for trace in figure.data] == [[2.0], [-2.0], [1.0], [-1.0], [0.5]]


def test_text_of_a_file_is_inert_in_labels() -> None:
    shown = charts.inert(HOSTILE)
    assert shown == "&lt;b&gt;x&lt;/b&gt; &lt;a href='javascript:alert(1)'&gt;&amp;"
    (bar,) = charts.bars([HOSTILE], [1.0], LIGHT, axis="ms").data
    assert "<" not in bar.y[0]

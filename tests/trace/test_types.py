"""Requests and results survive their way through JSON; summaries by hand calculation."""

from __future__ import annotations

import json

import numpy as np

from core.ir import Finding
from core.statistics.arrays import of_array
from core.trace import summary
from core.trace.types import NodeTiming, RunInput, RunLimits, TracedValue, TraceRequest, TraceResult

INPUT = RunInput("x", "float32", (1, 2), "0000.npy", "ab", "zeros")


def value(name: str, array: np.ndarray, node: str = "g0.n0") -> TracedValue:
    dtype = "string" if array.dtype == object else str(array.dtype)
    return TracedValue(f"g0.{name}", name, node, dtype, array.shape, of_array(array))


def test_a_request_comes_back_whole() -> None:
    request = TraceRequest("/m.onnx", "d", (INPUT,), RunLimits(memory=5, time=1.5), keep=("g0.v1",), latency=False)
    again = TraceRequest.from_json(json.loads(json.dumps(request.to_json())))
    assert again == request
    assert again.fingerprint() == request.fingerprint()


def test_a_result_comes_back_whole_and_is_plain_json() -> None:
    result = TraceResult(
        status="partial",
        engine="e",
        provider="p",
        reason="why",
        elapsed_s=1.0,
        peak_rss_bytes=2,
        inputs=(INPUT,),
        values=(value("v0", np.array([1.0, np.nan, np.inf], np.float32)), value("v1", np.empty((0, 3), np.int64))),
        nodes=(NodeTiming("g0.n0", "n", "Relu", None), NodeTiming("g0.n1", "", "Exp", 1.5, "CPU")),
        findings=(Finding("a.b", "info", "text", "node g0.n0"),),
        spool="/s",
        held={"time": "yes"},
    )
    text = json.dumps(result.to_json(), allow_nan=False)
    assert TraceResult.from_json(json.loads(text)) == result
    assert json.loads(text)["values"][0]["stored"] is False


def test_the_depth_profile_goes_in_order_and_leaves_out_what_has_no_numbers() -> None:
    ramp = np.arange(101, dtype=np.float32)
    values = [
        value("v0", np.array([-3.0, 1.0], np.float32)),
        value("v1", np.array(["a"], object)),
        TracedValue("g0.v2", "v2", "g0.n2", "float32", (), None, reason="lost"),
        value("v3", np.array([np.nan, 2.0], np.float32), "g0.n3"),
        value("v4", ramp, "g0.n4"),
    ]
    profile = summary.depth_profile(values)
    assert profile.name == ["v0", "v3", "v4"]
    assert profile.absmax == [3, 2, 100]
    assert profile.std[0] == 2  # mean -1, both two away
    assert profile.nan == [0, 1, 0]
    assert (profile.low[2], profile.high[2]) == (1, 99)  # of 0, 1, ..., 100
    bad = summary.first_not_finite(values)
    assert bad is not None
    assert bad.name == "v3"


def test_slow_nodes_and_operators() -> None:
    nodes = [NodeTiming("g0.n0", "a", "Conv", 5), NodeTiming("g0.n1", "b", "Relu", None)]
    nodes += [NodeTiming("g0.n2", "c", "Gemm", 7), NodeTiming("g0.n3", "d", "Conv", 4)]
    assert [node.name for node in summary.slowest(nodes, 2)] == ["c", "a"]
    assert list(summary.latency_by_operator(nodes).items()) == [("Conv", 9), ("Gemm", 7)]

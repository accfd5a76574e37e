"""What is refused before anything starts, and with which words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from core.errors import InputMismatch, RunError, UsageError
from core.ir import Model
from core.limits import GIB, MIB
from core.opening import open_model
from core.run import prepare
from core.run.spool import EventReader, Spool
from core.trace.types import RunLimits
from tests.worker.running import save

FLOAT = TensorProto.FLOAT


@pytest.fixture
def model(tmp_path: Path) -> Model:
    nodes = [
        helper.make_node("Add", ["a", "b"], ["s"]),
        helper.make_node("Add", ["s", "bias"], ["y"]),
        helper.make_node("Cast", ["half"], ["h"], to=FLOAT),
    ]
    inputs = [
        ("a", FLOAT, ["n", 3]),
        ("b", FLOAT, ["n", 3]),
        ("half", TensorProto.BFLOAT16, [2]),
        ("bias", FLOAT, [3]),
    ]
    stored = [numpy_helper.from_array(np.ones(3, np.float32), "bias")]
    return open_model(save(tmp_path / "m.onnx", nodes, inputs, [("y", FLOAT, ["n", 3]), ("h", FLOAT, [2])], stored))


def arrays(**changed: np.ndarray) -> dict[str, np.ndarray]:
    zeros = np.zeros((2, 3), np.float32)
    return {"a": zeros, "b": zeros, "half": np.zeros(2, np.uint16)} | changed


def test_slots_tell_the_signature(model: Model) -> None:
    slots = prepare.input_slots(model)
    assert [(s.name, s.dtype, s.shape, s.optional) for s in slots] == [
        ("a", "float32", ("n", 3), False),
        ("b", "float32", ("n", 3), False),
        ("half", "bfloat16", (2,), False),
        ("bias", "float32", (3,), True),
    ]


def test_the_spool_holds_everything_the_worker_needs(model: Model, tmp_path: Path) -> None:
    made, spool = prepare.request(model, arrays(), {"a": "zeros"}, RunLimits(), "d1", folder=tmp_path)
    again, sources = spool.read_request()
    assert again == made
    assert again.fingerprint() == made.fingerprint()
    assert sources == [(model.path, *model.sources[0].identity)]
    assert [(i.name, i.dtype, i.shape, i.source) for i in made.inputs] == [
        ("a", "float32", (2, 3), "zeros"),
        ("b", "float32", (2, 3), "given"),
        ("half", "bfloat16", (2,), "given"),
    ]
    assert np.load(spool.file("inputs", made.inputs[0].file)).shape == (2, 3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"a": np.zeros((2, 3))}, "input 'a' takes float32 of shape n × 3, the array is float64 of shape 2 × 3"),
        ({"a": np.zeros((2, 4), np.float32)}, "input 'a' takes shape n × 3, the array has 2 × 4"),
        ({"a": np.zeros(3, np.float32)}, "input 'a' takes shape n × 3, the array has 3"),
        ({"b": np.zeros((5, 3), np.float32)}, "dimension 'n' is 2 elsewhere and 5 in input 'b'"),
        ({"half": np.zeros(2, np.float32)}, "input 'half' takes bfloat16 of shape 2, the array is float32 of shape 2"),
        ({"c": np.zeros(1, np.float32)}, "the model has no input 'c'"),
    ],
)
def test_inputs_that_do_not_fit(given: dict[str, np.ndarray], words: str, model: Model, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    with pytest.raises(InputMismatch) as error:
        prepare.request(model, arrays(**given), {}, RunLimits(), "d", folder=tmp_path)
    assert words in str(error.value)
    assert set(tmp_path.iterdir()) == before  # nothing half-written


def test_a_missing_input_names_what_it_takes(model: Model) -> None:
    with pytest.raises(InputMismatch, match=r"input 'b' was not given. It takes float32 of shape n × 3"):
        prepare.request(model, {"a": np.zeros((1, 3), np.float32)}, {}, RunLimits(), "d")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (RunLimits(memory=MIB), "the memory limit is 1048576 bytes"),
        (RunLimits(time=0), "the time limit is 0 s"),
        (RunLimits(time=float("nan")), "the time limit is nan s"),
        (RunLimits(store=-1), "the store limit is -1"),
        (RunLimits(threads=0), "the threads limit is 0"),
        (RunLimits(provider="cuda"), "the provider 'cuda' is not available here"),
    ],
)
def test_limits_that_make_no_sense(limits: RunLimits, words: str, model: Model) -> None:
    with pytest.raises(UsageError, match=words.replace("(", r"\(")):
        prepare.request(model, arrays(), {}, limits, "d")


def test_every_part_of_a_request_is_in_its_fingerprint(model: Model, tmp_path: Path) -> None:
    def print_of(digest: str = "d", limits: RunLimits | None = None, **changed: np.ndarray) -> str:
        return prepare.request(model, arrays(**changed), {}, limits, digest, folder=tmp_path)[0].fingerprint()

    prints = {
        print_of(),
        print_of("e"),
        print_of(limits=RunLimits(memory=GIB)),
        print_of(half=np.ones(2, np.uint16)),
    }
    assert len(prints) == 4
    assert print_of() in prints


def test_half_written_lines_wait_and_foreign_ones_are_passed_over(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path)
    reader = EventReader(spool)
    assert list(reader.read()) == []
    with open(spool.events_file, "ab") as file:
        file.write(b'{"event": "progress", "done": 1}\nnot json\n[1]\n{"event": "pro')
        file.flush()
        assert [event["done"] for event in reader.read()] == [1]
        assert list(reader.read()) == []
        file.write(b'gress", "done": 2}\n')
    assert [event["done"] for event in reader.read()] == [2]
    spool.remove()
    assert not Path(spool.path).exists()


def test_a_folder_that_is_no_spool(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no readable request"):
        Spool(tmp_path).read_request()
    with pytest.raises(RunError, match="cannot be made"):
        Spool.create(tmp_path / "missing")

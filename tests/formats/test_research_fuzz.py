"""Damaged research files: whatever is flipped, cut or lengthened, the answer is a model or one ModelError."""

import contextlib
import io
import os
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core import open_model
from core.errors import ModelError
from core.tensors.read import decodable, values
from tests.formats.research_files import FILES

CASES = int(os.environ.get("MODELGLASS_FUZZ_CASES", "2000"))
MUTATED = [name for name in FILES if name not in ("huggingface", "sharded", "npz_compressed")]


@st.composite
def mutations(draw: st.DrawFn) -> list[tuple[str, float, int]]:
    """Up to four edits: what, where (as a share of the file), and a byte or a count."""
    kinds = st.sampled_from(["flip", "flip", "set", "cut", "insert", "delete", "length"])
    place = st.floats(0, 1, exclude_max=True)
    return draw(st.lists(st.tuples(kinds, place, st.integers(0, 255)), min_size=1, max_size=4))


def apply(data: bytes, edits: list[tuple[str, float, int]]) -> bytes:
    body = bytearray(data)
    for kind, place, number in edits:
        at = int(place * len(body))
        match kind:
            case "flip":
                body[at : at + 1] = bytes(b ^ (1 << (number & 7)) for b in body[at : at + 1])
            case "set":
                body[at : at + 1] = bytes([number])
            case "cut":
                del body[at:]
            case "insert":
                body[at:at] = bytes([number]) * (1 + number % 9)
            case "delete":
                del body[at : at + 1 + number % 9]
            case "length":  # a length field of up to eight bytes becomes huge
                body[at : at + 1 + number % 8] = b"\xff" * len(body[at : at + 1 + number % 8])
    return bytes(body)


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.parametrize("name", MUTATED)
def test_damage_never_escapes(name: str, tmp_path: Path) -> None:
    path, _ = FILES[name](tmp_path)
    original = path.read_bytes()
    target = tmp_path / f"damaged{path.suffix}"

    @settings(
        max_examples=CASES, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(mutations())
    def run(edits: list[tuple[str, float, int]]) -> None:
        target.write_bytes(apply(original, edits))
        with contextlib.suppress(ModelError), warnings.catch_warnings():
            warnings.simplefilter("error")
            model = open_model(target)
            for tensor in model.tensors:
                if not decodable(model, tensor) and tensor.elements < 10_000:
                    with contextlib.suppress(ModelError):
                        values(model, tensor)
            for graph in model.graphs:
                for _ in zip(graph.nodes(), range(50), strict=False):
                    pass
            for finding in model.findings:
                io.StringIO().write(finding.message)
                assert len(finding.message) < 5_000
            model.close()

    run()

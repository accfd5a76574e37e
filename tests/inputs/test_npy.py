"""``.npy`` files: what numpy writes comes back, and what lies in the header is refused."""

import io
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core.errors import BrokenFile, LimitExceeded, ModelError, UnreadableFile
from core.inputs.npy import npy_head, read_npy


def saved(array, version=(1, 0)):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version)
    return buffer.getvalue()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)),
        np.array(3.5, np.float16),
        np.zeros((0, 4), np.int64),
        np.array([True, False]),
        np.array(["ab", "ç"]),
        np.array([1 + 2j], np.complex64),
    ],
    ids=["float32", "fortran big-endian", "scalar", "empty", "bool", "text", "complex"],
)
def test_what_numpy_writes_is_read_back(tmp_path, array, version):
    path = tmp_path / "x.npy"
    path.write_bytes(saved(array, version))
    read = read_npy(path)
    assert np.array_equal(read, np.load(path))
    assert read.shape == array.shape
    assert read.dtype.isnative
    assert npy_head(path).shape == array.shape


@settings(max_examples=50, deadline=None)
@given(
    hnp.arrays(hnp.integer_dtypes() | hnp.floating_dtypes(sizes=(16, 32, 64)), hnp.array_shapes(min_dims=0, min_side=0))
)
def test_any_plain_array_survives(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("npy") / "x.npy"
    np.save(path, array)
    assert read_npy(path).tobytes() == np.load(path).astype(array.dtype.newbyteorder("=")).tobytes()


def header(text, data=b"", length=None):
    raw = text.encode()
    return b"\x93NUMPY\x01\x00" + (len(raw) if length is None else length).to_bytes(2, "little") + raw + data


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (b"", BrokenFile, "not a .npy file"),
        (b"PK\x03\x04 zip", BrokenFile, "expected 93 4e 55 4d 50 59, found 50 4b"),
        (b"\x93NUMPY", BrokenFile, "version"),
        (b"\x93NUMPY\x09\x00" + bytes(20), BrokenFile, "version that is not 1, 2 or 3"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", LimitExceeded, "length of the .npy header"),
        (header(GOOD, length=6000), BrokenFile, "ends inside the .npy header"),
        (header(GOOD, bytes(7)), BrokenFile, "expected 75 bytes, found 74 bytes"),
        (header(GOOD, bytes(9)), BrokenFile, "expected 75 bytes, found 76 bytes"),
        (header(GOOD.replace("(2,)", "(-2,)"), bytes(8)), BrokenFile, "no plain array"),
        (header(GOOD.replace("(2,)", "(99999999999999999999,)")), BrokenFile, "18 digits"),
        (header(GOOD.replace("(2,)", "(999999999999999,)")), LimitExceeded, "number of elements"),
        (header(GOOD.replace("(2,)", "(" + "1," * 65 + ")"), bytes(4)), LimitExceeded, "rank"),
        (header(GOOD.replace("'<f4'", "'|V8'"), bytes(16)), BrokenFile, "elements of type '|V8'"),
        (header(GOOD.replace("'<f4'", "'<U0'")), BrokenFile, "elements of type"),
        (header(GOOD.replace("'<f4'", "[('a', '<f4')]"), bytes(8)), BrokenFile, "no plain array"),
        (header(GOOD.replace("'shape'", "'descr'"), bytes(8)), BrokenFile, "without descr"),
        (header("__import__('os').system('touch x')"), BrokenFile, "no plain array"),
        (header("{'descr': '<f4'"), BrokenFile, "no plain array"),
    ],
)  # fmt: skip
def test_a_header_that_lies_is_refused(tmp_path, content, error, words):
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    with pytest.raises(error) as caught:
        read_npy(path)
    assert words in str(caught.value)


class Bomb:
    def __reduce__(self):
        return (open, ("exploded", "w"))


def test_pickled_objects_are_never_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.array([Bomb()], object), allow_pickle=True)
    assert b"exploded" in (tmp_path / "x.npy").read_bytes()
    with pytest.raises(BrokenFile, match="Python objects, which are never loaded"):
        read_npy("x.npy")
    assert not (tmp_path / "exploded").exists()
    (tmp_path / "y.npy").write_bytes(pickle.dumps([1]))
    with pytest.raises(BrokenFile, match=r"not a \.npy file"):
        read_npy("y.npy")


def test_more_than_the_bound_is_not_read(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(1000, np.float64))
    with pytest.raises(LimitExceeded, match="size of the array is 8000, allowed is 0 to 7999"):
        read_npy(tmp_path / "x.npy", nbytes=7999)


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(UnreadableFile, match=r"does not exist"):
        read_npy(tmp_path / "none.npy")


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 120))
def test_no_bytes_cause_another_error(tmp_path_factory, junk, keep):
    path = tmp_path_factory.mktemp("npy") / "x.npy"
    path.write_bytes(saved(np.arange(4, dtype=np.int16))[:keep] + junk)
    try:
        array = read_npy(path)
    except ModelError:
        return
    assert array.nbytes <= path.stat().st_size

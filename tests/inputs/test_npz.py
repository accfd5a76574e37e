"""Several arrays in one file: what numpy writes is read, what could run or burst is refused."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from core.errors import BrokenFile, LimitExceeded, UnreadableFile
from core.inputs.npz import read_npz, write_npz


def test_what_numpy_writes_is_read_and_back(tmp_path: Path) -> None:
    arrays = {"input.1": np.arange(6).reshape(2, 3), "f": np.asfortranarray(np.ones((3, 2), np.float16)),
              "text": np.array(["a", "bc"]), "empty": np.zeros((1, 0, 4), np.float32), "nought": np.float32(3)}  # fmt: skip
    np.savez(tmp_path / "a.npz", **arrays)
    np.savez_compressed(tmp_path / "b.npz", **arrays)
    write_npz(tmp_path / "c.npz", {**arrays, "text": arrays["text"].astype(object)})
    for name in ("a.npz", "b.npz", "c.npz"):
        found = read_npz(tmp_path / name)
        assert list(found) == list(arrays)
        for key, array in arrays.items():
            np.testing.assert_array_equal(found[key], array)
            assert found[key].dtype == np.asarray(array).dtype
    with np.load(tmp_path / "c.npz", allow_pickle=False) as again:
        np.testing.assert_array_equal(again["input.1"], arrays["input.1"])


class Trap:
    """Writes a file when unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.mark,))


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


def saved(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(BrokenFile, match="never loaded"):
        read_npz(archive(tmp_path / "a.npz", {"x.npy": saved(np.array([Trap(mark)], object))}))
    with pytest.raises(BrokenFile, match=r"not a \.npy file"):
        read_npz(archive(tmp_path / "b.npz", {"x": pickle.dumps(Trap(mark))}))
    assert not mark.exists()


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", {"x.npy": saved(np.zeros(3_000_000, np.uint8))})
    assert path.stat().st_size < 10_000
    assert read_npz(path)["x"].nbytes == 3_000_000
    with pytest.raises(LimitExceeded, match="size of all arrays"):
        read_npz(path, nbytes=1_000_000)


def test_a_header_that_lies_is_refused(tmp_path: Path) -> None:
    head = saved(np.zeros(4, np.float32)).replace(b"(4,), ", b"(2684354560,), ".ljust(6))
    with pytest.raises((BrokenFile, LimitExceeded)):
        read_npz(archive(tmp_path / "a.npz", {"x.npy": head}))


@pytest.mark.parametrize("data", [b"", b"PK\3\4" + bytes(30), b"hello"])
def test_damaged_archives_are_one_sentence(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(BrokenFile, match=r"no \.npz archive, or a damaged one"):
        read_npz(tmp_path / "a.npz")
    with pytest.raises(UnreadableFile):
        read_npz(tmp_path)


def test_a_name_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="holds 'x' twice"):
        read_npz(archive(tmp_path / "a.npz", {"x": saved(np.zeros(1)), "x.npy": saved(np.ones(1))}))

"""Pictures against a second pipeline written with Pillow and numpy, bit for bit; what is refused."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from core.errors import BrokenFile, LimitExceeded, ModelError, UnknownFormat, UsageError
from core.inputs.image import qwen_patches, qwen_size
from core.inputs.produce import produce
from core.inputs.recipe import Recipe


def made(path: Path | str, **options: Any) -> np.ndarray:
    return produce(Recipe("image", options={"path": str(path), **options})).array


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    pixels = np.random.default_rng(3).integers(0, 256, (45, 70, 3), np.uint8)
    path = tmp_path / "photo.png"
    Image.fromarray(pixels).save(path)
    return path


def pixels(path: Path) -> Image.Image:
    return Image.open(path).convert("RGB")


@pytest.mark.parametrize("resample", ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"])
def test_imagenet_equals_torchvisions_order_of_steps(photo: Path, resample: str) -> None:
    small = np.asarray(pixels(photo).resize((32, 24), getattr(Image.Resampling, resample.upper())))
    unit = small.transpose(2, 0, 1).astype(np.float32) / np.float32(255)
    mean = np.array([0.485, 0.456, 0.406], np.float32)[:, None, None]
    std = np.array([0.229, 0.224, 0.225], np.float32)[:, None, None]
    found = made(photo, height=24, width=32, resample=resample, normalise="imagenet")
    assert found.dtype == np.float32
    assert found.tobytes() == ((unit - mean) / std)[None].tobytes()


def test_letterbox_puts_the_picture_in_the_middle(photo: Path) -> None:
    # 45 x 70 into 64 x 64: the scale is 64/70, so 45 becomes 41.14 -> 41 rows; (64 - 41) // 2 = 11 above, 12 below
    expected = np.full((64, 64, 3), 114, np.uint8)
    expected[11:52] = np.asarray(pixels(photo).resize((64, 41), Image.Resampling.BILINEAR))
    found = made(photo, height=64, width=64, fit="letterbox", normalise="none", layout="HWC", dtype="uint8")
    np.testing.assert_array_equal(found, expected)


def test_crop_takes_the_middle_after_the_shorter_side_is_resized(photo: Path) -> None:
    # the shorter side 45 becomes 40, so 70 becomes 62.2 -> 62; 32 x 32 begins at 4 and at 15
    large = np.asarray(pixels(photo).resize((62, 40), Image.Resampling.BICUBIC))
    found = made(photo, height=32, width=32, fit="crop", shorter=40, resample="bicubic", normalise="none",
                 layout="HWC", dtype="uint8")  # fmt: skip
    np.testing.assert_array_equal(found, large[4:36, 15:47])
    direct = made(photo, height=30, width=20, fit="crop", normalise="none", layout="HWC", dtype="uint8")
    whole = np.asarray(pixels(photo).resize((47, 30), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(direct, whole[:, 13:33])


@pytest.mark.parametrize(
    ("layout", "shape"),
    [("NCHW", (1, 3, 45, 70)), ("NHWC", (1, 45, 70, 3)), ("CHW", (3, 45, 70)), ("HWC", (45, 70, 3))],
)
def test_layouts_and_the_order_of_colours(photo: Path, layout: str, shape: tuple[int, ...]) -> None:
    rgb = np.asarray(pixels(photo))
    found = made(photo, layout=layout, channels="bgr", normalise="none", dtype="uint8")
    assert found.shape == shape
    last = found.reshape(shape[-3:]) if layout.endswith("C") else found.reshape(shape[-3:]).transpose(1, 2, 0)
    np.testing.assert_array_equal(last, rgb[..., ::-1])


def test_grey_has_layouts_without_colours(photo: Path) -> None:
    grey = np.asarray(Image.open(photo).convert("L"))
    np.testing.assert_array_equal(made(photo, layout="HW", channels="gray", normalise="none", dtype="uint8"), grey)
    assert made(photo, layout="NHW", channels="gray").shape == (1, 45, 70)
    with pytest.raises(UsageError, match="layout HW has no axis for colours"):
        made(photo, layout="HW")


def test_numbers_of_every_normalisation(photo: Path) -> None:
    unit = np.asarray(pixels(photo)).astype(np.float32) / np.float32(255)
    clip = (unit - np.float32([0.48145466, 0.4578275, 0.40821073])) / np.float32([0.26862954, 0.26130258, 0.27577711])
    own = (unit - np.float32([0.1, 0.2, 0.3])) / np.float32([2])
    for normalise, expected in {
        "0..1": unit,
        "-1..1": (unit - np.float32(0.5)) / np.float32(0.5),
        "clip": clip,
    }.items():
        assert made(photo, normalise=normalise, layout="HWC").tobytes() == expected.tobytes(), normalise
    custom = made(photo, normalise="custom", mean=(0.1, 0.2, 0.3), std=(2.0,), layout="HWC")
    assert custom.tobytes() == own.tobytes()
    np.testing.assert_array_equal(made(photo, normalise="0..1", dtype="float16", layout="HWC"), unit.astype(np.float16))
    with pytest.raises(UsageError, match="2 numbers for 3 channels"):
        made(photo, normalise="custom", mean=(0.1, 0.2))
    with pytest.raises(UsageError, match="Choose normalise none"):
        made(photo, dtype="uint8")


def test_exif_orientation_turns_the_picture(tmp_path: Path) -> None:
    image = Image.fromarray(np.arange(12, dtype=np.uint8).reshape(3, 4) * 20)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise
    image.save(tmp_path / "turned.png", exif=exif)
    found = made(tmp_path / "turned.png", layout="HW", channels="gray", normalise="none", dtype="uint8")
    np.testing.assert_array_equal(found, np.rot90(np.asarray(image), -1))


def test_flat_patches_go_row_by_row(photo: Path) -> None:
    whole = np.asarray(pixels(photo).resize((48, 32), Image.Resampling.BILINEAR))
    found = made(photo, height=32, width=48, layout="patches", patch=16, normalise="none", dtype="uint8")
    assert found.shape == (1, 6, 768)
    np.testing.assert_array_equal(found[0, 4], whole[16:32, 16:32].ravel())


def reference_qwen(image: np.ndarray, patch: int, merge: int) -> list[np.ndarray]:
    """pixel_values by nested loops, from the description in the Qwen2-VL paper and processor."""
    rows = []
    side = patch * merge
    for top in range(0, image.shape[1], side):
        for left in range(0, image.shape[2], side):
            for my in range(merge):
                for mx in range(merge):
                    y, x = top + my * patch, left + mx * patch
                    square = image[:, y : y + patch, x : x + patch]
                    rows.append(np.stack([square, square], axis=1).ravel())  # channel, time, y, x
    return rows


def test_qwen3_pixel_values(photo: Path) -> None:
    generated = produce(Recipe("image", options={
        "path": str(photo), "layout": "qwen", "patch": 16, "normalise": "-1..1", "resample": "bicubic",
        "least_pixels": 1024,
    }))  # fmt: skip
    # 45 -> 32 (1.4 rounds to 1), 70 -> 64 (2.19 rounds to 2)
    assert generated.facts["grid_thw"] == [1, 2, 4]
    unit = np.asarray(pixels(photo).resize((64, 32), Image.Resampling.BICUBIC)).astype(np.float32) / np.float32(255)
    image = ((unit - np.float32(0.5)) / np.float32(0.5)).transpose(2, 0, 1)
    expected = np.stack(reference_qwen(image, 16, 2))
    assert expected.shape == (8, 3 * 2 * 16 * 16)
    assert generated.array.tobytes() == expected.tobytes()


def test_qwen_sizes_stay_between_their_bounds() -> None:
    # by hand from smart_resize: 1000 x 2000 to at most 1 000 000 pixels by factor 28
    assert qwen_size(1000, 2000, 28, 3136, 1_000_000) == (700, 1400)
    assert qwen_size(20, 20, 28, 56 * 56, 10**6) == (56, 56)
    with pytest.raises(UsageError, match="200 times"):
        qwen_size(10, 3000, 28, 1, 10**9)
    frames = np.zeros((3, 32, 32, 3), np.float32)  # an odd number of frames is filled up
    assert qwen_patches(frames, 16, 2, 2)[1] == (2, 2, 2)


def test_video_spreads_its_frames(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (8, 6), (i * 20, 0, 0)) for i in range(10)]
    frames[0].save(tmp_path / "a.webp", save_all=True, append_images=frames[1:], lossless=True)
    options = {"frames": 4, "normalise": "none", "layout": "NTCHW", "dtype": "uint8"}
    animated = produce(Recipe("video", options={"paths": (str(tmp_path / "a.webp"),), **options}))
    assert animated.array.shape == (1, 4, 3, 6, 8)
    assert animated.facts["frames"] == [0, 3, 6, 9]
    assert animated.array[0, :, 0, 0, 0].tolist() == [0, 60, 120, 180]
    (tmp_path / "frames").mkdir()
    for i, frame in enumerate(frames):
        frame.save(tmp_path / "frames" / f"f{i}.png")
    frames[0].save(tmp_path / "frames" / "f10.png")  # by number behind f9, by letters before f2
    folder = produce(Recipe("video", options={"paths": (str(tmp_path / "frames"),), **options, "frames": 0}))
    assert folder.array[0, :, 0, 0, 0].tolist() == [*range(0, 200, 20), 0]


# --- what is refused --------------------------------------------------------------------


def png(width: int, height: int, data: bytes = b"") -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("width", "height"), [(9000, 9000), (12000, 12000), (60000, 60000), (2**31 - 1, 2**31 - 1)])
def test_a_decompression_bomb_is_refused_from_its_header(tmp_path: Path, width: int, height: int) -> None:
    path = tmp_path / "bomb.png"
    path.write_bytes(png(width, height, bytes(1 << 20)))
    made(photo_of(tmp_path))  # the library's own tables are not counted
    tracemalloc.start()
    with pytest.raises((LimitExceeded, BrokenFile)) as caught:
        made(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "bomb.png" in str(caught.value)
    assert "pixels" in str(caught.value)
    assert peak < 4 << 20


def photo_of(folder: Path) -> Path:
    Image.new("RGB", (4, 4)).save(folder / "small.png")
    return folder / "small.png"


def damaged() -> list[bytes]:
    whole = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)).save(whole, "JPEG")
    postscript = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n(x) (w) file\n"
    return [png(40, 40), whole.getvalue()[:300], b"GIF89a" + bytes(7), postscript, b"", b"hello", b"BM" + b"\xff" * 200]


@pytest.mark.parametrize("index", range(7))
def test_damaged_pictures_are_one_sentence(tmp_path: Path, index: int) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(damaged()[index])
    with pytest.raises((BrokenFile, UnknownFormat)) as caught:
        made(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_pixels_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    pixels = np.ones((4, 4), np.float32)
    pixels[1, 2] = np.nan
    Image.fromarray(pixels).save(tmp_path / "nan.tiff")
    with pytest.raises(BrokenFile, match="pixels that are no finite numbers"):
        made(tmp_path / "nan.tiff")
    Image.fromarray(pixels[:1] * np.float32(0.2)).save(tmp_path / "unit.tiff")
    found = made(tmp_path / "unit.tiff", channels="gray", layout="HW", normalise="none", dtype="uint8")
    assert found.tolist() == [[51, 51, 51, 51]]


def test_sixteen_bit_greys_keep_their_upper_half(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 255, 256, 65535]], np.uint16)).save(tmp_path / "deep.png")
    found = made(tmp_path / "deep.png", channels="gray", layout="HW", normalise="none", dtype="uint8")
    assert found.tolist() == [[0, 0, 1, 255]]


@pytest.mark.parametrize("path", ["", "gone.png", "ready:nothing", "ready:../secret", "."])
def test_no_such_picture(path: str) -> None:
    with pytest.raises(ModelError):
        made(path)

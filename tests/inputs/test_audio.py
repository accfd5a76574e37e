"""Recordings: decoding, resampling and log-mel against formulas written out here."""

from __future__ import annotations

import math
import struct
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import BrokenFile, LimitExceeded, ModelError, UnknownFormat, UsageError
from core.inputs.generated import Generated
from core.inputs.produce import produce
from core.inputs.recipe import Recipe
from core.inputs.sound import resample


def heard(path: Path, **options: Any) -> Generated:
    return produce(Recipe("audio", options={"path": str(path), **options}))


def wav(path: Path, samples: np.ndarray, rate: int = 16000) -> Path:
    """16-bit WAV of [time, channels] by the standard library."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())
    return path


def flac(samples: np.ndarray, rate: int) -> bytes:
    """One verbatim FLAC frame of mono 16-bit samples (RFC 9639), which any encoder may write."""

    def crc(data: bytes, bits: int, polynomial: int) -> int:
        value = 0
        for byte in data:
            value ^= byte << (bits - 8)
            for _ in range(8):
                value = (value << 1) ^ (polynomial if value >> (bits - 1) & 1 else 0)
                value &= (1 << bits) - 1
        return value

    count = len(samples)
    packed = (rate << 44) | (15 << 36) | count  # 20 bits rate, 3 channels - 1, 5 bits - 1, 36 samples
    info = struct.pack(">HH", count, count) + bytes(6) + packed.to_bytes(8, "big") + bytes(16)
    head = b"\xff\xf8" + bytes([0x70, 0x08, 0]) + struct.pack(">H", count - 1)
    head += bytes([crc(head, 8, 0x07)])
    frame = head + b"\x02" + samples.astype(">i2").tobytes()
    return b"fLaC" + b"\x80" + len(info).to_bytes(3, "big") + info + frame + struct.pack(">H", crc(frame, 16, 0x8005))


def test_wav_of_every_depth(tmp_path: Path) -> None:
    values = np.array([-0.75, -0.5, 0.0, 0.25, 0.5, 0.9375])
    stored = {
        (1, 8): (np.round(values * 128) + 128).astype(np.uint8).tobytes(),
        (1, 16): (values * 32768).astype("<i2").tobytes(),
        (1, 24): b"".join(int(v * 2**23).to_bytes(3, "little", signed=True) for v in values),
        (1, 32): (values * 2**31).astype("<i4").tobytes(),
        (3, 32): values.astype("<f4").tobytes(),
        (3, 64): values.astype("<f8").tobytes(),
    }
    for (tag, bits), data in stored.items():
        path = tmp_path / f"{tag}-{bits}.wav"
        form = struct.pack("<HHIIHH", tag, 1, 8000, 8000 * bits // 8, bits // 8, bits)
        body = b"WAVEfmt " + struct.pack("<I", 16) + form + b"LIST" + struct.pack("<I", 3) + b"abc\0"
        body += b"data" + struct.pack("<I", len(data)) + data
        path.write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)
        np.testing.assert_array_equal(heard(path, rate=0).array, values[None].astype(np.float32))


def test_flac_gives_the_samples_that_went_in(tmp_path: Path) -> None:
    samples = np.random.default_rng(1).integers(-32768, 32768, 4000)
    (tmp_path / "a.flac").write_bytes(flac(samples, 16000))
    made = heard(tmp_path / "a.flac")
    np.testing.assert_array_equal(made.array[0], (samples / 32768).astype(np.float32))
    assert made.facts == {"rate": 16000, "file_rate": 16000, "channels": 1, "seconds": 0.25}
    assert made.fidelity == "The file's own samples."


def test_ogg_vorbis_gives_the_tone_that_went_in() -> None:
    """``tone.ogg``: 2048 samples of 0.5 sin(2 pi 500 t) at 8000 Hz, encoded by libsndfile 1.2."""
    made = heard(Path(__file__).parent / "tone.ogg", rate=0).array[0]
    assert made.shape == (2048,)
    np.testing.assert_allclose(made, 0.5 * np.sin(2 * np.pi * 500 * np.arange(2048) / 8000), atol=0.05)


@pytest.mark.parametrize("seed", range(40))
def test_flipped_bytes_give_samples_or_one_sentence(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = bytearray((Path(__file__).parent / "tone.ogg").read_bytes())
    if seed % 2:
        data = bytearray(flac(rng.integers(-9000, 9000, 500), 8000))
    for at in rng.integers(0, len(data), 6):
        data[at] = int(rng.integers(0, 256))
    (tmp_path / "x").write_bytes(data[: len(data) - seed * 3])
    message = ""
    try:
        assert np.isfinite(heard(tmp_path / "x", mono=False, rate=0, layout="NCT").array).all()
    except ModelError as error:
        message = str(error)
    assert "\n" not in message


def test_channels_are_mixed_or_kept(tmp_path: Path) -> None:
    both = np.random.default_rng(2).integers(-9000, 9000, (50, 2))
    path = wav(tmp_path / "two.wav", both)
    np.testing.assert_array_equal(heard(path).array, (both / 32768).mean(axis=1).astype(np.float32)[None])
    kept = heard(path, mono=False, layout="NCT").array
    np.testing.assert_array_equal(kept, (both.T / 32768).astype(np.float32)[None])
    with pytest.raises(UsageError, match="layout NT has no axis for 2 channels"):
        heard(path, mono=False)


@pytest.mark.parametrize(("rate", "wanted"), [(48000, 16000), (44100, 16000), (8000, 16000), (16000, 44100)])
def test_resampling_keeps_tones_and_drops_what_does_not_fit(rate: int, wanted: int) -> None:
    def tone(hz: float, at: int) -> np.ndarray:
        return np.sin(2 * np.pi * hz * np.arange(at) / at)

    found = resample(tone(1000, rate)[:, None].astype(np.float32), rate, wanted)[:, 0]
    assert len(found) == wanted
    inner = slice(wanted // 10, -wanted // 10)
    np.testing.assert_allclose(found[inner], tone(1000, wanted)[inner], atol=2e-4)
    if rate > wanted:
        high = resample(tone(wanted * 0.6, rate)[:, None].astype(np.float32), rate, wanted)[:, 0]
        assert np.abs(high[inner]).max() < 1e-3


def test_frames_are_filled_up_with_silence(tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", np.arange(1, 11)[:, None] * 1000)
    unit = np.arange(1, 11) * 1000 / 32768
    whole = heard(path, form="frames", frame=4).array
    np.testing.assert_allclose(whole, np.pad(unit, (0, 2)).reshape(1, 3, 4), atol=1e-7)
    overlapping = heard(path, form="frames", frame=4, step=3, layout="FM").array
    np.testing.assert_allclose(overlapping, [unit[i : i + 4] for i in (0, 3, 6)], atol=1e-7)


def test_part_of_a_recording(tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", np.arange(1600)[:, None])
    np.testing.assert_array_equal(heard(path, start=0.05, seconds=0.01).array[0] * 32768, np.arange(800, 960))
    longer = heard(path, seconds=0.2).array[0] * 32768
    assert longer.shape == (3200,)
    assert not longer[1600:].any()
    with pytest.raises(UsageError, match="ends before the part"):
        heard(path, start=1.0)


# --- log-mel ----------------------------------------------------------------------------


def slow_mel(line: np.ndarray, rate: int, n_fft: int, hop: int, mels: int, low: float, high: float, htk: bool,
             area: bool, power: float) -> np.ndarray:  # fmt: skip
    """Energies by the definitions in librosa's documentation: a DFT by its matrix, triangles by loops."""

    def mel(hz: float) -> float:
        if htk:
            return 2595.0 * math.log10(1.0 + hz / 700.0)
        return hz / (200 / 3) if hz < 1000 else 15 + math.log(hz / 1000) / (math.log(6.4) / 27)

    def inverse(value: float) -> float:
        if htk:
            return 700.0 * (10.0 ** (value / 2595.0) - 1.0)
        return value * 200 / 3 if value < 15 else 1000 * math.exp((math.log(6.4) / 27) * (value - 15))

    edges = [inverse(mel(low) + (mel(high) - mel(low)) * i / (mels + 1)) for i in range(mels + 2)]
    bank = np.zeros((mels, n_fft // 2 + 1))
    for m in range(mels):
        left, middle, right = edges[m : m + 3]
        for k in range(n_fft // 2 + 1):
            hz = k * rate / n_fft
            if left < hz < right:
                bank[m, k] = (hz - left) / (middle - left) if hz <= middle else (right - hz) / (right - middle)
        if area:
            bank[m] *= 2 / (right - left)
    line = np.concatenate([line[1 : n_fft // 2 + 1][::-1], line, line[-n_fft // 2 - 1 : -1][::-1]])
    window = [math.sin(math.pi * n / n_fft) ** 2 for n in range(n_fft)]
    n, k = np.arange(n_fft), np.arange(n_fft // 2 + 1)[:, None]
    matrix = np.exp(-2j * np.pi * k * n / n_fft)
    columns = [line[i : i + n_fft] * window for i in range(0, len(line) - n_fft + 1, hop)]
    return bank @ np.abs(matrix @ np.array(columns).T) ** power


@pytest.fixture
def speech(tmp_path: Path) -> tuple[Path, np.ndarray]:
    rng = np.random.default_rng(9)
    time = np.arange(4000) / 16000
    line = sum(np.sin(2 * np.pi * hz * time) / (i + 1) for i, hz in enumerate((150, 300, 700, 1100, 2450)))
    samples = np.rint(8000 * (line + 0.05 * rng.standard_normal(4000)))
    return wav(tmp_path / "speech.wav", samples[:, None]), samples / 32768


@pytest.mark.parametrize("htk", [False, True])
@pytest.mark.parametrize(("area", "power"), [(True, 2.0), (False, 1.0)])
def test_log_mel_equals_the_definition(speech: tuple[Path, np.ndarray], htk: bool, area: bool, power: float) -> None:
    path, line = speech
    found = heard(path, form="mel", n_fft=400, hop=160, mels=40, low_hz=60.0, high_hz=7600.0, area=area, power=power,
                  scale="htk" if htk else "slaney", log="ln", floor=1e-10)  # fmt: skip
    energies = slow_mel(line, 16000, 400, 160, 40, 60.0, 7600.0, htk, area, power)
    assert found.array.shape == (1, 40, 26)
    np.testing.assert_allclose(found.array[0], np.log(np.maximum(energies, 1e-10)), atol=1e-5)


def test_every_logarithm(speech: tuple[Path, np.ndarray]) -> None:
    path, line = speech
    energies = slow_mel(line, 16000, 400, 160, 80, 0, 8000, False, True, 2.0)
    log10 = np.log10(np.maximum(energies, 1e-10))
    cut = log10[:, :-1]
    expected = {"log10": log10, "db": 10 * log10, "whisper": (np.maximum(cut, cut.max() - 8) + 4) / 4, "none": energies}
    for log, values in expected.items():
        np.testing.assert_allclose(
            heard(path, form="mel", log=log).array[0], values, atol=1e-4 if log == "db" else 1e-5
        )
    assert heard(path, form="mel", layout="FM").array.shape == (26, 80)


def test_mel_bands_lie_below_half_the_rate(speech: tuple[Path, np.ndarray]) -> None:
    with pytest.raises(UsageError, match="mel bands from 0 to 9000 Hz do not lie below half the rate, 8000 Hz"):
        heard(speech[0], form="mel", high_hz=9000.0)
    with pytest.raises(UsageError, match="4000 samples are too few"):
        heard(speech[0], form="mel", n_fft=16384)


# --- what is refused --------------------------------------------------------------------


def bad() -> list[bytes]:
    form = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
    head = b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<I", 16)
    data = b"data" + struct.pack("<I", 4) + bytes(4)
    crowd = struct.pack("<HHIIHH", 1, 60000, 8000, 0, 54464, 16)
    whole = flac(np.arange(100), 16000)
    return [
        head + form, head + struct.pack("<HHIIHH", 1, 2, 8000, 16000, 2, 16) + data, head + crowd + data,
        head + struct.pack("<HHIIHH", 7, 1, 8000, 8000, 1, 8) + data, head + struct.pack("<HHIIHH", 1, 0, 0, 0, 0, 16) + data,
        b"RIFF\0\0\0\0WAVE" + data, head + struct.pack("<HHIIHH", 3, 1, 8000, 32000, 4, 32) + b"data\4\0\0\0\0\0\xc0\x7f",
        b"OggS" + bytes(100), b"fLaC" + bytes(100), whole[:42], b"ID3" + bytes(50), b"",
    ]  # fmt: skip


@pytest.mark.parametrize("index", range(12))
def test_bad_recordings_are_one_sentence(tmp_path: Path, index: int) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(bad()[index])
    with pytest.raises((BrokenFile, UnknownFormat, LimitExceeded)) as caught:
        heard(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_missing_recordings_and_odd_rates(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone.wav"):
        with pytest.raises(ModelError, match="not a regular file"):
            heard(path)
    with pytest.raises(LimitExceeded, match="have no ratio of small numbers"):
        resample(np.zeros((10, 1), np.float32), 767_999, 499_979)

"""Sound files as samples from -1 to 1, and their way to another rate.

WAV is read here (RIFF, Microsoft multimedia specification 1.0 and WAVE_FORMAT_EXTENSIBLE); FLAC and OGG Vorbis
by miniaudio, piece by piece, so that no header decides how much memory is taken.
"""

from __future__ import annotations

import array
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.errors import BrokenFile, LimitExceeded, UnknownFormat, UnreadableFile, UsageError
from core.inputs.encode import MADE_ELEMENTS
from core.limits import MIB, check

FILE_BYTES: Final = 512 * MIB
RATE: Final = 768_000
CHANNELS: Final = 64
_PIECE: Final = 65536
_BLOCK: Final = 8192
_TABLE: Final = 1 << 24

ZEROS: Final = 32
"""Zero crossings of the sinc on either side when rates are changed."""

ROLLOFF: Final = 0.95
"""Part of the lower of both half rates that is kept."""

Samples = NDArray[np.float32]


def read_sound(path: str) -> tuple[Samples, int]:
    """Samples of shape [time, channels] and their rate; reads and decodes the file.

    Raises:
        UnreadableFile: if it is missing or may not be read.
        UnknownFormat: if it is neither WAV nor FLAC nor OGG Vorbis.
        BrokenFile: if it is damaged.
        LimitExceeded: if it is too large.
    """
    if not path:
        raise UsageError("no recording was named")
    try:
        place = Path(path)
        if not place.is_file():
            raise UnreadableFile("is missing or is not a regular file", path=path)
        check("the size of the recording", place.stat().st_size, FILE_BYTES, path=path)
        data = place.read_bytes()
    except (OSError, ValueError):
        raise UnreadableFile("cannot be read", path=path) from None
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return _wav(data, path)
    if data[:4] in (b"fLaC", b"OggS"):
        return _decoded(data, path, flac=data[:4] == b"fLaC")
    raise UnknownFormat("is no WAV, FLAC or OGG Vorbis recording", path=path)


def _wav(data: bytes, path: str) -> tuple[Samples, int]:
    form: tuple[int, int, int, int] | None = None
    at = 12
    while at + 8 <= len(data):
        name, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8
        if name == b"fmt " and size >= 16 and at + size <= len(data):
            tag, channels, rate, _, align, bits = struct.unpack_from("<HHIIHH", data, at)
            if tag == 0xFFFE and size >= 26:  # the first two bytes of the sub-format are the tag
                tag = int.from_bytes(data[at + 24 : at + 26], "little")
            if align * 8 != channels * bits:
                raise BrokenFile("block size of the WAV header", path=path, byte=at + 12,
                                 expected=channels * bits // 8, found=align)  # fmt: skip
            form = (tag, channels, rate, bits)
        elif name == b"data":
            if form is None:
                raise BrokenFile("has samples before their format", path=path, byte=at - 8)
            return _pcm(data[at : at + size], form, path), form[2]
        at += size + (size & 1)
    raise BrokenFile("is a WAV file without samples", path=path)


def _pcm(raw: bytes, form: tuple[int, int, int, int], path: str) -> Samples:
    tag, channels, rate, bits = form
    check("the number of channels", channels - 1, CHANNELS - 1, path=path)
    check("the sampling rate", rate - 1, RATE - 1, path=path)
    check("the number of samples", len(raw) * 8 // max(8, bits), MADE_ELEMENTS, path=path)
    raw = raw[: len(raw) // (channels * max(8, bits) // 8) * (channels * max(8, bits) // 8)]
    match (tag, bits):
        case (1, 8):
            flat: Samples = (np.frombuffer(raw, np.uint8).astype(np.float32) - np.float32(128)) / np.float32(128)
        case (1, 16):
            flat = np.frombuffer(raw, "<i2").astype(np.float32) / np.float32(32768)
        case (1, 24):
            wide = np.zeros((len(raw) // 3, 4), np.uint8)
            wide[:, 1:] = np.frombuffer(raw, np.uint8).reshape(-1, 3)
            flat = (wide.view("<i4")[:, 0] / 2147483648).astype(np.float32)
        case (1, 32):
            flat = (np.frombuffer(raw, "<i4") / 2147483648).astype(np.float32)
        case (3, 32 | 64):
            flat = np.frombuffer(raw, f"<f{bits // 8}").astype(np.float32)
        case _:
            raise UnknownFormat(f"is WAV of format {tag} with {bits} bits, which is not read here", path=path,
                                hint="Save it as PCM or float.")  # fmt: skip
    if not np.isfinite(flat).all():
        raise BrokenFile("has samples that are no finite numbers", path=path)
    return np.asarray(flat.reshape(-1, channels), np.float32)


def _decoded(data: bytes, path: str, flac: bool) -> tuple[Samples, int]:
    import miniaudio  # pyright: ignore[reportMissingTypeStubs]

    library: Any = miniaudio
    form = library.FileFormat.FLAC if flac else library.FileFormat.VORBIS
    try:
        info = library.flac_get_info(data) if flac else library.vorbis_get_info(data)
        channels, rate = int(info.nchannels), int(info.sample_rate)
        check("the number of channels", channels - 1, CHANNELS - 1, path=path)
        check("the sampling rate", rate - 1, RATE - 1, path=path)
        source = _memory(library, data)
        pieces: Iterator[array.array[float]] = library.stream_any(
            source, form, library.SampleFormat.FLOAT32, channels, rate, _PIECE
        )
        found, total = list[Samples](), 0
        for piece in pieces:
            total = check("the number of samples", total + len(piece), MADE_ELEMENTS, path=path)
            found.append(np.array(piece, np.float32))
    except library.MiniaudioError as error:
        raise BrokenFile(f"is a damaged recording: {str(error)[:200]}", path=path) from None
    if not found:
        raise BrokenFile("holds no samples", path=path)
    samples = np.concatenate(found)
    if not np.isfinite(samples).all():
        raise BrokenFile("has samples that are no finite numbers", path=path)
    return samples.reshape(-1, channels), rate


def _memory(library: Any, data: bytes) -> Any:
    class Memory(library.StreamableSource):
        """Bytes in memory as miniaudio wants to read them."""

        def __init__(self) -> None:
            self.at = 0

        def read(self, num_bytes: int) -> bytes:
            """The next bytes."""
            piece = data[self.at : self.at + num_bytes]
            self.at += len(piece)
            return piece

        def seek(self, offset: int, origin: Any) -> bool:
            """Move; ``False`` outside the data."""
            at = offset + (self.at if origin == library.SeekOrigin.CURRENT else 0)
            if not 0 <= at <= len(data):
                return False
            self.at = at
            return True

    return Memory()


def resample(samples: Samples, rate: int, wanted: int) -> Samples:
    """[time, channels] at another rate by band-limited interpolation.

    y(n) = sum over k of x(k) s w(s (t - k)), t = n rate / wanted, s = ROLLOFF min(1, wanted / rate),
    w(u) = sinc(u) cos^2(pi u / (2 ZEROS)) for abs(u) <= ZEROS (Smith, Digital Audio Resampling, with a Hann window).
    Silence is taken before and after. The length is rounded up.

    Raises:
        LimitExceeded: if the rates have no ratio of small numbers, or the result would be too large.
    """
    if rate == wanted:
        return samples
    common = math.gcd(rate, wanted)
    up, down = wanted // common, rate // common
    scale = ROLLOFF * min(1.0, wanted / rate)
    reach = math.ceil(ZEROS / scale)
    length = -(-samples.shape[0] * up // down)
    check("the number of samples", length * samples.shape[1], MADE_ELEMENTS)
    if up * 2 * reach > _TABLE:
        raise LimitExceeded(f"{rate} and {wanted} Hz have no ratio of small numbers", hint="Choose another rate.")
    offsets = np.arange(1 - reach, reach + 1)  # samples around the one before t
    u = scale * (np.arange(up)[:, None] / up - offsets)
    taps = np.where(np.abs(u) <= ZEROS, scale * np.sinc(u) * np.cos(np.pi * u / (2 * ZEROS)) ** 2, 0.0)
    padded = np.pad(samples.astype(np.float64), ((reach, reach + 1), (0, 0)))
    made = np.empty((length, samples.shape[1]), np.float32)
    for start in range(0, length, _BLOCK):
        n = np.arange(start, min(length, start + _BLOCK), dtype=np.int64) * down
        rows = (n // up)[:, None] + offsets + reach
        made[start : start + len(n)] = np.einsum("nk,nkc->nc", taps[n % up], padded[rows])
    return made

"""Every kind of input recipe with the parameters it takes: a page builds its form from this table,
``modelglass input`` its flags, and ``Recipe`` its checks.

A kind's function takes exactly the parameters listed, by keyword; modules are loaded when used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core.errors import UsageError
from core.inputs.options import MOST, Kind, Param
from core.limits import RANK


def _shape(default: tuple[int, ...] = (1,)) -> Param:
    return Param("shape", "shape", default, "sizes, outermost first", 0, MOST)


def _dtype(default: str = "float32") -> Param:
    return Param("dtype", "dtype", default, "element type")


def _choice(name: str, choices: Sequence[str], about: str) -> Param:
    return Param(name, "choice", choices[0], about, choices=tuple(choices))


_SEED: Final = Param("seed", "int", 0, "the same seed gives the same numbers", 0, (1 << 63) - 1)
_PATH: Final = Param("path", "path", "", "the file to read")
_PATHS: Final = Param("paths", "paths", (), "a folder, several files, or one animated file")
_SIDE: Final = 16384
_PIXELS: Final = (
    Param("height", "int", 0, "pixels; 0 keeps the picture's own", 0, _SIDE),
    Param("width", "int", 0, "pixels; 0 keeps the picture's own", 0, _SIDE),
    _choice("fit", ("stretch", "letterbox", "crop"), "how a picture of another shape is brought to this size"),
    _choice("resample", ("bilinear", "nearest", "box", "hamming", "bicubic", "lanczos"), "Pillow's filter"),
    Param("shorter", "int", 0, "crop: resize the shorter side to this first; 0 to the size itself", 0, _SIDE),
    Param("fill", "int", 114, "letterbox: grey level of the bars", 0, 255),
    _choice("channels", ("rgb", "bgr", "gray"), "order of the colours"),
    _choice(
        "normalise", ("0..1", "none", "-1..1", "imagenet", "clip", "custom"), "numbers that 0 to 255 become"
    ),
    Param("mean", "floats", (), "custom: subtracted after the division by 255, one a channel", -1e6, 1e6),
    Param("std", "floats", (), "custom: divided by at last, one a channel", 1e-9, 1e6),
)  # fmt: skip
_PATCHES: Final = (
    Param("patch", "int", 16, "patches: pixels of a side", 1, 1024),
    Param("temporal", "int", 2, "qwen: frames of one patch", 1, 64),
    Param("merge", "int", 2, "qwen: patches of a side that the model merges", 1, 64),
    Param("least_pixels", "int", 65536, "qwen: smaller pictures are enlarged", 1, 1 << 28),
    Param("most_pixels", "int", 16777216, "qwen: larger pictures are reduced", 1, 1 << 28),
)
_MEL: Final = (
    Param("n_fft", "int", 400, "samples of one transform", 2, 1 << 16),
    Param("hop", "int", 160, "samples between two frames", 1, 1 << 16),
    Param("window", "int", 0, "samples of the Hann window; 0 as n_fft", 0, 1 << 16),
    Param("mels", "int", 80, "mel bands", 1, 1024),
    Param("low_hz", "float", 0.0, "lower edge of the lowest band, Hz", 0, 1e6),
    Param("high_hz", "float", 0.0, "upper edge of the highest band, Hz; 0 for half the rate", 0, 1e6),
    _choice("scale", ("slaney", "htk"), "mel formula"),
    Param("area", "bool", True, "scale every band to unit area (librosa's slaney norm)"),
    Param("power", "float", 2.0, "1 for magnitudes, 2 for power", 0.1, 4),
    Param("centre", "bool", True, "frames are centred; the ends are mirrored"),
    _choice("log", ("ln", "log10", "db", "whisper", "none"), "what is taken of the energies"),
    Param("floor", "float", 1e-10, "energies below are raised to it", 1e-30, 1.0),
)

_TABLE: Final[tuple[Kind, ...]] = (
    Kind("zeros", "Zeros", "All zero.", "core.inputs.fill", "zeros", "fill", (_shape(), _dtype())),
    Kind("ones", "Ones", "All one.", "core.inputs.fill", "ones", "fill", (_shape(), _dtype())),
    Kind("random", "Random", "Seeded random numbers of the type's usual range.", "core.inputs.fill", "random", "fill",
         (_shape(), _dtype(), _SEED)),
    Kind("constant", "Constant", "One number everywhere.", "core.inputs.fill", "constant", "fill",
         (_shape(), _dtype(), Param("value", "float", 1.0, "the number", -1e300, 1e300))),
    Kind("uniform", "Uniform", "Seeded random numbers between two ends.", "core.inputs.fill", "uniform", "fill",
         (_shape(), _dtype(), _SEED, Param("low", "float", 0.0, "lower end, included", -1e300, 1e300),
          Param("high", "float", 1.0, "upper end, included for whole numbers", -1e300, 1e300))),
    Kind("normal", "Normal", "Seeded random numbers of a bell curve.", "core.inputs.fill", "normal", "fill",
         (_shape(), _dtype(), _SEED, Param("mean", "float", 0.0, "mean", -1e300, 1e300),
          Param("std", "float", 1.0, "standard deviation", 0, 1e300))),
    Kind("ramp", "Ramp", "Numbers that rise in equal steps.", "core.inputs.fill", "ramp", "fill",
         (_shape(), _dtype(), Param("start", "float", 0.0, "first number", -1e300, 1e300),
          Param("step", "float", 1.0, "added from one to the next", -1e300, 1e300),
          Param("axis", "int", -1, "the axis along which they rise; 99 for all elements in a row", -RANK, 99))),
    Kind("one_hot", "One-hot", "One at one place of an axis, zero elsewhere.", "core.inputs.fill", "one_hot", "fill",
         (_shape(), _dtype(), _SEED, Param("axis", "int", -1, "the axis of the classes", -RANK, RANK),
          Param("index", "int", -1, "the place of the one; -1 for a random one in every row", -1, MOST))),
    Kind("mask", "Mask", "Ones where something is, zeros where not.", "core.inputs.mask", "mask", "fill",
         (_shape(), _dtype("int64"),
          _choice("pattern", ("ones", "zeros", "checkerboard", "random", "lengths", "image"), "which elements are on"),
          _SEED, Param("share", "float", 0.5, "random: part that is on", 0, 1),
          Param("cell", "int", 1, "checkerboard: elements of a field's side", 1, MOST),
          Param("lengths", "ints", (), "lengths: elements on at the start of each row", 0, MOST),
          _PATH, Param("threshold", "int", 128, "image: grey levels from here on are on", 0, 255))),
    Kind("ids", "Token ids", "Whole numbers below a vocabulary.", "core.inputs.ids", "ids", "fill",
         (_shape((1, 16)), _dtype("int64"), _choice("pattern", ("random", "ramp", "values"), "which ids"), _SEED,
          Param("vocabulary", "int", 1000, "ids stay below it", 1, MOST),
          Param("first", "int", 0, "lowest id that is drawn, or the ramp's first", 0, MOST),
          Param("values", "ints", (), "values: the ids themselves, repeated for every row", 0, MOST))),
    Kind("past", "Past key/values", "A cache of attention, empty or filled.", "core.inputs.past", "past", "fill",
         (Param("batch", "int", 1, "sequences", 0, 65536), Param("heads", "int", 8, "key/value heads", 1, 65536),
          Param("length", "int", 0, "steps that are remembered", 0, 1 << 24),
          Param("head_size", "int", 64, "numbers of a head", 1, 65536),
          _choice("layout", ("BHTD", "BTHD", "HBTD", "BHDT", "BTE"), "order of the axes; E is heads times size"),
          _choice("content", ("zeros", "normal"), "what is remembered"), _SEED, _dtype())),
    Kind("series", "Time series", "A generated signal.", "core.inputs.series", "series", "signal",
         (_choice("wave", ("sine", "cosine", "square", "saw", "chirp", "noise", "walk", "impulse"), "its form"),
          Param("samples", "int", 512, "samples a channel", 1, 1 << 26),
          Param("rate", "float", 16000.0, "samples a second", 1e-6, 1e9),
          Param("frequency", "float", 440.0, "Hz; of a chirp at its start", 0, 1e9),
          Param("end_frequency", "float", 4000.0, "chirp: Hz at its end", 0, 1e9),
          Param("amplitude", "float", 1.0, "peak; of noise and steps the standard deviation", 0, 1e12),
          Param("phase", "float", 0.0, "turns by which each next channel is ahead", -1e3, 1e3),
          Param("at", "int", 0, "impulse: its sample", 0, 1 << 26),
          Param("channels", "int", 1, "channels", 1, 4096), Param("batch", "int", 1, "copies", 1, 65536),
          _choice("layout", ("NT", "TN", "NTC", "NCT", "TC", "CT"), "order of the axes"), _SEED, _dtype())),
    Kind("ready", "Ready-made", "A small picture or signal that comes with Modelglass.", "core.inputs.ready", "ready",
         "signal", (_choice("name", ("picture", "digit", "heartbeat", "vowel", "steps"), "which one"),
                    _shape(()), _dtype())),
    Kind("image", "Image", "A picture as the model will see it.", "core.inputs.image", "image", "file",
         (_PATH, *_PIXELS,
          _choice("layout", ("NCHW", "NHWC", "CHW", "HWC", "NHW", "HW", "patches", "qwen"), "order of the axes"),
          *_PATCHES, _dtype())),
    Kind("video", "Video frames", "A stack of pictures.", "core.inputs.video", "video", "file",
         (_PATHS, Param("frames", "int", 8, "frames, spread evenly; 0 for all", 0, 4096), *_PIXELS,
          _choice("layout", ("NTCHW", "NCTHW", "NTHWC", "TCHW", "THWC", "qwen"), "order of the axes"),
          *_PATCHES, _dtype())),
    Kind("audio", "Audio", "A recording as samples, frames or log-mel energies.", "core.inputs.audio", "audio", "file",
         (_PATH, Param("rate", "int", 16000, "samples a second of the result; 0 keeps the file's", 0, 768000),
          Param("mono", "bool", True, "mix all channels to one"),
          Param("start", "float", 0.0, "seconds left out at the beginning", 0, 1e6),
          Param("seconds", "float", 0.0, "length; shorter recordings are filled with silence; 0 for all", 0, 86400),
          _choice("form", ("samples", "frames", "mel"), "what is made of the samples"),
          Param("frame", "int", 512, "frames: samples of one frame", 1, 1 << 24),
          Param("step", "int", 0, "frames: samples from one to the next; 0 as long as a frame", 0, 1 << 24), *_MEL,
          _choice("layout", ("auto", "NT", "T", "NCT", "NTC", "CT", "NMF", "NFM", "NCMF", "MF", "FM"),
                  "order of the axes: T samples, F frames, M mel bands or samples of a frame, C channels"),
          _dtype())),
    Kind("table", "CSV or Parquet", "Numbers of a table file.", "core.inputs.table", "table", "file",
         (_PATH, Param("delimiter", "text", "", "one character; empty to find it out"),
          _choice("header", ("auto", "yes", "no"), "whether the first line names the columns"),
          Param("columns", "text", "", "names, separated by commas; empty for all"),
          Param("skip", "int", 0, "rows left out at the beginning", 0, MOST),
          Param("rows", "int", 0, "rows read; 0 for all", 0, MOST),
          _choice("missing", ("refuse", "nan", "zero"), "what becomes of empty cells"),
          Param("transpose", "bool", False, "columns first"),
          Param("batch", "bool", True, "put an axis of 1 before"), _dtype())),
    Kind("bytes", "Bytes of a file", "A file's bytes as whole numbers.", "core.inputs.file_bytes", "file_bytes", "file",
         (_PATH, Param("length", "int", 2048, "numbers made", 1, 1 << 26),
          _choice("part", ("start", "end", "both"), "which bytes; both is half from the start, half from the end"),
          Param("block", "int", 4096, "bytes looked at on either side", 1, 1 << 26),
          Param("strip", "bool", False, "leave out white space at the file's start and end"),
          Param("pad", "int", 256, "number for what a shorter file lacks", 0, 65535), _dtype("int32"))),
    Kind("npy", "From .npy", "An array saved before.", "core.inputs.fill", "stored", "file", (_PATH,)),
)  # fmt: skip

KINDS: Final[dict[str, Kind]] = {kind.name: kind for kind in _TABLE}


def kind_of(name: object) -> Kind:
    """The kind of that name.

    Raises:
        UsageError: if there is none.
    """
    found = KINDS.get(name) if isinstance(name, str) else None
    if found is None:
        raise UsageError(f"no input recipe is called {str(name)[:80]!r}", hint="Use one of " + ", ".join(KINDS) + ".")
    return found

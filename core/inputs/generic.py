"""Arrays for the inputs of a model, and what to propose where nobody has said anything yet."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import DTYPES, DType
from core.errors import InputMismatch, LimitExceeded, Unavailable
from core.inputs.encode import array_type, bounds, encode
from core.inputs.npy import ARRAY_BYTES, read_npy
from core.inputs.produce import produce_for
from core.inputs.recipe import Recipe, Slot, bind, concrete_shape, open_dimensions
from core.ir import Graph, Model

INTEGERS: Final = (0, 9)
"""Range of random integers where nothing better is known."""

BASIC: Final = frozenset({"random", "zeros", "ones", "npy"})
"""Kinds made here; all others by ``produce.produce_for``."""

IMAGE_SIDE: Final = 64
SEQUENCE: Final = 16
SAMPLES: Final = 512
"""Samples of one audio frame (32 ms at 16 kHz)."""

_WORD: Final = 8
_BATCH: Final = re.compile(r"batch|(^|_)(n|b|bs)($|_)", re.I)
_SEQUENCE: Final = re.compile(r"seq|time|len|token|frame|step|(^|_)(t|s|l)($|_)", re.I)
_SIDE: Final = re.compile(r"height|width|(^|_)(h|w)($|_)|rows|cols", re.I)
_CHANNELS: Final = re.compile(r"channel|(^|_)c($|_)", re.I)
_MASK: Final = re.compile(r"mask", re.I)
_RATE: Final = re.compile(r"^(sr|sample_?rate|sampling_?rate)$", re.I)
_STATE: Final = re.compile(r"^(state|h0?|c0?|hidden|cell|cache|past)($|[_.\d])", re.I)
_BYTES: Final = re.compile(r"byte|pixel|image", re.I)
_TYPES: Final = re.compile(r"token_type|segment_ids", re.I)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A recipe and the sentence that says why it was chosen."""

    recipe: Recipe
    reason: str


@dataclass(frozen=True, slots=True)
class DimProposal:
    """A size for an open dimension and the sentence that says why."""

    size: int
    reason: str


def generate(slot: Slot, recipe: Recipe) -> NDArray[np.generic]:
    """An array of exactly the slot's dtype and shape; a ``npy`` recipe reads its file from disk.

    Text is an object array of ``str``; types that numpy lacks are carried as ``encode`` says.
    The same recipe gives the same array.

    Raises:
        InputMismatch: if a size is missing, or the file's dtype or shape differs.
        LimitExceeded: beyond ``npy.ARRAY_BYTES``.
        Unavailable: if the input is no tensor of numbers or text.
        BrokenFile, UnreadableFile: as ``npy.read_npy``.
    """
    dtype = _element_type(slot)
    if recipe.kind not in BASIC:
        return produce_for(slot, recipe).array
    if recipe.kind == "npy":
        return _from_file(slot, recipe, dtype)
    shape = concrete_shape(slot, recipe.dims)
    elements = int(np.prod(shape, dtype=object)) if shape else 1
    if elements * max(1, dtype.bits // 8) > ARRAY_BYTES:
        raise LimitExceeded(
            f"input {slot.name!r} would take {elements * dtype.bits // 8} bytes, allowed are {ARRAY_BYTES}",
            hint="Choose smaller sizes.",
        )
    if recipe.kind == "random":
        return _random(dtype, shape, recipe)
    if dtype.kind == "string":
        return np.full(shape, "" if recipe.kind == "zeros" else "1", object)
    number = 0 if recipe.kind == "zeros" else 1
    if dtype.kind == "float":
        return encode(np.full(shape, number, np.float32), dtype)
    return np.full(shape, number, array_type(dtype))


def default_recipe(slot: Slot, model: Model | None = None) -> Proposal:
    """What to put into an input that nobody assigned, with the reason; sizes are not filled in."""
    dtype = DTYPES.get(slot.dtype or "")
    if _MASK.search(slot.name):
        return Proposal(Recipe("ones"), "Its name says mask: ones, so that nothing is left out.")
    if _TYPES.search(slot.name):
        return Proposal(Recipe("zeros"), "Its name says token types: zeros, one segment.")
    if _STATE.match(slot.name):
        return Proposal(Recipe("zeros"), "Its name says state: zeros, as at the start of a stream.")
    if dtype is None or dtype.kind not in ("int", "uint"):
        return _float_proposal(slot, dtype)
    if _RATE.match(slot.name):
        return Proposal(Recipe("random", low=16000, high=16000), "Its name says sample rate: 16000 Hz.")
    rows = indexed_rows(slot, model) if model is not None else None
    if rows:
        return Proposal(
            Recipe("random", low=0, high=rows - 1), f"It looks up one of {rows} rows: random numbers below {rows}."
        )
    if dtype.name == "uint8" or (dtype.bits > 8 and _BYTES.search(slot.name)):
        return Proposal(Recipe("random", low=0, high=255), "It takes bytes: random numbers from 0 to 255.")
    if slot.shape == ():
        return Proposal(Recipe("ones"), "A single whole number: one.")
    return Proposal(Recipe("random", low=INTEGERS[0], high=INTEGERS[1]), "Random whole numbers from 0 to 9.")


def default_dims(slots: Iterable[Slot]) -> dict[str, DimProposal]:
    """A size for every open dimension of all inputs together, with the reason.

    A symbol that several inputs use is decided once, where its meaning is clearest.
    """
    slots = list(slots)
    by_name = {slot.name: slot for slot in slots}
    audio = any(_RATE.match(slot.name) for slot in slots)
    return {
        key: _size(key, [(by_name[name], axis) for name, axis in uses], audio)
        for key, uses in open_dimensions(slots).items()
    }


def shared_dims(
    slots: Iterable[Slot], recipes: Mapping[str, Recipe], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, int]:
    """The sizes of all open dimensions together: those of files first, then the recipes', then defaults.

    Args:
        shapes: shape by input name for the recipes that read a file.

    Raises:
        InputMismatch: if two files disagree on a dimension.
    """
    slots = list(slots)
    bound: dict[str, int] = {}
    for slot in slots:
        if slot.name in shapes:
            bound = bind(slot, shapes[slot.name], bound)
    for slot in slots:
        recipe = recipes.get(slot.name)
        if recipe is not None:
            for key, size in recipe.dims.items():
                bound.setdefault(key, size)
    for key, proposal in default_dims(slots).items():
        bound.setdefault(key, proposal.size)
    return bound


def _element_type(slot: Slot) -> DType:
    dtype = DTYPES.get(slot.dtype or "")
    if dtype is None:
        raise InputMismatch(f"input {slot.name!r} declares no element type", hint="It cannot be filled here.")
    if dtype.kind == "opaque":
        raise Unavailable(f"input {slot.name!r} is no tensor of numbers or text", hint="It cannot be filled here.")
    return dtype


def _from_file(slot: Slot, recipe: Recipe, dtype: DType) -> NDArray[np.generic]:
    array = read_npy(recipe.path)
    if dtype.kind == "string":
        if array.dtype.kind not in "US":
            raise _type_mismatch(slot, recipe, array)
        array = array.astype(str).astype(object)
    elif array.dtype != array_type(dtype):
        raise _type_mismatch(slot, recipe, array)
    bind(slot, array.shape)
    return array


def _type_mismatch(slot: Slot, recipe: Recipe, array: NDArray[np.generic]) -> InputMismatch:
    return InputMismatch(
        f"input {slot.name!r} takes {slot.dtype}, {recipe.describe()} holds {array.dtype}",
        hint=f"Save it again after array.astype({slot.dtype!r}).",
    )


def _random(dtype: DType, shape: tuple[int, ...], recipe: Recipe) -> NDArray[np.generic]:
    rng = np.random.default_rng(recipe.seed)
    low, high = recipe.low, recipe.high
    if dtype.kind == "bool":
        return rng.integers(0, 2, shape, np.int8).astype(np.bool_)
    if dtype.kind == "string":
        letters = np.array(list(string.ascii_lowercase))
        words = ["".join(letters[rng.integers(0, 26, _WORD)].tolist()) for _ in range(int(np.prod(shape)))]
        return np.array(words, object).reshape(shape)
    if dtype.kind in ("int", "uint"):
        return _integers(rng, dtype, shape, INTEGERS[0] if low is None else low, INTEGERS[1] if high is None else high)
    if dtype.kind == "complex":
        pairs = rng.standard_normal((*shape, 2))
        return np.asarray(pairs[..., 0] + 1j * pairs[..., 1], array_type(dtype))
    real = np.float32 if dtype.bits <= 32 else np.float64
    if low is None and high is None:
        return encode(np.asarray(rng.standard_normal(shape, real)), dtype)
    low, high = 0.0 if low is None else low, 1.0 if high is None else high
    if low > high:
        raise InputMismatch(f"the range of random numbers is {low:g} to {high:g}", hint="Swap its ends.")
    return encode(np.asarray(rng.random(shape, real) * real(high - low) + real(low)), dtype)


def _integers(
    rng: np.random.Generator, dtype: DType, shape: tuple[int, ...], low: float, high: float
) -> NDArray[np.generic]:
    least, most = bounds(dtype)
    first, last = max(int(np.ceil(low)), least), min(int(np.floor(high)), most)
    if first > last:
        raise InputMismatch(
            f"no {dtype.name} lies between {low:g} and {high:g}", hint="Widen the range of random numbers."
        )
    return np.asarray(rng.integers(first, last, shape, str(array_type(dtype)), endpoint=True))


def _float_proposal(slot: Slot, dtype: DType | None) -> Proposal:
    if dtype is not None and dtype.kind == "bool":
        return Proposal(Recipe("ones"), "A switch: true.")
    if _image_axes(slot):
        return Proposal(Recipe("random", low=0.0, high=1.0), "It looks like an image: random pixels from 0 to 1.")
    if dtype is not None and dtype.kind == "string":
        return Proposal(Recipe("random"), "Random lower-case words.")
    return Proposal(Recipe("random"), "Random numbers of mean 0 and standard deviation 1.")


def _image_axes(slot: Slot) -> tuple[int, ...]:
    """The two axes of an image's sides, channels first or last; empty where it is none."""
    shape = slot.shape or ()
    if len(shape) != 4:
        return ()
    if shape[3] in (1, 3, 4) and shape[1] not in (1, 3, 4):
        return (1, 2)
    return (2, 3)


def _size(key: str, uses: Sequence[tuple[Slot, int]], audio: bool) -> DimProposal:
    named = key if key not in {f"{slot.name}[{axis}]" for slot, axis in uses} else ""
    slot, axis = uses[0]
    if _BATCH.search(named) and not _SEQUENCE.search(named):
        return DimProposal(1, "A batch of one.")
    if _SIDE.search(named) or any(a in _image_axes(s) for s, a in uses):
        return DimProposal(IMAGE_SIDE, f"A side of an image; {IMAGE_SIDE} is a multiple of 32.")
    if _CHANNELS.search(named):
        return DimProposal(3, "Channels of a colour image.")
    rank = len(slot.shape or ())
    if audio and axis == rank - 1 and rank <= 3 and not _STATE.match(slot.name):
        return DimProposal(SAMPLES, f"Samples of one audio frame: {SAMPLES} are 32 ms at 16 kHz.")
    if "past" in named.lower():
        return DimProposal(1, "One step of the past.")
    if _SEQUENCE.search(named):
        return DimProposal(SEQUENCE, f"A sequence of {SEQUENCE} steps.")
    if rank in (2, 3) and axis == 1 and not _STATE.match(slot.name):
        return DimProposal(SEQUENCE, f"The second axis is most often a sequence: {SEQUENCE} steps.")
    return DimProposal(1, "A batch of one." if axis == 0 else "Nothing is known about it: one.")


def indexed_rows(slot: Slot, model: Model) -> int | None:
    """Rows of the stored table that a ``Gather`` looks up with the input."""
    graph = model.main_graph
    value = graph.value_index.get(slot.name) if graph is not None else None
    if graph is None or value is None:
        return None
    frontier, found = [value], list[int]()
    for _ in range(4):  # a few Casts and Reshapes may stand between
        following: list[int] = []
        for at in frontier[:16]:
            for index in dict.fromkeys(graph.value(at).consumers[:16]):
                node = graph.node(index)
                if node.op_type == "Gather" and len(node.inputs) > 1 and node.inputs[1] == at:
                    found += _rows(graph, model, node.inputs[0])
                elif node.op_type in ("Cast", "Reshape", "Unsqueeze", "Squeeze", "Identity", "Clip", "Flatten"):
                    following += [output for output in node.outputs if output >= 0 and node.inputs[:1] == (at,)]
        frontier = following
    return min(found) if found else None


def _rows(graph: Graph, model: Model, value: int) -> list[int]:
    tensor = graph.value(value).tensor
    if not 0 <= tensor < len(model.tensors) or not model.tensors[tensor].shape:
        return []
    rows = model.tensors[tensor].shape[0]
    return [rows] if rows > 1 else []

"""A recipe for every input of a model, with the reason: from names, shapes, dtypes, metadata and files beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from core.dtypes import DTYPES
from core.inputs.generic import Proposal, default_recipe
from core.inputs.kinds import KINDS
from core.inputs.options import Option
from core.inputs.recipe import READY, Recipe, Slot, dimension_key
from core.ir import Model
from core.limits import MIB

BESIDE: Final = ("preprocessor_config.json", "tokenizer.json", "labels.txt")
_JSON_BYTES: Final = 1 * MIB

_PAST: Final = re.compile(r"past|(^|[_.])cache($|[_.\d])|\bpkv\b", re.I)
_POSITION: Final = re.compile(r"position_?ids|positions?$|cache_position", re.I)
_TOKENS: Final = re.compile(r"(input|token|decoder_input|encoder_input)_?ids?$|^(ids|tokens|input|text)$", re.I)
_PIXELS: Final = re.compile(r"pixel|image|img|^x$|^input(\.\d+|_?1)?$|^images?$", re.I)
_GRID: Final = re.compile(r"grid_thw", re.I)
_WORDS: Final = "The quick brown fox jumps over the lazy dog."
_RESAMPLE: Final = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
"""Pillow's numbers, which preprocessor_config.json writes."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What the files in the model's folder say.

    Attributes:
        preprocessor: the object in ``preprocessor_config.json``.
        tokenizer: path of ``tokenizer.json``.
        labels: lines of ``labels.txt``.
    """

    preprocessor: Mapping[str, Any]
    tokenizer: str = ""
    labels: int = 0


def beside(model: Model) -> Beside:
    """Read the files lying beside a model; what is missing or damaged is left out. Reads at most 1 MiB of each."""
    place = Path(model.path)
    folder = place if place.is_dir() else place.parent
    preprocessor: Mapping[str, Any] = {}
    try:
        found: object = json.loads(_text(folder / BESIDE[0]) or "{}")
    except (ValueError, RecursionError):
        found = {}
    if isinstance(found, dict):
        preprocessor = cast("dict[str, Any]", found)
    tokenizer = folder / BESIDE[1]
    labels = len(_text(folder / BESIDE[2]).splitlines())
    return Beside(preprocessor, str(tokenizer) if tokenizer.is_file() else "", labels)


def suggest(slots: Sequence[Slot], model: Model | None = None, files: Beside | None = None) -> dict[str, Proposal]:
    """A proposal for every input by name; those of one text agree with each other.

    Dimensions of one symbol get one size when the recipes are sized by ``generic.shared_dims``.
    """
    files = Beside({}) if files is None else files
    text = any(_TOKENS.search(slot.name) and _whole(slot) for slot in slots)
    past = any(_PAST.search(slot.name) and len(slot.shape or ()) >= 3 for slot in slots)
    return {slot.name: _one(slot, model, files, text, past) for slot in slots}


def _one(slot: Slot, model: Model | None, files: Beside, text: bool, past: bool) -> Proposal:
    rank = len(slot.shape or ())
    if _PAST.search(slot.name) and rank >= 3:
        return _past(slot)
    if _GRID.search(slot.name) and _whole(slot):
        return Proposal(Recipe("ids", options={"pattern": "values", "values": (1, 14, 14)}),
                        "Its name says grid: the 1 × 14 × 14 patches of the ready-made picture.")  # fmt: skip
    if "mask" in slot.name.lower() and not _pictured(slot):
        return Proposal(Recipe("ones"), "Its name says mask: all valid, nothing is left out.")
    if _POSITION.search(slot.name) and _whole(slot):
        return Proposal(Recipe("ramp"), "Its name says positions: 0, 1, 2, … along the last axis.")
    picture = _picture(slot, model, files)
    if picture is not None:
        return picture
    if text and _TOKENS.search(slot.name) and _whole(slot):
        return _tokens(slot, model, files)
    proposal = default_recipe(slot, model)
    if past and proposal.recipe.kind == "ones" and rank == 1 and DTYPES.get(slot.dtype or "") is DTYPES["bool"]:
        return Proposal(Recipe("zeros"), "A switch beside an empty past: false, the past is not used.")
    return proposal


def _whole(slot: Slot) -> bool:
    dtype = DTYPES.get(slot.dtype or "")
    return dtype is not None and dtype.kind in ("int", "uint")


def _past(slot: Slot) -> Proposal:
    """Zeros; an open number of remembered steps is 0."""
    dims: dict[str, int] = {}
    for axis in range(len(slot.shape or ())):
        key = dimension_key(slot, axis)
        if key is not None and re.search(r"past|cache", key, re.I) and " + " not in key and "[" not in key:
            dims[key] = 0
    reason = "Its name says past: empty, as at the start of a text." if dims else "Its name says past: zeros."
    return Proposal(Recipe("zeros", dims=dims), reason)


def _tokens(slot: Slot, model: Model | None, files: Beside) -> Proposal:
    if files.tokenizer and "text" in KINDS and len(slot.shape or ()) in (1, 2):
        options: dict[str, Option] = {"text": _WORDS}
        name = next((p.name for p in KINDS["text"].params if p.type == "path"), "path")
        return Proposal(Recipe("text", options={**options, name: files.tokenizer}),
                        "tokenizer.json lies beside the model: ids of a sentence.")  # fmt: skip
    return default_recipe(slot, model)


# --- pictures ---------------------------------------------------------------------------


def _pictured(slot: Slot) -> bool:
    return _layout(slot) != ""


def _layout(slot: Slot) -> str:
    """The layout of a picture, empty where the shape is none."""
    shape = slot.shape or ()
    dtype = DTYPES.get(slot.dtype or "")
    if dtype is None or not (dtype.kind == "float" or dtype.name == "uint8"):
        return ""
    if len(shape) == 4:
        channels_first, channels_last = shape[1] in (1, 3), shape[3] in (1, 3)
        if channels_first and not (channels_last and shape[1] == 1 and shape[3] == 3) and _sides(shape[2:]):
            return "NCHW"
        return "NHWC" if channels_last and _sides(shape[1:3]) else ""
    if len(shape) == 3 and _PIXELS.search(slot.name) and "text" not in slot.name:
        if shape[0] in (1, 3) and _sides(shape[1:]):
            return "CHW"
        return "HWC" if shape[2] in (1, 3) and _sides(shape[:2]) else ""
    if len(shape) == 2 and slot.name.lower().startswith("pixel_values") and dtype.kind == "float":
        return "qwen"
    return ""


def _sides(sides: Sequence[int | str | None]) -> bool:
    return all(not isinstance(side, int) or side == -1 or side >= 8 for side in sides)


def _picture(slot: Slot, model: Model | None, files: Beside) -> Proposal | None:
    layout = _layout(slot)
    if not layout:
        return None
    shape = slot.shape or ()
    count = shape[layout.index("C")] if layout != "qwen" else 3
    options: dict[str, Option] = {
        "path": f"{READY}{'digit' if count == 1 else 'picture'}", "layout": layout,
        "channels": "gray" if count == 1 else "rgb",
    }  # fmt: skip
    written = " × ".join("?" if dim is None else str(dim) for dim in shape)
    reason = f"The shape {written} is that of a picture ({layout}): a ready-made one"
    whole = slot.dtype == "uint8"
    numbers, said = ({"normalise": "none"}, "") if whole else _numbers(files.preprocessor)
    options |= numbers
    if _reads_text(model):
        options |= {"normalise": "-1..1", "channels": "bgr"}
        said = ", from -1 to 1 and blue first as PaddleOCR's text recognisers take it"
    if layout == "qwen":
        options |= _qwen(files.preprocessor, shape)
    dims = _side_dims(slot, layout, model, files.preprocessor)
    if files.labels:
        said += f"; labels.txt names {files.labels} classes"
    return Proposal(Recipe("image", dims=dims, options=options), reason + said + ".")


def _reads_text(model: Model | None) -> bool:
    """Whether it is a text recogniser of PaddleOCR, which writes its characters into the metadata."""
    return model is not None and "character" in model.metadata and model.metadata["character"].count("\n") > 8


def _numbers(preprocessor: Mapping[str, Any]) -> tuple[dict[str, Option], str]:
    """Normalisation and resize as preprocessor_config.json says."""
    if not preprocessor:
        return {}, ", from 0 to 1"
    options: dict[str, Option] = {}
    mean, std = _figures(preprocessor.get("image_mean")), _figures(preprocessor.get("image_std"))
    if preprocessor.get("do_rescale", True) is False and not preprocessor.get("do_normalize", True):
        options["normalise"] = "none"
    elif preprocessor.get("do_normalize", True) and mean and std and min(std) >= 1e-9:
        options |= {"normalise": "custom", "mean": mean, "std": std}
    resample = preprocessor.get("resample")
    if isinstance(resample, int) and resample in _RESAMPLE:
        options["resample"] = _RESAMPLE[resample]
    if preprocessor.get("do_center_crop"):
        options["fit"] = "crop"
        size: Any = preprocessor.get("size")
        shorter = cast("Mapping[str, Any]", size).get("shortest_edge") if isinstance(size, dict) else size
        if isinstance(shorter, int) and 0 < shorter <= 16384:
            options["shorter"] = shorter
    return options, ", prepared as preprocessor_config.json beside the model says"


def _qwen(preprocessor: Mapping[str, Any], shape: Sequence[int | str | None]) -> dict[str, Option]:
    options: dict[str, Option] = {"least_pixels": 1024, "height": 224, "width": 224}
    for key, name in (("patch_size", "patch"), ("temporal_patch_size", "temporal"), ("merge_size", "merge")):
        value = preprocessor.get(key)
        if isinstance(value, int) and 1 <= value <= 64:
            options[name] = value
    if "patch" not in options and isinstance(shape[1], int):  # 1176 = 3·2·14·14, 1536 = 3·2·16·16
        options["patch"] = {1176: 14, 1536: 16}.get(shape[1], 16)
    return options


def _side_dims(slot: Slot, layout: str, model: Model | None, preprocessor: Mapping[str, Any]) -> dict[str, int]:
    """Sizes of open sides: of preprocessor_config.json, else of the producer's own metadata."""
    if layout == "qwen":
        return {}
    size: Any = preprocessor.get("crop_size") if preprocessor.get("do_center_crop") else preprocessor.get("size")
    height, width = 0, 0
    if isinstance(size, int):
        height = width = size
    elif isinstance(size, dict):
        given = cast("dict[str, Any]", size)
        height = given.get("height", given.get("shortest_edge", 0))
        width = given.get("width", given.get("shortest_edge", 0))
    if not height and _reads_text(model):
        height, width = 48, 320
    elif not height and model is not None:
        sides = re.findall(r"\d{1,5}", model.metadata.get("imgsz", ""))[:2]  # Ultralytics writes "[640, 640]"
        height, width = (int(sides[0]), int(sides[-1])) if sides else (0, 0)
    found: dict[str, int] = {}
    for letter, side in (("H", height), ("W", width)):
        key = dimension_key(slot, layout.index(letter))
        if key is not None and isinstance(side, int) and 0 < side <= 16384:
            found[key] = side
    return found


def _figures(value: object) -> tuple[float, ...]:
    if not isinstance(value, list):
        return ()
    items = cast("list[object]", value)
    if len(items) in (1, 3) and all(isinstance(item, int | float) for item in items):
        return tuple(float(cast("float", item)) for item in items)
    return ()


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_JSON_BYTES + 1)
    except OSError:
        return ""
    return data.decode("utf-8", "replace") if len(data) <= _JSON_BYTES else ""


def seeded(proposals: Mapping[str, Proposal], seed: int) -> dict[str, Recipe]:
    """The proposed recipes with another seed."""
    return {name: replace(item.recipe, seed=seed) for name, item in proposals.items()}

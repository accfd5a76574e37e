"""Running statistics of every value over a set of inputs, in memory that does not grow with the set."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from core.errors import BrokenFile, UsageError
from core.statistics.moments import BLOCK, EMPTY, Moments, merge, of_block, spread

TOP: Final = 8
"""Inputs kept for each channel: those that made it largest."""

CHANNELS: Final = 1 << 16
"""Channels of one value beyond which only the value as a whole is kept."""

VERSION: Final = 1
PERCENTILE: Final = 99.9
_KEY: Final = np.uint32(16)


@dataclass(slots=True)
class Channels:
    """Figures by channel, each array [channels]; ``top`` and ``best`` are [channels, TOP].

    Attributes:
        m2: sum of squared deviations from the mean.
        top: largest element of the channel in an input, the largest input first; ``-inf`` where there is none.
        best: number of that input, -1 where there is none.
    """

    axis: int
    count: NDArray[np.int64]
    mean: NDArray[np.float64]
    m2: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    top: NDArray[np.float64]
    best: NDArray[np.int64]

    @classmethod
    def empty(cls, axis: int, size: int) -> Channels:
        """Nothing yet of ``size`` channels."""
        zero = np.zeros(size)
        return cls(
            axis, np.zeros(size, np.int64), zero, zero.copy(), np.full(size, np.inf), np.full(size, -np.inf),
            np.full((size, TOP), -np.inf), np.full((size, TOP), -1, np.int64),
        )  # fmt: skip

    @property
    def std(self) -> NDArray[np.float64]:
        """Population standard deviation, NaN where a channel has no finite element."""
        return np.sqrt(np.where(self.count > 0, self.m2 / np.maximum(self.count, 1), np.nan))

    def add(self, array: NDArray[Any], sample: int) -> None:
        """One input's elements; the pairwise update of Chan, Golub and LeVeque (1979)."""
        rows = np.moveaxis(np.asarray(array, np.float64), self.axis, 0).reshape(len(self.count), -1)
        seen = np.isfinite(rows)
        count = seen.sum(axis=1)
        safe = np.maximum(count, 1)
        mean = np.where(seen, rows, 0.0).sum(axis=1) / safe
        m2 = np.square(np.where(seen, rows - mean[:, None], 0.0)).sum(axis=1)
        total = np.maximum(self.count + count, 1)
        step = mean - self.mean
        self.m2 = self.m2 + m2 + np.square(step) * self.count * count / total
        self.mean = self.mean + step * count / total
        self.count = self.count + count
        high = np.where(seen, rows, -np.inf).max(axis=1, initial=-np.inf)
        self.low = np.minimum(self.low, np.where(seen, rows, np.inf).min(axis=1, initial=np.inf))
        self.high = np.maximum(self.high, high)
        self._rank(high, sample)

    def _rank(self, high: NDArray[np.float64], sample: int) -> None:
        top = np.concatenate([self.top, high[:, None]], axis=1)
        numbers = np.where(np.isfinite(high), sample, -1).astype(np.int64)
        best = np.concatenate([self.best, numbers[:, None]], axis=1)
        order = np.argsort(-top, axis=1, kind="stable")[:, :TOP]
        self.top, self.best = np.take_along_axis(top, order, 1), np.take_along_axis(best, order, 1)


@dataclass(slots=True)
class Running:
    """One value over the inputs seen so far.

    Attributes:
        shape: of the last input.
        samples: inputs in which it was made.
        keys, counts: elements by the upper half of their float32 pattern, which is within 1/128 of a number.
    """

    id: str
    name: str
    dtype: str
    shape: tuple[int, ...] = ()
    samples: int = 0
    moments: Moments = EMPTY
    keys: NDArray[np.uint16] = field(default_factory=lambda: np.zeros(0, np.uint16))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    channels: Channels | None = None

    def add(self, array: NDArray[Any], sample: int, axis: int) -> None:
        """One input's elements; ``axis`` counts the channels, -1 for none."""
        flat = np.ascontiguousarray(array).reshape(-1)
        flat = flat if flat.dtype.name in ("float32", "float64") else flat.astype(np.float64)
        for at in range(0, flat.size, BLOCK):
            self.moments = merge(self.moments, of_block(flat[at : at + BLOCK]))
        with np.errstate(over="ignore"):
            patterns = flat[np.isfinite(flat)].astype(np.float32).view(np.uint32) >> _KEY
        found, counts = np.unique(patterns.astype(np.uint16), return_counts=True)
        self._count(found, counts)
        self.shape, self.samples = tuple(array.shape), self.samples + 1
        self._by_channel(array, sample, axis)

    def range(self, percentile: float = 100.0) -> tuple[float, float] | None:
        """The range for calibration: smallest to largest, or the middle ``percentile`` % of all elements.

        ``None`` where no element was finite. Percentiles are within 1/128 of the number.
        """
        if self.moments.finite == 0:
            return None
        if percentile >= 100:
            return self.moments.low, self.moments.high
        tail = (100 - percentile) / 200
        return self.quantile(tail), self.quantile(1 - tail)

    def quantile(self, share: float) -> float:
        """The number below which ``share`` of the elements lie; there is at least one."""
        numbers = _numbers(self.keys)
        order = np.argsort(numbers, kind="stable")
        reached: NDArray[np.int64] = np.cumsum(self.counts[order])
        place = int(np.searchsorted(reached, share * int(self.counts.sum())))
        found = float(numbers[order[min(place, len(order) - 1)]])
        return min(max(found, self.moments.low), self.moments.high)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, the ranges among them."""
        m = self.moments
        mean, std, _, _ = spread(m) if m.finite else (None, None, None, None)
        return {
            "id": self.id,
            "name": self.name,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "samples": self.samples,
            "count": m.count,
            "nan": m.nan,
            "inf": m.pos_inf + m.neg_inf,
            "min": m.low if m.finite else None,
            "max": m.high if m.finite else None,
            "mean": _plain(mean),
            "std": _plain(std),
            "range": None if not m.finite else list(self.range() or ()),
            "range_99.9": None if not m.finite else list(self.range(PERCENTILE) or ()),
        }

    def _count(self, keys: NDArray[np.uint16], counts: NDArray[np.int64]) -> None:
        both = np.concatenate([self.keys, keys])
        self.keys, place = np.unique(both, return_inverse=True)
        total = np.zeros(len(self.keys), np.int64)
        np.add.at(total, place, np.concatenate([self.counts, counts]))
        self.counts = total

    def _by_channel(self, array: NDArray[Any], sample: int, axis: int) -> None:
        if not 0 <= axis < array.ndim or not 1 < array.shape[axis] <= CHANNELS:
            return
        if self.channels is None and self.samples == 1:
            self.channels = Channels.empty(axis, array.shape[axis])
        if self.channels is not None and len(self.channels.count) == array.shape[axis]:
            self.channels.add(array, sample)
        else:  # the number of channels changes from input to input: it is none
            self.channels = None


class DataSetStats:
    """All values over a set of inputs.

    Attributes:
        fingerprint: what the set, the model and the limits are bound to.
        samples: names of the inputs, by number.
        done: how many of them have been run; the next one is number ``done``.
    """

    def __init__(self, fingerprint: str, samples: Sequence[str]) -> None:
        self.fingerprint, self.samples, self.done = fingerprint, tuple(samples), 0
        self.values: dict[tuple[str, int], Running] = {}

    def add(self, id_: str, name: str, dtype: str, step: int, array: NDArray[Any], sample: int, axis: int) -> None:
        """The elements of one value in one input."""
        found = self.values.setdefault((id_, step), Running(id_, name, dtype))
        found.add(array, sample, axis)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "samples": len(self.samples),
            "done": self.done,
            "values": [{**value.to_json(), "step": step} for (_, step), value in self.values.items()],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything by temporary file and rename, so that a run can go on where it ended."""
        place = Path(path)
        beside = place.with_name(place.name + ".part")
        arrays = {name: array for at, v in enumerate(self.values.values()) for name, array in _arrays(at, v)}
        with beside.open("wb") as file:
            cast(Any, np.savez)(file, meta=np.frombuffer(json.dumps(self._meta()).encode(), np.uint8), **arrays)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DataSetStats:
        """What ``save`` wrote.

        Raises:
            BrokenFile: if it is not such a file.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                meta = json.loads(file["meta"].tobytes())
                made = cls(meta["fingerprint"], meta["samples"])
                made.done = int(meta["done"])
                for at, item in enumerate(meta["values"]):
                    made.values[item["id"], item["step"]] = _running(item, at, file)
                return made
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BrokenFile(f"holds no statistics of a data set: {error}", path=str(path)) from None

    def check(self, fingerprint: str) -> None:
        """Refuse to go on with another set.

        Raises:
            UsageError: if model, inputs or limits are others than before.
        """
        if fingerprint != self.fingerprint:
            raise UsageError("the statistics so far are of another model, set or limits", hint="Start anew.")

    def _meta(self) -> dict[str, Any]:
        values = [
            {"id": v.id, "step": step, "name": v.name, "dtype": v.dtype, "shape": v.shape, "samples": v.samples,
             "moments": [getattr(v.moments, name) for name in Moments.__slots__],
             "axis": -1 if v.channels is None else v.channels.axis}
            for (_, step), v in self.values.items()
        ]  # fmt: skip
        return {"version": VERSION, "fingerprint": self.fingerprint, "samples": self.samples, "done": self.done,
                "values": values}  # fmt: skip


_PARTS: Final = ("count", "mean", "m2", "low", "high", "top", "best")


def _arrays(at: int, value: Running) -> list[tuple[str, NDArray[Any]]]:
    found: list[tuple[str, NDArray[Any]]] = [(f"{at}.keys", value.keys), (f"{at}.counts", value.counts)]
    if value.channels is not None:
        found += [(f"{at}.{name}", getattr(value.channels, name)) for name in _PARTS]
    return found


def _running(item: Mapping[str, Any], at: int, file: Mapping[str, NDArray[Any]]) -> Running:
    channels = None
    if item["axis"] >= 0:
        channels = Channels(item["axis"], *(file[f"{at}.{name}"] for name in _PARTS))
    return Running(
        item["id"], item["name"], item["dtype"], tuple(item["shape"]), item["samples"], Moments(*item["moments"]),
        file[f"{at}.keys"], file[f"{at}.counts"], channels,
    )  # fmt: skip


def _numbers(keys: NDArray[np.uint16]) -> NDArray[np.float64]:
    """The middle of the numbers that share an upper half; zero stands for itself."""
    low = (keys.astype(np.uint32) << _KEY).view(np.float32).astype(np.float64)
    middle = ((keys.astype(np.uint32) << _KEY) | np.uint32(1 << 15)).view(np.float32).astype(np.float64)
    return np.where((low == 0) | ~np.isfinite(middle), low, middle)


def _plain(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None

"""Largest singular values of a matrix by a seeded random projection, and what they say about rank.

Method: Halko, Martinsson and Tropp, "Finding structure with randomness" (2011), algorithm 4.4
with five power iterations. Estimates never exceed the true singular values (to rounding); for a
matrix of pure noise, the worst case, the norm comes out about 2 % low.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.dtypes import dtype_of
from core.errors import UsageError
from core.ir import Model, Tensor
from core.limits import DECODE_ELEMENTS, MIB, check
from core.statistics.tensors import tensor_at

WANTED: Final = 32
OVERSAMPLE: Final = 8
POWER: Final = 5
FULL: Final = 256
"""Matrices whose smaller side is at most this get all singular values, exactly ..."""

FULL_ELEMENTS: Final = 4 * MIB
"""... up to this many elements."""

RESIDUE: Final = 1e-6
"""Share of the squared Frobenius norm that may be missing where a rank is stated."""


@dataclass(frozen=True, slots=True)
class Spectrum:
    """What is known about the singular values of a matrix.

    Attributes:
        shape: rows and columns.
        values: largest singular values, descending.
        exact: whether they are all of them by a full decomposition.
        norm: the largest one, the spectral norm.
        frobenius: root of the sum of all squares, exact.
        stable_rank: ``frobenius**2 / norm**2``, 0 for a zero matrix.
        rank: the fewest singular values that leave at most ``RESIDUE`` of ``frobenius**2``,
            ``None`` where those found do not reach that.
    """

    shape: tuple[int, int]
    values: tuple[float, ...]
    exact: bool
    norm: float
    frobenius: float
    stable_rank: float
    rank: int | None


def spectrum(matrix: NDArray[Any], seed: int = 0) -> Spectrum:
    """Largest singular values of a matrix; axes beyond the first are taken together.

    Raises:
        UsageError: if there are fewer than two axes or elements that are not finite.
        LimitExceeded: beyond ``limits.DECODE_ELEMENTS`` elements.
    """
    if matrix.ndim < 2 or matrix.size == 0:
        raise UsageError("singular values need a matrix with elements")
    check("the number of elements of the matrix", matrix.size, DECODE_ELEMENTS)
    flat = matrix.reshape(matrix.shape[0], -1)
    wide = flat if flat.dtype.name in ("float32", "float64") else flat.astype(np.float32)
    if not np.isfinite(wide).all():
        raise UsageError("singular values need finite elements")
    exact = min(wide.shape) <= FULL and wide.size <= FULL_ELEMENTS
    found = _singular_values(wide.astype(np.float64)) if exact else _projected(wide, seed)
    squares = float(sum(np.square(wide[at : at + 256].astype(np.float64)).sum() for at in range(0, len(wide), 256)))
    return _spectrum((wide.shape[0], wide.shape[1]), found[: min(wide.shape)], exact, squares)


def of_tensor(model: Model, tensor: Tensor | int, seed: int = 0) -> Spectrum:
    """Largest singular values of a stored tensor as ``spectrum`` gives them; reads it from disk whole.

    Raises:
        UsageError: if it is no matrix of finite real numbers.
        LimitExceeded: beyond ``limits.DECODE_ELEMENTS`` elements.
        Unavailable: if the values cannot be decoded.
    """
    from core.tensors.read import values

    tensor = tensor_at(model, tensor)
    if dtype_of(tensor.dtype).kind in ("string", "opaque", "complex"):
        raise UsageError(f"singular values need real numbers, not {tensor.dtype}")
    if len(tensor.shape) < 2:
        raise UsageError("singular values need a matrix with elements")
    check("the number of elements of the matrix", tensor.elements, DECODE_ELEMENTS, path=model.path)
    return spectrum(values(model, tensor), seed)


def _singular_values(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    tall = matrix.T if matrix.shape[0] < matrix.shape[1] else matrix
    square: NDArray[np.float64] = np.linalg.qr(tall)[1]
    return np.linalg.svd(square, compute_uv=False).astype(np.float64)


def _projected(matrix: NDArray[Any], seed: int) -> NDArray[np.float64]:
    random = np.random.default_rng(seed).standard_normal((matrix.shape[1], WANTED + OVERSAMPLE))
    basis = np.linalg.qr(matrix @ random.astype(matrix.dtype))[0]
    for _ in range(POWER):
        basis = np.linalg.qr(matrix @ np.linalg.qr(matrix.T @ basis)[0])[0]
    return _singular_values((basis.T @ matrix).astype(np.float64))[:WANTED]


def _spectrum(shape: tuple[int, int], found: NDArray[np.float64], exact: bool, squares: float) -> Spectrum:
    norm = float(found[0])
    reached = np.cumsum(np.square(found))
    enough = np.flatnonzero(reached >= squares * (1 - RESIDUE))
    rank = int(enough[0]) + 1 if enough.size else (len(found) if exact else None)
    return Spectrum(
        shape=shape,
        values=tuple(found.tolist()),
        exact=exact,
        norm=norm,
        frobenius=float(np.sqrt(squares)),
        stable_rank=squares / norm**2 if norm else 0.0,
        rank=rank if squares else 0,
    )

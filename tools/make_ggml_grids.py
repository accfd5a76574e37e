"""Write core/tensors/ggml_grids.npz: the codebooks of GGML's IQ types.

The numbers are part of the file format (``iq2xxs_grid`` and its siblings in ggml-common.h, MIT);
they are taken from the ``gguf`` package, which publishes them in Python.

    python tools/make_ggml_grids.py
"""

from pathlib import Path

import numpy as np
from gguf import quants

NAMES = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S")
OUT = Path(__file__).parents[1] / "core" / "tensors" / "ggml_grids.npz"


def main() -> None:
    """Collect the six grids as int8 arrays of shape [entries, elements] and write them."""
    grids = {}
    for name in NAMES:
        kind = getattr(quants, name)
        kind.init_grid()
        grids[name.lower()] = np.asarray(kind.grid).reshape(kind.grid_shape).astype(np.int8)
    np.savez_compressed(OUT, **grids)


if __name__ == "__main__":
    main()

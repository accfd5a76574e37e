"""``.npy`` files that were uploaded as inputs, kept in the state folder by their content."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import BinaryIO, Final

from app import workspace
from app.actors import Actor
from app.services.models import reach
from app.services.opening import safe_name
from app.services.registry import service
from core.errors import LimitExceeded, NotFound, UsageError
from core.inputs.npy import ARRAY_BYTES, npy_head
from core.inputs.recipe import Recipe
from core.limits import KIB, MIB
from core.run.prepare import input_slots

FOLDER: Final = "inputs"
PIECE: Final = 4 * MIB


@service("collaborator")
def assign_upload(actor: Actor, artifact: str, name: str, file_name: str, stream: BinaryIO) -> Recipe:
    """Store an uploaded ``.npy`` file and assign it to one input; equal content is kept once.

    Raises:
        NotFound: if the model has no such input.
        BrokenFile: if it is no plain ``.npy`` file.
        LimitExceeded: beyond ``npy.ARRAY_BYTES``.
        UsageError: if it cannot be stored.
    """
    opened = reach(actor, artifact)
    if name not in {slot.name for slot in input_slots(opened.model)}:
        raise NotFound(f"the model has no input {name[:200]!r}", path=opened.model.path)
    recipe = Recipe("npy", path=str(_stored(file_name, stream)))
    held = workspace.current()
    held.store.artifacts.assign_input(opened.quick, name, json.dumps(recipe.to_json()))
    return recipe


def _stored(file_name: str, stream: BinaryIO) -> Path:
    folder = workspace.current().uploads / FOLDER
    arriving = folder / f".{secrets.token_hex(8)}"
    digest, total = hashlib.sha256(), 0
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        with open(arriving, "xb", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
            while piece := stream.read(PIECE):
                total += len(piece)
                if total > ARRAY_BYTES + 64 * KIB:
                    raise LimitExceeded(f"an input may have {ARRAY_BYTES} bytes", hint="Give the path of the file.")
                digest.update(piece)
                file.write(piece)
        npy_head(arriving)
        target = folder / digest.hexdigest()[:32] / safe_name(file_name)
        target.parent.mkdir(mode=0o700, exist_ok=True)
        arriving.replace(target)
    except OSError as error:
        raise UsageError(f"the upload cannot be stored: {error.strerror}") from None
    finally:
        arriving.unlink(missing_ok=True)
    return target

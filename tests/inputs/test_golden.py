"""From a file to the answer that the model's own package gives, with onnxruntime alone in between."""

from __future__ import annotations

import math
import wave
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from PIL import Image, ImageDraw, ImageFont

from core.inputs.produce import produce
from core.inputs.recipe import Recipe
from tests.corpus import fetch

C = """#include <stdio.h>
#include <stdlib.h>

struct node { int value; struct node *next; };

static struct node *push(struct node *head, int value) {
    struct node *made = malloc(sizeof *made);
    if (!made) { perror("malloc"); exit(1); }
    made->value = value;
    made->next = head;
    return made;
}

int main(void) {
    struct node *list = NULL;
    for (int i = 0; i < 10; i++) list = push(list, i * i);
    for (struct node *n = list; n; n = n->next) printf("%d\\n", n->value);
    return 0;
}
"""
JSON = """{
  "name": "lamp",
  "version": 3,
  "sizes": [1, 2.5, 40],
  "owner": {"id": 17, "mail": null, "active": true},
  "tags": ["red", "green"]
}
"""


def session(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("text", "label", "score"),
    # score: Magika().identify_bytes(text).score of magika 1.0.3; label: its place in target_labels_space (c, json)
    [(C, 17, 0.9898697733879089), (JSON, 87, 0.9770240187644958)],
)
def test_magika_labels_as_its_own_package_does(tmp_path: Path, text: str, label: int, score: float) -> None:
    (tmp_path / "file").write_text(text)
    options = {"path": str(tmp_path / "file"), "length": 2048, "part": "both", "strip": True, "block": 4096}
    made = produce(Recipe("bytes", options=options)).array
    (scores,) = session(fetch("magika")).run(None, {"bytes": made})
    assert scores[0].argmax() == label
    assert scores[0].max() == pytest.approx(score, abs=1e-5)


@pytest.mark.corpus
def test_pp_ocr_reads_what_was_written(tmp_path: Path) -> None:
    font = ImageFont.load_default(64)
    image = Image.new("RGB", (int(font.getlength("HELLO WORLD")) + 8, 76), "white")
    ImageDraw.Draw(image).text((4, 0), "HELLO WORLD", "black", font)
    image.save(tmp_path / "text.png")
    options = {
        "path": str(tmp_path / "text.png"),
        "height": 48,
        "width": math.ceil(48 * image.width / image.height),
        "channels": "bgr",
        "normalise": "-1..1",
    }  # fmt: skip  (TextRecognizer.resize_norm_img)
    made = produce(Recipe("image", options=options)).array
    recogniser = session(fetch("rapidocr_rec"))
    (scores,) = recogniser.run(None, {recogniser.get_inputs()[0].name: made})
    characters = ["", *recogniser.get_modelmeta().custom_metadata_map["character"].splitlines(), " "]
    best = scores[0].argmax(axis=1)
    kept = [at for i, at in enumerate(best) if at and (i == 0 or at != best[i - 1])]  # CTC: repeats and blanks go
    assert "".join(characters[at] for at in kept) == "HELLO WORLD"


@pytest.mark.corpus
def test_silero_hears_as_its_own_package_does(tmp_path: Path) -> None:
    vowel = produce(Recipe("ready", options={"name": "vowel"})).array[0]
    line = np.concatenate([np.zeros(4000), vowel, np.zeros(4000), vowel[:7000]])
    stored = np.rint(line * 20000).astype("<i2")
    with wave.open(str(tmp_path / "speech.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(stored.tobytes())
    model = session(fetch("silero_vad"))
    rate = np.array(16000, np.int64)

    # OnnxWrapper of silero-vad 6.2.3: 64 samples of the chunk before go in front of 512 new ones
    heard = np.pad(stored.astype(np.float32) / 32768, (0, -len(stored) % 512))
    state, context, expected = np.zeros((2, 1, 128), np.float32), np.zeros((1, 64), np.float32), []
    for start in range(0, len(heard), 512):
        chunk = np.concatenate([context, heard[None, start : start + 512]], axis=1)
        out, state = model.run(None, {"input": chunk, "state": state, "sr": rate})
        context = chunk[:, -64:]
        expected.append(out[0, 0])

    # ours: silence of 64 samples in front, then frames of 576 that overlap by 64
    options = {"path": str(tmp_path / "speech.wav"), "form": "frames", "frame": 512, "layout": "FM"}
    frames = produce(Recipe("audio", options=options)).array
    before = np.concatenate([np.zeros((1, 64), np.float32), frames[:-1, -64:]])
    state, found = produce(Recipe("zeros", options={"shape": (2, 1, 128)})).array, []
    for row in np.concatenate([before, frames], axis=1):
        out, state = model.run(None, {"input": row[None], "state": state, "sr": rate})
        found.append(out[0, 0])
    assert len(found) == len(expected) == 61
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.ptp(expected) > 0.05


@pytest.mark.corpus
def test_log_mel_agrees_with_a_model_that_calculates_it(tmp_path: Path) -> None:
    """openWakeWord's front end is a graph of its own: 32 mel bands of 60 to 3800 Hz, decibels of the power."""
    rng = np.random.default_rng(7)
    stored = np.rint(3000 * rng.standard_normal(16000)).astype("<i2")
    with wave.open(str(tmp_path / "noise.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(stored.tobytes())
    front = session(fetch("openwakeword_melspectrogram"))
    (expected,) = front.run(None, {"input": stored.astype(np.float32)[None]})
    options = {"path": str(tmp_path / "noise.wav"), "form": "mel", "n_fft": 512, "window": 400, "hop": 160, "mels": 32,
               "low_hz": 60.0, "high_hz": 3800.0, "centre": False, "log": "db", "layout": "FM"}  # fmt: skip
    found = produce(Recipe("audio", options=options)).array + 20 * np.log10(
        32768
    )  # it takes 16-bit numbers as they are
    np.testing.assert_allclose(found, expected[0, 0], atol=1e-4)

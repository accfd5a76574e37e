"""Write core/inputs/ready_made: a photo-like picture, a digit and three signals, all calculated here.

Run it as ``python tools/make_ready.py``; it gives the same pixels and samples every time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

FOLDER = Path(__file__).parents[1] / "core" / "inputs" / "ready_made"
SIDE = 224


def main() -> None:
    picture().save(FOLDER / "picture.png", optimize=True)
    digit().save(FOLDER / "digit.png", optimize=True)
    made = {"heartbeat": heartbeat(), "vowel": vowel(), "steps": steps()}
    scaled = {name: np.rint(line / np.abs(line).max() * 32767).astype(np.int16) for name, line in made.items()}
    np.savez_compressed(FOLDER / "signals.npz", **scaled)


def picture() -> Image.Image:
    """A sunset over hills with a lit ball, with the grain and soft edges of a photograph."""
    y, x = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    red, green, blue = 255 * (0.55 + 0.4 * y), 255 * (0.45 + 0.2 * y), 255 * (0.75 - 0.45 * y)
    image = np.stack([red, green, blue], -1)
    for level, colour in ((0.62, (70, 90, 80)), (0.75, (40, 66, 48)), (0.88, (24, 40, 26))):
        ridge = level + 0.05 * np.sin(9 * x + 20 * level) + 0.02 * np.sin(31 * x + 5 * level)
        image = np.where((y > ridge)[..., None], np.asarray(colour) * (0.8 + 0.4 * (y - ridge))[..., None], image)
    dx, dy = (x - 0.68) / 0.15, (y - 0.42) / 0.15
    inside = dx**2 + dy**2 < 1
    depth = np.sqrt(np.clip(1 - dx**2 - dy**2, 0, 1))
    light = np.clip(-0.5 * dx - 0.5 * dy + 0.7 * depth, 0.08, 1)
    ball = np.stack([230 * light, 80 * light, 50 * light], -1) + (light[..., None] > 0.97) * 60
    image = np.where(inside[..., None], ball, image)
    image = image + np.random.default_rng(1).normal(0, 2.5, image.shape)
    return Image.fromarray(np.clip(image, 0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.6))


def digit() -> Image.Image:
    """A white seven on black, drawn as handwriting is scanned."""
    large = Image.new("L", (280, 280))
    ImageDraw.Draw(large).line([(75, 75), (205, 75), (120, 220)], fill=255, width=26, joint="curve")
    return large.filter(ImageFilter.GaussianBlur(4)).resize((28, 28), Image.Resampling.BOX)


def heartbeat() -> np.ndarray:
    """1024 samples at 250 Hz: five beats, each the sum of the five waves of an electrocardiogram."""
    time = np.arange(1024) / 250
    phase = (time % 0.8) / 0.8
    waves = ((0.20, 0.12, 0.025), (0.36, -0.15, 0.010), (0.40, 1.0, 0.011), (0.44, -0.25, 0.010), (0.65, 0.30, 0.040))
    return sum(height * np.exp(-((phase - at) ** 2) / (2 * width**2)) for at, height, width in waves)  # type: ignore[return-value]


def vowel() -> np.ndarray:
    """One second at 16 kHz: a voice of 120 Hz through the resonances of an "ah"."""
    time = np.arange(16000) / 16000
    line = np.zeros(16000)
    for harmonic in range(1, 60):
        hz = 120 * harmonic
        gain = sum(1 / (1 + ((hz - at) / width) ** 2) for at, width in ((730, 90), (1090, 110), (2440, 170)))
        line += gain / harmonic * np.sin(2 * np.pi * hz * time)
    return line * np.minimum(1, np.minimum(time, 1 - time) * 10)


def steps() -> np.ndarray:
    """1024 samples of a sensor that jumps between levels."""
    rng = np.random.default_rng(2)
    return np.repeat(rng.normal(0, 1, 16), 64) + rng.normal(0, 0.05, 1024)


if __name__ == "__main__":
    main()

"""Opening research formats beside their own libraries: safetensors, GGUF, PyTorch checkpoints.

CPU seconds of a child process each, so that caches of one side do not help the other; memory is
VmHWM after opening less VmRSS before it. The PyTorch lines need torch in the interpreter named by
``MODELGLASS_TORCH_PYTHON`` (see make test-torch); without it they are left out aloud.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

RUNS = 5

OURS = """
import json, resource, sys, time
def memory(key):
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(key))
from core import open_model
import core.formats.table as table
[__import__(f.module) for f in table.FORMATS]
before, start = memory("VmRSS"), time.process_time()
model = open_model(sys.argv[1])
rows = [(t.name, t.dtype, t.shape) for t in model.tensors]
print(json.dumps([time.process_time() - start, memory("VmHWM") - before, len(rows)]))
"""

SAFETENSORS = """
import glob, json, sys, time
from safetensors import safe_open
start = time.process_time()
rows = []
for path in sorted(glob.glob(sys.argv[1] + "/*.safetensors")):
    with safe_open(path, "np") as file:
        for name in file.keys():
            part = file.get_slice(name)
            rows.append((name, part.get_dtype(), tuple(part.get_shape())))
print(json.dumps([time.process_time() - start, 0, len(rows)]))
"""

GGUF = """
import json, sys, time
from gguf import GGUFReader
start = time.process_time()
rows = [(t.name, t.tensor_type, tuple(t.shape)) for t in GGUFReader(sys.argv[1]).tensors]
print(json.dumps([time.process_time() - start, 0, len(rows)]))
"""

TORCH = """
import json, sys, time, torch
start = time.process_time()
state = torch.load(sys.argv[1], map_location="cpu", mmap=True, weights_only=True)
rows = [(name, t.dtype, tuple(t.shape)) for name, t in state.items()]
print(json.dumps([time.process_time() - start, 0, len(rows)]))
"""


def main() -> None:
    """Print one line a format: CPU seconds of both sides, their ratio, and memory."""
    print(f"{'file':<44}{'ours s':>9}{'peer s':>9}{'ratio':>8}{'target':>8}{'memory MB':>11}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _line("safetensors, 30 shards, 20,000 tensors", SAFETENSORS, make_shards(place / "shards"), 1.3)
        _line("GGUF, 1,000 tensors, 150,000 tokens", GGUF, make_gguf(place / "m.gguf"), 1 / 50)
        python = os.environ.get("MODELGLASS_TORCH_PYTHON", "")
        if python:
            path = make_checkpoint(place / "checkpoint.pt", python)
            _line("PyTorch zip, 2 GB, 1,000 tensors", TORCH, path, 0.5, python)
        else:
            print("PyTorch zip: LEFT OUT, MODELGLASS_TORCH_PYTHON names no interpreter with torch")


def _line(title: str, peer: str, path: Path, target: float, python: str = sys.executable) -> None:
    ours = [_run(sys.executable, OURS, path) for _ in range(RUNS)]
    theirs = [_run(python, peer, path) for _ in range(RUNS)]
    assert ours[0][2] == theirs[0][2], "both sides must list the same tensors"
    mine, other = (statistics.median(run[0] for run in runs) for runs in (ours, theirs))
    memory = max(run[1] for run in ours) / 1000
    print(f"{title:<44}{mine:>9.4f}{other:>9.4f}{mine / other:>8.3f}{target:>8.3f}{memory:>11.1f}")


def _run(python: str, code: str, path: Path) -> list[float]:
    environment = dict(os.environ, PYTHONPATH=str(Path(__file__).parents[2]))
    done = subprocess.run([python, "-c", code, str(path)], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def make_shards(folder: Path) -> Path:
    """30 files with 20,000 small tensors."""
    from safetensors.numpy import save_file

    folder.mkdir()
    weight_map: dict[str, str] = {}
    for shard in range(30):
        names = [f"model.layers.{i}.mlp.experts.{shard}.weight" for i in range(shard, 20_000, 30)]
        file = f"model-{shard + 1:05d}-of-00030.safetensors"
        save_file({name: np.zeros((8, 8), np.float16) for name in names}, folder / file)
        weight_map.update(dict.fromkeys(names, file))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder


def make_gguf(path: Path) -> Path:
    """1,000 tensors and a vocabulary of 150,000 tokens with scores and types."""
    import gguf

    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_array("tokenizer.ggml.tokens", [f"token{i}" for i in range(150_000)])
    writer.add_array("tokenizer.ggml.scores", [float(i) for i in range(150_000)])
    writer.add_array("tokenizer.ggml.token_type", [1] * 150_000)
    for i in range(1000):
        writer.add_tensor(f"blk.{i // 10}.part_{i % 10}.weight", np.zeros((32, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def make_checkpoint(path: Path, python: str) -> Path:
    """2 GB in 1,000 tensors, written by torch.save."""
    code = (
        "import sys, torch; torch.save({f'layers.{i}.weight': torch.ones(512, 1024) for i in range(1000)}, sys.argv[1])"
    )
    subprocess.run([python, "-c", code, str(path)], check=True)
    return path


if __name__ == "__main__":
    main()

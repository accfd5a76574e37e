"""Two small torch models, and every file their weights can be saved to."""

import json
from pathlib import Path

import safetensors.torch
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.ln1(x)).split(width, dim=-1)
        shape = (batch, length, self.heads, width // self.heads)
        q, k, v = (part.reshape(shape).transpose(1, 2) for part in (q, k, v))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.out(nn.functional.gelu(self.fc(self.ln2(x))))


class TinyGpt(nn.Module):
    """Three blocks with tied embedding and head."""

    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(200, 32), nn.Embedding(16, 32)
        self.blocks = nn.ModuleList(Block(32, 4) for _ in range(3))
        self.ln_f, self.lm_head = nn.LayerNorm(32), nn.Linear(32, 200, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class TinyResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.conv1, self.bn1 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return self.fc(torch.flatten(nn.functional.adaptive_avg_pool2d(torch.relu(x + y), 1), 1))


def build(name: str) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(3)
    if name == "gpt":
        return TinyGpt().eval(), torch.arange(12).reshape(2, 6)
    return TinyResNet().eval(), torch.randn(2, 3, 16, 16)


def save_all(name: str, folder: Path) -> dict[str, Path]:
    """Every export of the model, by the name of its format."""
    model, example = build(name)
    state = model.state_dict()
    paths = {
        "zip": folder / "state.pt", "legacy": folder / "legacy.pth", "module": folder / "module.pt",
        "traced": folder / "traced.pt", "scripted": folder / "scripted.pt", "exported": folder / "program.pt2",
        "safetensors": folder / "model.safetensors", "sharded": folder / "shards",
    }  # fmt: skip
    torch.save(state, paths["zip"])
    torch.save(state, paths["legacy"], _use_new_zipfile_serialization=False)
    torch.save(model, paths["module"])
    torch.jit.trace(model, example).save(str(paths["traced"]))
    if name == "gpt":
        del paths["scripted"]  # a ModuleList loop with tuple reshapes is no TorchScript
    else:
        torch.jit.script(model).save(str(paths["scripted"]))
    torch.export.save(torch.export.export(model, (example,)), paths["exported"])
    safetensors.torch.save_model(model, str(paths["safetensors"]))
    _shards(state, paths["sharded"])
    return paths


def _shards(state: dict[str, torch.Tensor], folder: Path) -> None:
    folder.mkdir()
    names, weight_map = sorted(state), {}
    for number, part in enumerate((names[::2], names[1::2]), 1):
        file = f"model-{number:05d}-of-00002.safetensors"
        safetensors.torch.save_file({key: state[key].clone() for key in part}, folder / file)
        weight_map.update(dict.fromkeys(part, file))
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))

"""Features per second: our cache's extraction against a plain eager loop over a timm model, on the same files.

The plain loop is what one would write: a DataLoader with torchvision transforms, `model.forward_features`, the mean of
the map. Each side runs in a process of its own, since memory settings belong to a process; both take turns, the first
pass of each is not counted, and their features are compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from benchmarks.table import Row
from manylabel import console
from manylabel.config import Config, DataConfig, make_config
from manylabel.data.read import read_table
from manylabel.data.source import FileSource
from manylabel.data.table import Table
from manylabel.engine.export import need_onnx
from manylabel.error import ConfigError, DataError, ManylabelError

BATCH = 16
PASSES = 3
SIDES = ("plain", "torch", "onnxruntime")


class Turn(TypedDict):
    """What the process of one side prints."""

    seconds: float


def run(data: str, images: int, backbone: str, workers: int) -> list[Row]:
    """Rows against the plain loop: our extraction with torch, and with ONNX Runtime where it is installed."""
    sides: tuple[str, ...] = SIDES
    try:
        need_onnx()
    except ConfigError as error:
        console.warn(f"not measured with ONNX Runtime: {error}")
        sides = SIDES[:2]
    if not isinstance(_table(data, images).source, FileSource):
        raise DataError(f"{data} is no folder of image files, which the plain loop needs")
    with tempfile.TemporaryDirectory() as folder:
        turns: dict[str, list[Turn]] = {side: [] for side in sides}
        for _ in range(PASSES):
            for side in sides:
                out = Path(folder) / f"{side}.npy"
                turns[side].append(_in_own_process(side, data, images, backbone, workers, out))
        features = {side: np.load(Path(folder) / f"{side}.npy") for side in sides}
    seconds = {side: min(turn["seconds"] for turn in found) for side, found in turns.items()}
    images = len(features["plain"])
    plain = images / seconds["plain"]
    rows = []
    for side in sides[1:]:
        gap = np.abs(features[side] - features["plain"]).max() / np.abs(features["plain"]).max()
        what = f"{backbone}, {images} files, {workers} workers, {side}; features differ by {gap:.1e} of the largest"
        rate = images / seconds[side]
        rows.append(Row("extract", what, rate, plain, rate / plain, "images/s", "plain eager timm loop"))
    return rows


def _in_own_process(side: str, data: str, images: int, backbone: str, workers: int, out: Path) -> Turn:
    arguments = [side, data, str(images), backbone, str(workers), str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.extract", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["without a word"])[-1]
        raise ManylabelError(f"the {side} side could not run {backbone}: {said.split(': ', 1)[-1]}")
    found: Turn = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _table(data: str, images: int) -> Table:
    table = read_table(DataConfig(path=data))
    return table.subset(np.arange(min(images, len(table))))


def _config(backbone: str) -> Config:
    return make_config(settings=[f"backbone.name={backbone}"])


def _plain(table: Table, backbone: str, workers: int) -> Callable[[], np.ndarray]:
    import timm
    from PIL import Image
    from torchvision import transforms

    from manylabel.backbone import Backbone

    body = Backbone(_config(backbone).backbone)  # only for its weights and the facts of its preparation
    p = body.preprocess
    name = body.body.pretrained_cfg["architecture"]
    model: Any = timm.create_model(name, num_classes=0).eval()
    model.load_state_dict(body.body.state_dict())
    how = (
        transforms.InterpolationMode.BICUBIC if p.interpolation == "bicubic" else transforms.InterpolationMode.BILINEAR
    )
    prepare = transforms.Compose(
        [transforms.Resize((p.size, p.size), how), transforms.ToTensor(), transforms.Normalize(p.mean, p.std)]
    )
    root = Path(table.source.root)  # type: ignore[attr-defined]

    class Photos(Dataset):
        def __len__(self) -> int:
            return len(table)

        def __getitem__(self, row: int) -> torch.Tensor:
            return prepare(Image.open(root / str(table.keys[row])).convert("RGB"))

    loader = DataLoader(Photos(), BATCH, num_workers=workers)

    def once() -> np.ndarray:
        with torch.inference_mode():
            return np.concatenate([_mean(model.forward_features(x), model.num_features).numpy() for x in loader])

    return once


def _mean(features: torch.Tensor, channels: int) -> torch.Tensor:
    if features.ndim != 4 or features.shape[1] != channels:
        raise DataError("the plain loop is written for networks that give maps [B, C, H, W]")
    return features.mean(dim=(2, 3))


def _ours(table: Table, backbone: str, workers: int, runtime: str) -> Callable[[], np.ndarray]:
    from manylabel.allocator import keep_memory
    from manylabel.cache.engine_choice import choose_engine
    from manylabel.data.dataset import ImageDataset, pixel_loader
    from manylabel.data.sampler import EpochBatches
    from manylabel.data.transform import evaluation_transform, needed_side
    from manylabel.model import Model

    keep_memory()
    model = Model(_config(backbone), 1).only.eval()
    p = model.preprocess
    engine = choose_engine(runtime, model, p, "cpu", len(table))
    dataset = ImageDataset(table, evaluation_transform(p), needed_side(p))

    def once() -> np.ndarray:
        loader = pixel_loader(dataset, EpochBatches(np.arange(len(table)), BATCH, shuffle=False), workers)
        features = [engine(batch.pixels.numpy())["final"] for batch in loader]
        return np.concatenate([maps.reshape(len(maps), -1) for maps in features])

    return once


def _main(side: str, data: str, images: str, backbone: str, workers: str, out: str) -> None:
    table = _table(data, int(images))
    small = table.subset(np.arange(min(4 * BATCH, len(table))))
    if side == "plain":
        warm, once = _plain(small, backbone, int(workers)), _plain(table, backbone, int(workers))
    else:
        warm, once = (_ours(t, backbone, int(workers), side) for t in (small, table))
    warm()
    started = time.perf_counter()
    features = once()
    seconds = time.perf_counter() - started
    np.save(out, features)
    turn: Turn = {"seconds": seconds}
    print(json.dumps(turn))


if __name__ == "__main__":
    _main(*sys.argv[1:])

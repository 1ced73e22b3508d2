"""How routing settles: what the routers choose for the same few images at different steps (Fig. 6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manylabel.core.trace import Trace
from manylabel.expert import Routing
from manylabel.multitask.model import MultiTaskModel, judging
from manylabel.multitask.work import TaskWork
from manylabel.storage.atomic import replacing
from manylabel.storage.npz_file import read_npz

IMAGES = 4
NAME = re.compile(r"step-(\d{9})\.npz")


class Probe:
    """Writes each token's first choice to <folder>/step-000000123.npz; the files are compared at the end."""

    def __init__(self, works: Mapping[str, TaskWork], folder: Path) -> None:
        self.works, self.folder = works, folder
        self.images: dict[str, Tensor] = {}

    def look(self, model: MultiTaskModel, step: int, device: torch.device) -> None:
        chosen: dict[str, np.ndarray] = {}
        with judging(model):
            for name, images in self._images().items():
                routes: dict[int, Routing] = {}
                model.features(images.to(device), name, Trace(routes=routes))
                for layer, routing in routes.items():
                    chosen[f"{name}/{layer}"] = routing.expert[:, 0].cpu().numpy().astype(np.int16)
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(self.folder / f"step-{step:09d}.npz") as temporary, open(temporary, "wb") as file:
            np.savez(file, allow_pickle=False, **chosen)

    def _images(self) -> dict[str, Tensor]:
        """The first val images of every task, always the same."""
        for name, work in self.works.items():
            if name not in self.images:
                batch = next((batch for batch in work.val_feed.batches() if len(batch)), None)
                if batch is not None:
                    self.images[name] = batch.pixels[:IMAGES]
        return self.images


def forget_after(folder: Path, step: int) -> None:
    """A resumed run writes what comes after its checkpoint anew."""
    for path in folder.glob("step-*.npz"):
        if NAME.fullmatch(path.name) and int(path.stem.removeprefix("step-")) > step:
            path.unlink()


def settling(folder: Path) -> dict[str, Any]:
    """For results.json: steps, and for each task and layer the share of tokens whose first choice differs between them."""
    paths = sorted(path for path in folder.glob("step-*.npz") if NAME.fullmatch(path.name))
    looks: list[dict[str, np.ndarray]] = []
    for path in paths:
        looks.append(read_npz(path, advice="delete it, or train again"))
    if len(looks) < 2:
        return {}
    both = set.intersection(*(set(look) for look in looks))
    keys = sorted(key for key in both if len({look[key].shape for look in looks}) == 1)
    distances = {
        key: [[round(float((a[key] != b[key]).mean()), 4) for b in looks] for a in looks]  # Hamming distance
        for key in keys
    }
    return {"steps": [int(path.stem.removeprefix("step-")) for path in paths], "distances": distances}

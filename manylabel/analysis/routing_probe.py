"""How routing settles: what the routers choose for the same few images at different steps (Fig. 6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manylabel.analysis.val_images import val_batches
from manylabel.core.trace import Trace
from manylabel.expert import Routing
from manylabel.model import Model, evaluating
from manylabel.storage.atomic import replacing
from manylabel.storage.npz_file import read_npz
from manylabel.training.work import TaskAtWork

IMAGES = 4
NAME = re.compile(r"step-(\d{9})\.npz")


class RoutingProbe:
    """Writes each token's experts to <folder>/step-000000123.npz; the files are compared at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.images: dict[str, Tensor] = {}

    def look(self, model: Model, works: Mapping[str, TaskAtWork], step: int, device: torch.device) -> None:
        if not model.backbone.adapts:
            return
        chosen: dict[str, np.ndarray] = {}
        with evaluating(model):
            for name, images in self._images(model, works).items():
                routes: dict[int, Routing] = {}
                model.backbone(images.to(device), Trace(routes=routes), name)
                for layer, routing in routes.items():
                    chosen[f"{name}/{layer}"] = routing.expert.cpu().numpy().astype(np.int16)
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(self.folder / f"step-{step:09d}.npz") as temporary, open(temporary, "wb") as file:
            np.savez(file, allow_pickle=False, **chosen)

    def forget_after(self, step: int) -> None:
        """A resumed run writes what comes after its checkpoint anew."""
        for path in self.folder.glob("step-*.npz"):
            if NAME.fullmatch(path.name) and int(path.stem.removeprefix("step-")) > step:
                path.unlink()

    def _images(self, model: Model, works: Mapping[str, TaskAtWork]) -> dict[str, Tensor]:
        """The first val images of every task, always the same."""
        for name, work in works.items():
            if name not in self.images:
                batch = next(val_batches(work, model, IMAGES), None)
                if batch is not None:
                    self.images[name] = batch.pixels[:IMAGES]
        return self.images


def settling(folder: Path) -> dict[str, Any]:
    """For results.json: steps, and for each task and layer how far routing differs between them (Hamming distance)."""
    paths = sorted(path for path in folder.glob("step-*.npz") if NAME.fullmatch(path.name))
    looks: list[dict[str, np.ndarray]] = []
    for path in paths:
        looks.append({key: _choices(one) for key, one in read_npz(path, advice="delete it, or train again").items()})
    if len(looks) < 2:
        return {}
    both = set.intersection(*(set(look) for look in looks))
    keys = sorted(key for key in both if len({len(look[key]) for look in looks}) == 1)
    distances = {key: [[round(hamming(a[key], b[key]), 4) for b in looks] for a in looks] for key in keys}
    return {"steps": [int(path.stem.removeprefix("step-")) for path in paths], "distances": distances}


def _choices(stored: np.ndarray) -> np.ndarray:
    """[T, k]; earlier versions kept the first choice alone."""
    return stored if stored.ndim == 2 else stored[:, None]


def hamming(a: np.ndarray, b: np.ndarray) -> float:
    """Of which experts tokens chose, [T, k] and [T, k'] (0 or 1 for each expert), as a share of the largest there may be: of
    k + k' choices those that the other does not have."""
    common = (a[:, :, None] == b[:, None, :]).sum()
    return float(1 - 2 * common / (a.size + b.size))

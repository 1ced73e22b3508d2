"""What routers decide, looked at afterwards: how often each expert is used by task, by label and by place (Figs. 3–5).

Figures are of clean routing (evaluation mode) on val images, with as many experts as the task uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from manylabel.analysis.val_images import val_batches
from manylabel.core.trace import Trace
from manylabel.data.dataset import Batch
from manylabel.expert import Routing
from manylabel.labels import PRESENT
from manylabel.model import Model, evaluating
from manylabel.training.work import TaskAtWork

IMAGES = 200  # val images of each task that are looked at
SECTORS = 72  # of the circle in which tokens are spread out
TOKENS = 64  # of an image that are spread out, about
LEAST = 3  # images of a label whose use of experts is told


@dataclass
class TaskRouting:
    """Choices of one task's tokens, image by image."""

    experts: int
    use: dict[int, list[np.ndarray]] = field(
        default_factory=dict
    )  # layer → per image [E], share of its tokens' choices
    hidden: list[np.ndarray] = field(default_factory=list)  # of some tokens, in the last sparse layer [tokens, D]
    rows: list[int] = field(default_factory=list)

    def add(self, batch: Batch, routes: Mapping[int, Routing]) -> None:
        images = len(batch)
        self.rows += batch.rows.tolist()
        for layer, routing in routes.items():
            chosen = torch.nn.functional.one_hot(routing.expert, self.experts).sum(dim=1).float()  # [T, E]
            share = chosen.view(images, -1, self.experts).mean(dim=1) / routing.k
            self.use.setdefault(layer, []).append(share.cpu().numpy())
        last = routes[max(routes)].hidden
        if last is not None:
            step = max(1, len(last) // (TOKENS * images))
            self.hidden.append(last[::step].float().cpu().numpy())

    def layer(self, number: int) -> np.ndarray:
        """[images, E]"""
        return np.concatenate(self.use[number])


def watch(model: Model, works: Mapping[str, TaskAtWork], device: torch.device) -> dict[str, TaskRouting]:
    """Every task's routing on its first val images; empty for a model without experts."""
    found: dict[str, TaskRouting] = {}
    if not model.backbone.adapts:
        return found
    with evaluating(model):
        for name, work in works.items():
            found[name] = TaskRouting(model.backbone.body.experts.count)
            for batch in val_batches(work, model, IMAGES):
                routes: dict[int, Routing] = {}
                model.backbone(batch.pixels.to(device), Trace(routes=routes), name)
                found[name].add(batch, routes)
    return found


def describe_routing(found: Mapping[str, TaskRouting], works: Mapping[str, TaskAtWork]) -> dict[str, Any]:
    """For results.json: use of experts by layer (Fig. 4 left), by label (right), and how tokens spread out (Fig. 5)."""
    told: dict[str, Any] = {}
    for name, routing in found.items():
        numbers = sorted(routing.use)
        mean = [routing.layer(number).mean(axis=0) for number in numbers]
        by_label, labels = _by_label(routing, works[name])
        hidden = np.concatenate(routing.hidden)
        told[name] = {
            "numbers": [number + 1 for number in numbers],
            "layers": [[round(float(value), 5) for value in row] for row in mean],
            "labels": labels,
            "by_label": by_label,
            "entropy": [round(entropy(row), 4) for row in mean],
            "circle": [round(float(v), 6) for v in circle(hidden)],
            "concentration": round(concentration(hidden), 4),
        }
    return told


def _by_label(routing: TaskRouting, work: TaskAtWork) -> tuple[list[list[float]], list[str]]:
    """Use of the last layer's experts in images of each label, less that in all images; not of labels of few images."""
    use = routing.layer(max(routing.use))  # [images, E]
    there = work.table.matrix[np.array(routing.rows)] == PRESENT  # [images, N]
    counts = there.sum(axis=0)
    kept = np.flatnonzero((counts >= LEAST) & (counts < len(use)))
    rows = [(use[there[:, label]].mean(axis=0) - use.mean(axis=0)) for label in kept]
    return [[round(float(v), 5) for v in row] for row in rows], [work.table.labels.names[label] for label in kept]


def entropy(use: np.ndarray) -> float:
    """Of the use of experts, as a share of the highest possible; 1 = all alike."""
    positive = use[use > 0]
    return float(-(positive * np.log(positive)).sum() / np.log(len(use))) if len(use) > 1 else 1.0


def circle(hidden: np.ndarray) -> np.ndarray:
    """Density of tokens around a circle: hidden states of the router [T, D] along their first two directions, by angle.

    They are not centred: where all of them point one way the router has collapsed, and what is left of them without their
    mean would look even. [SECTORS], adds up to 1
    """
    if hidden.shape[1] < 2:
        return np.full(SECTORS, 1 / SECTORS)
    _, _, directions = np.linalg.svd(hidden.T @ hidden)
    x, y = (hidden @ directions[:2].T).T
    counts, _ = np.histogram(np.arctan2(y, x), bins=SECTORS, range=(-np.pi, np.pi))
    spread = np.exp(-0.5 * (np.minimum(np.arange(SECTORS), SECTORS - np.arange(SECTORS)) / 2) ** 2)  # two sectors wide
    smooth = np.fft.ifft(np.fft.fft(counts) * np.fft.fft(spread)).real.clip(min=0)
    return smooth / max(smooth.sum(), 1e-12)


def concentration(hidden: np.ndarray) -> float:
    """|mean_t h_t / |h_t|| of hidden states [T, D]: 1 = all point one way, near 0 = they point everywhere."""
    length = np.linalg.norm(hidden, axis=1, keepdims=True)
    return float(np.linalg.norm((hidden / np.maximum(length, 1e-12)).mean(axis=0)))

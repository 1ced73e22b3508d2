"""Gates do not collapse silently: their entropy is written down every epoch, and one expert that takes all is said aloud."""

from __future__ import annotations

from typing import Any

import numpy as np
from accelerate import Accelerator
from accelerate.utils import gather_object

from manylabel.expert.load import COLLAPSED, LoadSummary


def over_processes(watched: dict[str, Any] | None, accelerator: Accelerator) -> dict[str, Any] | None:
    """What the gates did on the images of all processes together."""
    if accelerator.num_processes == 1:
        return watched
    parts = [part for part in gather_object([watched]) if part is not None]
    if not parts:
        return None
    images = [part["images"] for part in parts]
    layers = [np.average(loads, axis=0, weights=images) for loads in zip(*(p["layers"] for p in parts), strict=True)]
    return {**parts[0], "layers": layers, "images": sum(images)}


def gate_figures(watched: dict[str, Any] | None) -> dict[str, float]:
    """For metrics.jsonl: per layer the entropy of the mean load (share of the highest possible) and its highest share."""
    figures: dict[str, float] = {}
    for number, load in enumerate(watched["layers"] if watched else [], start=1):
        summary = LoadSummary.of(load)
        figures[f"gate_entropy_{number}"] = round(summary.entropy, 4)
        figures[f"gate_highest_{number}"] = round(summary.highest, 4)
        figures[f"gates_collapsed_{number}"] = summary.collapsed
    if watched and watched["capacity"] is not None:
        figures["experts_allowed"] = round(sum(watched["capacity"]) / len(watched["capacity"]), 4)
    return figures


def collapse(watched: dict[str, Any] | None) -> list[str]:
    """A sentence for every layer in which one expert has taken over."""
    found = []
    if watched is None:
        return []
    for number, load in enumerate(watched["layers"], start=1):
        mean = load.mean(axis=0)
        if mean.max() > COLLAPSED:
            name = watched["experts"][int(mean.argmax())]
            what = "the labels' own: little is shared" if name.startswith("own") else "the others learn little"
            found.append(
                f"the gates of layer {number} give {100 * mean.max():.0f} % to one expert ({name}), {what}. "
                "A lower rate (--set optimiser.lr=…) or another number of experts may help"
            )
    return found

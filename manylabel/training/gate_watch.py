"""Gates do not collapse silently: their entropy is written down every epoch, and one expert that takes all is said aloud."""

from __future__ import annotations

from manylabel.expert import ExpertUse
from manylabel.expert.load import COLLAPSED, LoadSummary


def gate_figures(use: ExpertUse | None) -> dict[str, float]:
    """For metrics.jsonl: per layer the entropy of the mean load (share of the highest possible) and its highest share."""
    figures: dict[str, float] = {}
    for number, load in enumerate(use.layers if use else [], start=1):
        summary = LoadSummary.of(load)
        figures[f"gate_entropy_{number}"] = round(summary.entropy, 4)
        figures[f"gate_highest_{number}"] = round(summary.highest, 4)
        figures[f"gates_collapsed_{number}"] = summary.collapsed
    if use and use.gates.capacity is not None:
        figures["experts_allowed"] = round(sum(use.gates.capacity) / len(use.gates.capacity), 4)
    return figures


def collapse(use: ExpertUse | None) -> list[str]:
    """A sentence for every layer in which one expert has taken over."""
    found = []
    if use is None:
        return []
    for number, load in enumerate(use.layers, start=1):
        mean = load.mean(axis=0)
        if mean.max() > COLLAPSED:
            name = use.gates.experts[int(mean.argmax())]
            what = "the labels' own: little is shared" if name.startswith("own") else "the others learn little"
            found.append(
                f"the gates of layer {number} give {100 * mean.max():.0f} % to one expert ({name}), {what}. "
                "A lower rate (--set optimiser.lr=…) or another number of experts may help"
            )
    return found

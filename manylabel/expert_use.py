"""What the gates of a judged model did: figures for results.json, and the load of every expert for the report."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from manylabel.expert import ExpertUse, GateSummary, gate_summaries
from manylabel.labels import LabelSpace

NAMED = 3  # labels by which a group's gate is called


class LayerUse(TypedDict):
    """What a layer's gates do: the figures of GateSummary."""

    experts: int
    state: str  # collapsed, uniform, specialised or mixed
    entropy: float
    highest: float
    label_entropy: float
    divergence: float
    collapsed: int
    similarity: float | None


class Use(TypedDict):
    """In results.json."""

    gates: int
    layers: list[LayerUse]


class UseDetails(TypedDict):
    """In details.json: the mean weight that each gate gives each expert (Fig. 5), and how much of a choice that is."""

    experts: list[str]
    gates: list[str]
    layers: list[list[list[float]]]
    entropies: list[list[float]]  # of each layer, by gate
    summaries: list[LayerUse]
    allowed: list[int] | None  # shared experts, by gate


class LabelUse(TypedDict):
    experts_allowed: int


def use_figures(use: ExpertUse | None) -> dict[str, Use]:
    """The `experts` entry of results.json: what the gates of each layer do. Nothing for heads without experts."""
    if use is None:
        return {}
    return {"experts": {"gates": len(use.layers[0]), "layers": _layers(use)}}


def _layers(use: ExpertUse) -> list[LayerUse]:
    return [_layer(summary) for summary in gate_summaries(use)]


def _layer(summary: GateSummary) -> LayerUse:
    return {
        "experts": summary.experts,
        "state": summary.state,
        "entropy": round(summary.entropy, 4),
        "highest": round(summary.highest, 4),
        "label_entropy": round(summary.label_entropy, 4),
        "divergence": round(summary.divergence, 4),
        "collapsed": summary.collapsed,
        "similarity": None if summary.similarity is None else round(summary.similarity, 4),
    }


def use_of_labels(use: ExpertUse | None) -> list[LabelUse] | None:
    """How many shared experts each label may use, where it found that out in training. [N]"""
    if use is None or use.gates.capacity is None:
        return None
    return [{"experts_allowed": use.gates.capacity[gate]} for gate in use.gates.of_label]


def use_details(use: ExpertUse | None, labels: LabelSpace) -> dict[str, UseDetails]:
    """The `experts` entry of details.json, with gates by name."""
    if use is None:
        return {}
    gates = np.array(use.gates.of_label)
    names = []
    for gate in range(len(use.layers[0])):
        of_gate = [labels.names[i] for i in np.flatnonzero(gates == gate)]
        more = f" +{len(of_gate) - NAMED}" if len(of_gate) > NAMED else ""
        names.append(", ".join(of_gate[:NAMED]) + more)
    return {
        "experts": {
            "experts": list(use.gates.experts),
            "gates": names,
            "layers": [np.round(load, 5).tolist() for load in use.layers],
            "entropies": [np.round(entropy, 4).tolist() for entropy in use.entropies],
            "summaries": _layers(use),
            "allowed": None if use.gates.capacity is None else list(use.gates.capacity),
        }
    }

"""What the gates of a judged model did: figures for results.json, and the load of every expert for the report."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from manylabel.expert import ExpertUse
from manylabel.expert.load import LoadSummary
from manylabel.labels import LabelSpace

NAMED = 3  # labels by which a group's gate is called


class LayerUse(TypedDict):
    """How evenly a layer's experts are used."""

    experts: int
    entropy: float
    highest: float
    collapsed: int


class Use(TypedDict):
    """In results.json."""

    gates: int
    layers: list[LayerUse]


class UseDetails(TypedDict):
    """In details.json: the mean weight that each gate gives each expert (Fig. 5)."""

    experts: list[str]
    gates: list[str]
    layers: list[list[list[float]]]
    allowed: list[int] | None  # shared experts, by gate


class LabelUse(TypedDict):
    experts_allowed: int


def use_figures(use: ExpertUse | None) -> dict[str, Use]:
    """The `experts` entry of results.json: per layer how evenly they are used. Nothing for heads without experts."""
    if use is None:
        return {}
    layers: list[LayerUse] = []
    for load in use.layers:
        s = LoadSummary.of(load)
        layers.append(
            {
                "experts": load.shape[1],
                "entropy": round(s.entropy, 4),
                "highest": round(s.highest, 4),
                "collapsed": s.collapsed,
            }
        )
    return {"experts": {"gates": len(use.layers[0]), "layers": layers}}


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
            "allowed": None if use.gates.capacity is None else list(use.gates.capacity),
        }
    }

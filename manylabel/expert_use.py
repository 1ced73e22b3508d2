"""What the gates of a judged model did: figures for results.json, and the load of every expert for the report."""

from __future__ import annotations

from typing import Any

import numpy as np

from manylabel.expert.load import LoadSummary
from manylabel.labels import LabelSpace

NAMED = 3  # labels by which a group's gate is called


def use_figures(watched: dict[str, Any] | None) -> dict[str, Any]:
    """The `experts` entry of results.json: per layer how evenly they are used. Nothing for heads without experts."""
    if watched is None:
        return {}
    layers = []
    for load in watched["layers"]:
        s = LoadSummary.of(load)
        layers.append(
            {
                "experts": load.shape[1],
                "entropy": round(s.entropy, 4),
                "highest": round(s.highest, 4),
                "collapsed": s.collapsed,
            }
        )
    return {"experts": {"gates": len(watched["layers"][0]), "layers": layers}}


def use_of_labels(watched: dict[str, Any] | None) -> list[dict[str, Any]] | None:
    """How many shared experts each label may use, where it found that out in training. [N]"""
    if watched is None or watched["capacity"] is None:
        return None
    return [{"experts_allowed": watched["capacity"][gate]} for gate in watched["gate_of_label"]]


def use_details(watched: dict[str, Any] | None, labels: LabelSpace) -> dict[str, Any]:
    """The `experts` entry of details.json: gates by name, and the mean weight each gives each expert (Fig. 5)."""
    if watched is None:
        return {}
    gates = np.array(watched["gate_of_label"])
    names = []
    for gate in range(len(watched["layers"][0])):
        of_gate = [labels.names[i] for i in np.flatnonzero(gates == gate)]
        more = f" +{len(of_gate) - NAMED}" if len(of_gate) > NAMED else ""
        names.append(", ".join(of_gate[:NAMED]) + more)
    return {
        "experts": {
            "experts": watched["experts"],
            "gates": names,
            "layers": [np.round(load, 5).tolist() for load in watched["layers"]],
            "allowed": watched["capacity"],
        }
    }

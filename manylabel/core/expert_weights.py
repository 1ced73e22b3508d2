"""How much weight each gate gives each expert: the `experts` of details.json."""

from __future__ import annotations

from typing import TypedDict


class ExpertWeights(TypedDict):
    """Of checked details, where every number is a float."""

    experts: list[str]
    gates: list[str]
    layers: list[list[list[float]]]  # [layer][gate][expert]
    allowed: list[float | None] | None  # how many experts each gate may use

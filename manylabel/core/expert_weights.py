"""How much weight each gate gives each expert: the `experts` of details.json."""

from __future__ import annotations

from typing import TypedDict


class GateFigures(TypedDict):
    """What the gates of a layer do, in shares of the highest possible."""

    state: str  # collapsed, uniform, specialised or mixed
    label_entropy: float | None
    divergence: float | None
    similarity: float | None  # None where nobody looked


class ExpertWeights(TypedDict):
    """Of checked details, where every number is a float."""

    experts: list[str]
    gates: list[str]
    layers: list[list[list[float]]]  # [layer][gate][expert]
    allowed: list[float | None] | None  # how many experts each gate may use
    entropies: list[list[float | None]]  # [layer][gate]; details of earlier versions have none, and
    summaries: list[GateFigures]  # [layer] neither

"""Rank correlations as plain values."""

from __future__ import annotations

import math
from typing import Literal

from manylabel.core.hard_findings import LabelFact, RankCorrelation
from manylabel.hard import Correlation

Fact = LabelFact | Literal["cost"]


def correlation(a: Fact, b: Fact, name: str, c: Correlation) -> RankCorrelation:
    return {
        "of": [a, b],
        "name": name,
        "labels": c.entries,
        "rho": number(c.rho),
        "low": number(c.low),
        "high": number(c.high),
    }


def number(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 6)

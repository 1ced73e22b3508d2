"""How the report says things: numbers, dates, and facts that are no figures."""

from __future__ import annotations

from datetime import datetime

from manylabel.compact import NBSP
from manylabel.figure import PERCENT

# Of facts beside the figures, which describe themselves.
TITLES = {"labels_scored": "Labels scored", "images": "Images"}
DEFINITIONS = {
    "labels_scored": "labels that some image has and some image has not; the others have no average precision",
    "images": "images that were scored",
}

FREEZE = {"frozen": "backbone frozen", "partial": "last groups trained", "full": "all weights trained"}

GATES = {
    "collapsed": "Most labels give nearly all weight to the same expert.",
    "uniform": "All labels weigh all experts alike: they choose nothing.",
    "specialised": "Labels use different experts.",
    "mixed": "Labels weigh experts somewhat differently.",
}


def percent(value: float | None) -> str:
    """61.23 → '61.2 %'; None → an en dash."""
    return "–" if value is None else f"{value:.1f}{NBSP}%"


def with_unit(value: float | None, unit: str) -> str:
    """A figure in a sentence."""
    return percent(value) if unit == PERCENT or value is None else f"{value:.4g}{NBSP}{unit}"


def share(score: float) -> str:
    """A score 0..1 in few digits that never claims a certainty that is not there: 0.9996 is not '100 %'."""
    value = 100 * score
    if 1 <= value <= 99:
        return f"{value:.0f}{NBSP}%"
    if 0 < value < 0.1:
        return f"<{NBSP}0.1{NBSP}%"
    if 99.9 < value < 100:
        return f">{NBSP}99.9{NBSP}%"
    return f"{value:.0f}{NBSP}%" if value in (0, 100) else f"{value:.1f}{NBSP}%"


def count(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def date(text: str) -> str:
    """An ISO time as one reads it; anything else stays as it is."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    zone = moment.tzname()
    return f"{moment.day} {moment:%B %Y, %H:%M}{' ' + zone if zone else ''}"

"""Large numbers in few characters."""

from __future__ import annotations

NBSP = "\u00a0"


def compact(value: float | None) -> str:
    """3400000 → '3.4 M'."""
    if value is None:
        return "–"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{NBSP}{letter}"
    return f"{value:.0f}"

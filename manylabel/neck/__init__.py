"""Necks: features to features."""

from manylabel.neck.base import NECKS, Neck

__all__ = ["NECKS", "Neck"]

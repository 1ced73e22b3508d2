"""Necks: features to features."""

from manylabel.neck.base import NECKS, Neck
from manylabel.neck.mixup import RepresentationMixup

__all__ = ["NECKS", "Neck", "RepresentationMixup"]

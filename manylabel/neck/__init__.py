"""Necks: features to weighted features."""

from manylabel.core.discovery import import_files
from manylabel.neck.base import NECKS, Neck, Weighted
from manylabel.neck.mixup import RepresentationMixup

import_files(__name__, __path__)

__all__ = ["NECKS", "Neck", "RepresentationMixup", "Weighted"]

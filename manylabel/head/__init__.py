"""Heads: features to logits."""

from manylabel.core.discovery import import_files
from manylabel.head.base import HEADS, NOTHING, Head, LabelKnowledge
from manylabel.head.hsq import HSQ, HSQLinear
from manylabel.head.linear import Linear
from manylabel.head.ml_decoder import MLDecoder
from manylabel.head.query2label import Query2Label

import_files(__name__, __path__)

__all__ = [
    "HEADS",
    "HSQ",
    "NOTHING",
    "HSQLinear",
    "Head",
    "LabelKnowledge",
    "Linear",
    "MLDecoder",
    "Query2Label",
]

"""Heads: features to logits."""

from manylabel.head.base import HEADS, NOTHING, Head, LabelKnowledge, Look
from manylabel.head.hsq import HSQ, HSQLinear
from manylabel.head.linear import Linear
from manylabel.head.ml_decoder import MLDecoder
from manylabel.head.query2label import Query2Label

__all__ = [
    "HEADS",
    "HSQ",
    "NOTHING",
    "HSQLinear",
    "Head",
    "LabelKnowledge",
    "Linear",
    "Look",
    "MLDecoder",
    "Query2Label",
]

"""Heads: features to logits."""

from manylabel.head.base import HEADS, Head
from manylabel.head.linear import Linear

__all__ = ["HEADS", "Head", "Linear"]

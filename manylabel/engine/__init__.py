"""What computes a model's raw outputs, a batch of pixels at a time. Below training, for the feature cache uses it, too."""

from manylabel.engine.base import Engine

__all__ = ["Engine"]

"""Image encoders: any timm model through one adapter."""

from manylabel.backbone.bundled import BUNDLED
from manylabel.backbone.timm import Backbone

__all__ = ["BUNDLED", "Backbone"]

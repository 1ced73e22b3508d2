"""Image encoders: any timm model through one adapter."""

from manylabel.backbone.bundled import BUNDLED
from manylabel.backbone.quick import native_bfloat16
from manylabel.backbone.timm import Backbone

__all__ = ["BUNDLED", "Backbone", "native_bfloat16"]

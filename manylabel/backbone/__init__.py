"""Image encoders: any timm model, and the kinds that files of this room register, through one adapter."""

from manylabel.backbone.backbone import Backbone
from manylabel.backbone.body import BODIES, Body
from manylabel.backbone.bundled import BUNDLED
from manylabel.backbone.kinds import resolved
from manylabel.backbone.quick import native_bfloat16
from manylabel.backbone.stride import at_stride
from manylabel.core.discovery import import_files

import_files(__name__, __path__)

__all__ = ["BODIES", "BUNDLED", "Backbone", "Body", "at_stride", "native_bfloat16", "resolved"]

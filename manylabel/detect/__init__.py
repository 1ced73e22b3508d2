"""Detection and instance segmentation on the map of a plain vision transformer."""

from manylabel.detect.detector import Detector
from manylabel.detect.options import DetectorOptions
from manylabel.detect.target import Detections, DetectionTarget
from manylabel.registry import Registry

DETECTORS = Registry("detector", section="head")
DETECTORS.register("cascade")(Detector)

__all__ = ["DETECTORS", "DetectionTarget", "Detections", "Detector", "DetectorOptions"]

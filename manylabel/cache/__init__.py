"""Features of images, computed once and kept on disk."""

from manylabel.cache.extract import Announcement, FeatureCache, cached_features
from manylabel.cache.key import View

__all__ = ["Announcement", "FeatureCache", "View", "cached_features"]

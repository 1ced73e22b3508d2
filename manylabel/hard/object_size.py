"""How large the objects of a label are in an image, as a share of its area; small, medium and large as in COCO.

COCO's limits are 32² and 96² pixels of photos of about 640×480; as shares of the area they hold for images of any size.
"""

from __future__ import annotations

import numpy as np

SIZES = ("small", "medium", "large")
PHOTO = 640 * 480
LIMITS = (32 * 32 / PHOTO, 96 * 96 / PHOTO)  # 0.33 % and 3 % of the image


def size_of(share: np.ndarray) -> np.ndarray:
    """0 small, 1 medium, 2 large, -1 where the share is NaN. [P] int"""
    return np.where(np.isnan(share), -1, np.searchsorted(LIMITS, share, side="right"))


def largest_shares(
    pairs: tuple[np.ndarray, np.ndarray],
    objects: tuple[np.ndarray, np.ndarray],
    boxes: np.ndarray,
    image_area: np.ndarray,
) -> np.ndarray:
    """Share of the image that the largest box of each pair covers, at most 1; NaN for a pair without a box. [P]

    `pairs` and `objects` are (image, label) of each pair [P] and of each box [m]; boxes [m, 4] are left, top, right,
    bottom; image_area [n] is in the same unit squared, NaN where it is not known.
    """
    width = np.maximum(boxes[:, 2].astype(np.float64) - boxes[:, 0], 0)
    height = np.maximum(boxes[:, 3].astype(np.float64) - boxes[:, 1], 0)
    share = np.minimum(width * height / image_area[objects[0]], 1)  # [m]
    labels = 1 + max((int(part[1].max()) for part in (pairs, objects) if len(part[1])), default=0)
    key = pairs[0].astype(np.int64) * labels + pairs[1]
    of_box = objects[0].astype(np.int64) * labels + objects[1]
    usable = ~np.isnan(share) & (share > 0)
    place, where = np.unique(key, return_inverse=True)
    largest = np.zeros(len(place))
    at = np.searchsorted(place, of_box[usable])
    known = at < len(place)
    known[known] = place[at[known]] == of_box[usable][known]
    np.maximum.at(largest, at[known], share[usable][known])
    found = largest[where] if len(place) else np.empty(0)
    return np.where(found > 0, found, np.nan)

"""Images that have another size than their label file says: its boxes and masks belong to other pixels."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from manylabel.data.audit.inspection import Inspection
from manylabel.data.table import Table


class WrongSize(TypedDict):
    image: str
    told: list[int]  # width, height
    found: list[int]
    turned: bool


class WrongSizes(TypedDict):
    """The list is cut, the counts are not."""

    count: int
    turned: int
    images: list[WrongSize]


def wrong_sizes(table: Table, inspection: Inspection, most: int = 100) -> WrongSizes:
    """How many differ, how many of these only in that width and height are swapped, and the first few of each kind.

    Swapped is `turned`: cameras store a photo on its side and note how to turn it. We read it upright, while the size and
    the boxes of the label file are those of the photo as it is stored.
    """
    if table.sizes is None:
        return {"count": 0, "turned": 0, "images": []}
    told = table.sizes.astype(np.int64)  # [n, 2]
    found = np.stack([inspection.facts["width"], inspection.facts["height"]], axis=1).astype(np.int64)
    differs = (told > 0).all(axis=1) & inspection.readable & (told != found).any(axis=1)
    turned = differs & (told == found[:, ::-1]).all(axis=1)
    first = [np.flatnonzero(which)[:most] for which in (differs & ~turned, turned)]
    return {
        "count": int(differs.sum()),
        "turned": int(turned.sum()),
        "images": [
            {
                "image": str(table.keys[row]),
                "told": told[row].tolist(),
                "found": found[row].tolist(),
                "turned": bool(turned[row]),
            }
            for row in np.concatenate(first).tolist()
        ],
    }

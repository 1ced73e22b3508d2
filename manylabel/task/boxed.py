"""Images that a detector may learn from and be judged by: where nobody drew a box, that must mean that nothing is there."""

from __future__ import annotations

import numpy as np

from manylabel import console
from manylabel.data.table import Table
from manylabel.labels import PRESENT, known


def with_boxed_images_only(table: Table) -> Table:
    """Without images that have a label and no box of it, and those of which nobody said anything: they are no background."""
    if table.objects is None or not len(table.objects):  # scenes, which are drawn with theirs; or an error of its own
        return table
    boxed = np.zeros(table.matrix.shape, bool)
    boxed[table.objects.row, table.objects.label] = True
    unboxed, unsaid = ((table.matrix == PRESENT) & ~boxed).any(axis=1), ~known(table.matrix).any(axis=1)
    for left_out, why in ((unboxed, "have labels without a box"), (unsaid, "have no known label")):
        if left_out.any():
            console.say(f"{table.name}: {np.count_nonzero(left_out)} images {why} and are left out of detection")
    kept = ~(unboxed | unsaid)
    return table if kept.all() else table.subset(np.flatnonzero(kept))

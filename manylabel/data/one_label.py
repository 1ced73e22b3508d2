"""Images that have exactly one label each, as a table that may say less, or too much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN, known

SHOWN = 3  # names in a message


def with_one_label_each(table: Table, training: bool = True) -> Table:
    """A label that is present makes the others absent.

    An image whose label is not known says nothing. One that has no label at all is an error in training; when a model
    is judged, its label may be one that the model does not know, so it is left out and counted.
    """
    present = (table.matrix == PRESENT).sum(axis=1)
    many = np.flatnonzero(present > 1)
    if len(many):
        row = many[0]
        names = [table.labels.names[i] for i in np.flatnonzero(table.matrix[row] == PRESENT)]
        more = f" and {len(many) - 1} more images" if len(many) > 1 else ""
        raise DataError(
            f"{table.name}: {table.keys[row]}{more} have several labels ({', '.join(names[:SHOWN])}), "
            "but kind: single_label takes exactly one; train with --kind multi_label"
        )
    none = np.flatnonzero((present == 0) & known(table.matrix).all(axis=1))
    if len(none) and training:
        raise DataError(
            f"{table.name}: {len(none)} images have no label, first {table.keys[none[0]]}; kind: single_label takes "
            "exactly one: leave these images out, give them a label of their own, or train with --kind multi_label"
        )
    matrix = np.where((present == 1)[:, None] & (table.matrix != PRESENT), np.int8(ABSENT), table.matrix)
    matrix[present == 0] = UNKNOWN
    said = (f"{len(none)} images have none of the model's labels and are not judged",) if len(none) else ()
    return replace(table, matrix=matrix, notes=(*table.notes, *said))

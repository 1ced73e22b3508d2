"""Which images of a data set a trained model is judged on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from manylabel import console
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.run.folder import read_split

TRAINED_ON = "the model was trained on these images: the figures say nothing about others"


def judged_part(table: Table, split: str | None, home: Path, same: bool) -> tuple[Table, str | None]:
    """(the images of a split, its name): by default val where there is one, else all of them, without a name.

    `same` = the model in `home` was trained on this data, so what that run called val counts, and nothing may be guessed.
    """
    made = read_split(home, table) if same else None
    if made is not None:
        new = int((made == "").sum())
        if new:
            console.warn(f"{new} images were added to {table.name} since the training and are not judged")
        table = replace(table, split=made)
    elif table.split is None and same:
        raise DataError(
            f"which images of {table.name} this model was trained on is not known here (no split.csv in {home}); "
            "judge it on other images with --data"
        )
    return table.part(split)

"""The images that a run was trained on, known by their content: kept in its folder, looked for among those judged later.

<run>/trained_images.safetensors   content [n, 16], look [m, 8], thumbnail [m, 256]: bytes, and no code to run
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from manylabel import console
from manylabel.data.audit.fingerprint import KnownImages, fingerprints_of
from manylabel.data.audit.perceptual import THUMBNAIL_SIDE
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.stop import StopRequest
from manylabel.storage.atomic import replacing
from manylabel.storage.tensor_file import read_tensors

FILE_NAME = "trained_images.safetensors"
WIDTHS = {"content": 16, "look": 8, "thumbnail": THUMBNAIL_SIDE**2}  # bytes of one image
NOT_KNOWN = (
    "it is not known which images this model was trained on (its run's folder is not here, or an earlier version wrote "
    "it): they may be among these"
)


@dataclass(frozen=True)
class Overlap:
    """Which judged images the run was trained on."""

    exact: np.ndarray  # [n] bool: the same bytes
    near: np.ndarray  # [n] bool: others that look the same


def overlap_facts(overlap: Overlap | None, rows: np.ndarray | None = None) -> dict[str, Any]:
    """For results, of these rows or all; the warnings are to be read before any figure. None: nobody knows."""
    if overlap is None:
        return {"trained_images": None, "trained_near": None, "warnings": []}
    chosen = slice(None) if rows is None else rows
    judged, exact, near = len(overlap.exact[chosen]), int(overlap.exact[chosen].sum()), int(overlap.near[chosen].sum())
    warnings = []
    if exact:
        warnings.append(
            f"the run was trained on {exact} of the {judged} judged images: figures on these say nothing about others"
        )
    if near:
        warnings.append(
            f"{near} of the {judged} judged images look like images that the run was trained on (another size, or "
            "compressed again)"
        )
    return {"trained_images": exact, "trained_near": near, "warnings": warnings}


def remember_trained(
    folder: Path, tables: Mapping[str, tuple[Table, int]], stop: StopRequest, again: str
) -> dict[str, Overlap]:
    """Keep what the run in `folder` is trained on; tell of each table which rows show such an image.

    `tables`: by name, with the number of processes to read the images. `again`: how a stopped run goes on.
    """
    found = {}
    with console.counting("fingerprints", sum(len(table) for table, _ in tables.values())) as advance:

        def go_on(images: int) -> None:
            advance(images)
            stop.stop_if_asked(f"stopped before the training began. Go on with: {again}")

        for name, (table, workers) in tables.items():
            found[name] = fingerprints_of(table, workers, go_on)
    trained = []
    for name, (table, _) in tables.items():
        fingerprints, readable = found[name]
        rows = table.rows("train")
        trained.append(fingerprints[rows[readable[rows]]])
    known = KnownImages.of(np.concatenate(trained))
    write_trained(folder, known)
    return {name: _held_out(table, found[name][0], known) for name, (table, _) in tables.items()}


def _held_out(table: Table, fingerprints: np.ndarray, known: KnownImages) -> Overlap:
    """Of the rows that the table does not train on itself; the others are nothing to be told."""
    exact, near = np.zeros((2, len(table)), bool)
    rows = np.setdiff1d(np.arange(len(table)), table.rows("train"))
    exact[rows], near[rows] = known.find(fingerprints[rows])
    return Overlap(exact, near)


def find_trained(known: KnownImages | None, fingerprints: np.ndarray) -> Overlap | None:
    """Which of these images are known; None where it is not known what is."""
    return None if known is None else Overlap(*known.find(fingerprints))


def write_trained(folder: Path, known: KnownImages) -> None:
    arrays = {name: _bytes(getattr(known, name), width) for name, width in WIDTHS.items()}
    with replacing(folder / FILE_NAME) as temporary:
        save_file(arrays, temporary)


def _bytes(values: np.ndarray, width: int) -> np.ndarray:
    """[n, width] uint8"""
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1, width)


def read_trained(folder: Path) -> KnownImages | None:
    """What the run in this folder was trained on; None where it left no such file."""
    path = folder / FILE_NAME
    if not path.is_file():
        return None
    try:
        arrays = {name: tensor.numpy() for name, tensor in read_tensors(path, DataError).tensors.items()}
        _check_arrays(arrays)
    except (DataError, ValueError, TypeError) as error:
        raise DataError(
            f"{path} is damaged ({error}), so it cannot be told whether this run was trained on the images that are to be "
            "judged; get the file again, or remove it to judge without knowing"
        ) from error
    content, look, thumbnail = (arrays[name] for name in WIDTHS)
    return KnownImages(content.view("<u8"), look.view("<u8").ravel(), thumbnail)


def _check_arrays(arrays: Mapping[str, np.ndarray]) -> None:
    """Bytes of the right width for each image; not all of them have a look."""
    shapes = {name: array.shape for name, array in arrays.items()}
    images, looks = (len(arrays[name]) if name in arrays and arrays[name].ndim else 0 for name in ("content", "look"))
    expected = {name: (images if name == "content" else looks, width) for name, width in WIDTHS.items()}
    if shapes != expected or looks > images or any(array.dtype != np.uint8 for array in arrays.values()):
        raise ValueError(f"it holds {shapes}")

"""scores.npz: what a finished run said of every judged image, so that runs can be compared image by image."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manylabel.atomic import replacing
from manylabel.error import DataError

FILE_NAME = "scores.npz"
MOST_NUMBERS = 100_000_000  # 400 MB; above it the file is left out


@dataclass(frozen=True)
class Scores:
    """Images by name, their scores and their labels, in the order of the run's label list."""

    keys: np.ndarray  # [n] text
    scores: np.ndarray  # [n, N] float32
    matrix: np.ndarray  # [n, N] int8, present, absent or unknown


def write_scores(folder: Path, keys: np.ndarray, scores: np.ndarray, matrix: np.ndarray) -> None:
    if scores.size > MOST_NUMBERS:
        return
    names = np.array([str(key) for key in keys])
    with replacing(folder / FILE_NAME) as temporary, open(temporary, "wb") as file:
        np.savez(file, keys=names, scores=scores.astype(np.float32), matrix=matrix.astype(np.int8))


def read_scores(folder: Path) -> Scores | None:
    """None where a run has none: it is older than this file, or too large for one."""
    path = folder / FILE_NAME
    if not path.is_file():
        return None
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            found = Scores(stored["keys"], stored["scores"], stored["matrix"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read ({error}); train again to write it anew") from error
    if found.scores.shape != found.matrix.shape or len(found.keys) != len(found.scores):
        raise DataError(f"{path} holds scores {found.scores.shape} for labels {found.matrix.shape}")
    return found

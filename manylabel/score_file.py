"""scores.npz: what a finished run said of every judged image, so that runs can be compared image by image."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manylabel.error import DataError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN
from manylabel.storage.atomic import replacing
from manylabel.storage.npz_file import read_npz

FILE_NAME = "scores.npz"
AGAIN = "train again to write it anew"
MOST_NUMBERS = 100_000_000  # 400 MB; above it the file is left out


@dataclass(frozen=True)
class Scores:
    """Images by name, their scores and their labels, in the order of the run's label list."""

    keys: np.ndarray  # [n] text
    scores: np.ndarray  # [n, N] float32
    matrix: np.ndarray  # [n, N] int8, present, absent or unknown
    alpha: np.ndarray | None = None  # [n, 1] or [n, N] float32: share of earlier stages, of runs that mix them


def write_scores(
    folder: Path, keys: np.ndarray, scores: np.ndarray, matrix: np.ndarray, alpha: np.ndarray | None = None
) -> None:
    if scores.size > MOST_NUMBERS:
        return
    names = np.array([str(key) for key in keys])
    with replacing(folder / FILE_NAME) as temporary, open(temporary, "wb") as file:
        arrays = {"keys": names, "scores": scores.astype(np.float32), "matrix": matrix.astype(np.int8)}
        np.savez(file, **arrays, **({} if alpha is None else {"alpha": alpha.astype(np.float32)}))  # type: ignore[arg-type]


def read_scores(folder: Path) -> Scores | None:
    """None where a run has none: it is older than this file, or too large for one."""
    path = folder / FILE_NAME
    if not path.exists():
        return None
    stored = read_npz(path, ("keys", "scores", "matrix"), advice=AGAIN, perhaps=("alpha",))
    keys, scores, matrix = stored["keys"], stored["scores"], stored["matrix"]
    if scores.ndim != 2 or scores.shape != matrix.shape or keys.shape != scores.shape[:1]:
        raise DataError(f"{path} holds scores {scores.shape} of {keys.shape} images for labels {matrix.shape}; {AGAIN}")
    if keys.dtype.kind != "U" or scores.dtype.kind != "f" or matrix.dtype.kind != "i":
        raise DataError(f"{path} holds {keys.dtype}, {scores.dtype} and {matrix.dtype}; {AGAIN}")
    if not scores.size:
        raise DataError(f"{path} holds no scores; {AGAIN}")
    alpha = stored.get("alpha")
    if alpha is not None and (alpha.dtype.kind != "f" or alpha.shape not in ((len(keys), 1), scores.shape)):
        raise DataError(f"{path} holds alpha {alpha.dtype} {alpha.shape} of {len(keys)} images; {AGAIN}")
    for name, values in (("scores", scores), ("alpha", alpha)):
        odd = 0 if values is None else int((~((values >= 0) & (values <= 1))).sum())
        if odd:
            raise DataError(f"{path}, {name}: {odd} of them are no numbers between 0 and 1; {AGAIN}")
    if not np.isin(matrix, (ABSENT, PRESENT, UNKNOWN)).all():
        raise DataError(f"{path}, matrix: an entry is none of {ABSENT}, {PRESENT} and {UNKNOWN}; {AGAIN}")
    return Scores(keys, scores, matrix, alpha)

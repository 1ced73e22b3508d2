"""What a classifier may say of an image before it has looked: how often each label is there in the training part.

Most labels are absent from most images. A head that begins with even scores learns this first, through its weights, and
what is trained in front of it (a neck, a backbone) is pulled along.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from manylabel.labels import known, support


@dataclass(frozen=True)
class Prior:
    """Log-odds of labels; of labels that compete (softmax), logarithms of their shares."""

    labels: Tensor  # [N]
    mean: float  # for a bias that all labels share, also those that are asked for later

    @classmethod
    def of(cls, matrix: np.ndarray, *, compete: bool = False, filled: bool = False) -> Prior:
        """share_n = (positives + 1) / (known + 2), 1/2 where nothing is known. `matrix` [n, N]: of the training images;
        `filled`: what nobody said counts as absent."""
        told = known(matrix)
        share = (support(matrix) + 1) / (np.where(filled, len(matrix), told.sum(axis=0)) + 2)  # [N]
        some = told.any(axis=0)
        mean = np.array(share[some].mean() if some.any() else 0.5)
        labels, common = (np.log(s) if compete else np.log(s) - np.log1p(-s) for s in (share, mean))
        return cls(torch.from_numpy(labels).float(), float(common))

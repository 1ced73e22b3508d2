"""The held-out loss of each label, for heads that adapt to it."""

from __future__ import annotations

import numpy as np
import torch

from manylabel.labels import PRESENT, UNKNOWN
from manylabel.loss import Loss, SoftmaxLoss

CERTAIN = 1e-6  # scores are taken to be no nearer to 0 and 1 than this


def label_losses(loss: Loss | SoftmaxLoss, scores: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Mean cost of each label's known entries, from scores [n, N] in 0..1. [N], NaN where nothing is known.

    By the formulas of the loss that is trained, unsmoothed and unweighed, where it is a sum of costs of labels;
    cross-entropy of each label for the others.
    """
    known = matrix != UNKNOWN
    p = torch.from_numpy(scores).double().clamp(CERTAIN, 1 - CERTAIN)
    present = torch.from_numpy(matrix == PRESENT)
    with torch.inference_mode():
        if isinstance(loss, Loss):
            x = torch.logit(p)
            cost = torch.where(present, loss.present(x), loss.absent(x, loss.absent_gamma))
        else:
            cost = torch.where(present, -torch.log(p), -torch.log1p(-p))
    total, count = np.where(known, cost.numpy(), 0.0).sum(axis=0), known.sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)

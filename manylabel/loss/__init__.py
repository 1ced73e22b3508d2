"""Losses: logits, targets and what is known of them to one number. See `base.Loss` for the contract."""

from manylabel.core.discovery import import_files
from manylabel.loss.asymmetric import AsymmetricLoss
from manylabel.loss.base import LOSSES, Loss, LossOptions
from manylabel.loss.bce import BCELoss
from manylabel.loss.focal import FocalLoss
from manylabel.loss.soft_margin import SoftMarginLoss
from manylabel.loss.softmax import CrossEntropyLoss, SingleLabelASL, SoftmaxLoss

import_files(__name__, __path__)

__all__ = [
    "LOSSES",
    "AsymmetricLoss",
    "BCELoss",
    "CrossEntropyLoss",
    "FocalLoss",
    "Loss",
    "LossOptions",
    "SingleLabelASL",
    "SoftMarginLoss",
    "SoftmaxLoss",
]

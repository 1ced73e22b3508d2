"""Multi-label soft margin."""

from __future__ import annotations

from manylabel.loss.base import LOSSES
from manylabel.loss.bce import BCELoss


@LOSSES.register("soft_margin")
class SoftMarginLoss(BCELoss):
    """Multi-label soft margin (MultiLabelSoftMarginLoss): binary cross entropy averaged over labels, as RM trains.

    The same numbers as `bce`; a name of its own so that a recipe reads like its paper.
    """

"""What a model is for: any number of labels in an image, or exactly one. Everything in which the two differ is here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from manylabel.config import Config
from manylabel.data.table import Table
from manylabel.error import ConfigError, DataError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN, known, support
from manylabel.loss import LOSSES
from manylabel.metric import mean_average_precision, top_k_accuracy

SHOWN = 3  # names in a message


@dataclass(frozen=True)
class Task:
    """Multi-label, unless `single`; `activation` turns logits into scores, as the loss trained them."""

    single: bool = False
    activation: Literal["sigmoid", "softmax"] = "sigmoid"

    @classmethod
    def of(cls, config: Config) -> Task:
        activation = LOSSES.get(config.loss.name).activation
        if activation == "softmax" and config.task != "single_label":
            raise ConfigError(
                f"loss {config.loss.name} lets labels compete, so it suits one label per image only: --task single_label"
            )
        return cls(config.task == "single_label", activation)

    # --- scores and decisions ---------------------------------------------------------------------------------------

    def probabilities(self, logits: Tensor) -> Tensor:
        """[B, N] float32"""
        return torch.softmax(logits.float(), dim=1) if self.activation == "softmax" else torch.sigmoid(logits.float())

    def decide(self, scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Which labels are said to be there. [n, N] bool"""
        if not self.single:
            return scores >= thresholds
        return np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None]

    # --- what an epoch is chosen by -----------------------------------------------------------------------------------

    @property
    def goal(self) -> str:
        return "top-1" if self.single else "mAP"

    def value(self, scores: np.ndarray, matrix: np.ndarray) -> float:
        """The goal, 0..1; NaN where it is undefined."""
        return top_k_accuracy(scores, matrix, 1)[0] if self.single else mean_average_precision(scores, matrix)[0]

    # --- data -----------------------------------------------------------------------------------------------------------

    def fit(self, table: Table, training: bool = True) -> Table:
        """The table as this task needs it: with one label per image, one that is present makes the others absent.

        An image whose label is not known says nothing. One that has no label at all is an error in training; when a model
        is judged, its label may be one that the model does not know, so it is left out and counted.
        """
        if not self.single:
            return table
        present = (table.matrix == PRESENT).sum(axis=1)
        many = np.flatnonzero(present > 1)
        if len(many):
            row = many[0]
            names = [table.labels.names[i] for i in np.flatnonzero(table.matrix[row] == PRESENT)]
            more = f" and {len(many) - 1} more images" if len(many) > 1 else ""
            raise DataError(
                f"{table.name}: {table.keys[row]}{more} have several labels ({', '.join(names[:SHOWN])}), "
                "but task=single_label takes exactly one; train with --task multi_label"
            )
        none = np.flatnonzero((present == 0) & known(table.matrix).all(axis=1))
        if len(none) and training:
            raise DataError(
                f"{table.name}: {len(none)} images have no label, first {table.keys[none[0]]}; task=single_label takes "
                "exactly one: leave these images out, give them a label of their own, or train with --task multi_label"
            )
        matrix = np.where((present == 1)[:, None] & (table.matrix != PRESENT), np.int8(ABSENT), table.matrix)
        matrix[present == 0] = UNKNOWN
        said = (f"{len(none)} images have none of the model's labels and are not judged",) if len(none) else ()
        return replace(table, matrix=matrix, notes=(*table.notes, *said))

    def hint(self, table: Table) -> str | None:
        """What somebody should know who chose the other task by accident."""
        one_each = ((table.matrix == PRESENT).sum(axis=1) == 1).all()
        if not self.single and one_each and known(table.matrix).all() and (support(table.matrix) > 0).sum() > 1:
            return "every image has exactly one label: --task single_label lets the labels compete"
        return None


MULTI_LABEL = Task()

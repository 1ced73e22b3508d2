"""How labels are decided and their thresholds fitted: any number of labels of an image, or one. No torch."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from manylabel.core.decision import decide
from manylabel.labels import UNKNOWN
from manylabel.metric.judged import Judged
from manylabel.metric.registry import MULTI_LABEL, SINGLE_LABEL
from manylabel.metric.threshold import fit_thresholds


class LabelKind(Protocol):
    """What a task with labels must tell to be judged."""

    @property
    def kind(self) -> str: ...
    @property
    def one_label(self) -> bool: ...
    def decide(self, scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray: ...
    def thresholds(self, judged: Judged) -> np.ndarray: ...


class ManyLabels:
    """Any number of labels, each with a threshold of its own."""

    kind: str = MULTI_LABEL
    one_label: bool = False

    def decide(self, scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """[n, N] bool"""
        return decide(scores, thresholds, self.one_label)

    def thresholds(self, judged: Judged) -> np.ndarray:
        """Each label's own; for unseen labels what suits the seen ones together. [N]"""
        targets = judged.targets
        if judged.unseen is not None:
            targets = np.where(judged.unseen, np.int8(UNKNOWN), targets)
        return fit_thresholds(judged.scores, targets)


class OneLabel(ManyLabels):
    """The label with the highest score; thresholds play no part."""

    kind = SINGLE_LABEL
    one_label = True

    def thresholds(self, judged: Judged) -> np.ndarray:
        """[N]"""
        return np.zeros(judged.scores.shape[1])


LABEL_KINDS: dict[str, LabelKind] = {MULTI_LABEL: ManyLabels(), SINGLE_LABEL: OneLabel()}

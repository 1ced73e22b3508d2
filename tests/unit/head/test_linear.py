from __future__ import annotations

import torch

from manylabel.features import Features
from manylabel.head import HEADS


def test_linear_is_the_mean_times_a_matrix() -> None:
    head = HEADS.build("linear", channels={"final": 5}, num_labels=3)
    final = torch.randn(2, 5, 4, 6)
    logits = head(Features({"final": final})).logits
    for b in range(2):
        z = [sum(final[b, c, y, x].item() for y in range(4) for x in range(6)) / 24 for c in range(5)]
        for n in range(3):
            expected = (
                sum(head.classifier.weight[n, c].item() * z[c] for c in range(5)) + head.classifier.bias[n].item()
            )
            assert abs(logits[b, n].item() - expected) < 1e-5

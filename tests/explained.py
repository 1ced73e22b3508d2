"""Small bundles with random weights, and photos, for tests of explanations."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image

from manylabel.bundle import TaskBundle
from manylabel.config import make_config
from manylabel.head import LabelKnowledge
from manylabel.labels import LabelSpace
from manylabel.model import Model

LABELS = ("ant", "bee", "cat", "dog", "eel", "fox")


def bundle(
    *settings: str, backbone: str = "test_efficientnet", size: int = 64, knowledge: LabelKnowledge | None = None
) -> TaskBundle:
    """With LABELS; `settings` are --set values, e.g. head.name=hsq."""
    torch.manual_seed(0)
    named = [f"backbone.name={backbone}", "backbone.weights=none", f"backbone.image_size={size}"]
    config = make_config(None, [*named, *settings])
    model = Model(config, len(LABELS), **({} if knowledge is None else {"knowledge": knowledge})).eval()
    with torch.no_grad():  # random classifiers of norms begin at zero or one, which would hide mistakes
        for parameter in (*model.heads.parameters(), *model.necks.parameters()):
            parameter.add_(0.1 * torch.randn_like(parameter))
    return TaskBundle(model.only, config, LabelSpace(LABELS), np.full(len(LABELS), 0.5))


def photos(count: int, width: int = 80, height: int = 60) -> list[Image.Image]:
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (count, 6, 8, 3)).astype(np.uint8)
    return [Image.fromarray(c).resize((width, height), Image.Resampling.BICUBIC) for c in coarse]

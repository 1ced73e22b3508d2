"""What each recipe of the ML-Decoder paper does: its model, what of it is trained and how its norms, rates and images go."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from manylabel.backbone import Backbone
from manylabel.config import make_config
from manylabel.data.augment import training_transform
from manylabel.data.sampler import EpochBatches
from manylabel.head import HEADS, LabelKnowledge
from manylabel.head.text_ml_decoder import TextMLDecoder
from manylabel.loss import LOSSES, Loss
from manylabel.run import resolve
from manylabel.training.optimise import OPTIMISERS, SCHEDULES

AT = (0.0, 0.1, 0.2, 0.6, 1.0)  # of a run
ONE_CYCLE = (1 / 25, 0.52, 1.0, 0.5, 1e-5)  # shares of the highest rate
UNIT, IMAGENET = ((0.0,) * 3, (1.0,) * 3), ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


class Says(NamedTuple):
    """What the paper says of a run."""

    backbone: str
    size: int
    labels: int
    queries: int
    lr: float
    decay: float
    epochs: int
    optimiser: type[torch.optim.Optimizer] = torch.optim.AdamW
    colours: tuple[tuple[float, ...], tuple[float, ...]] = UNIT
    gamma: float | None = 4.0  # None = cross entropy


COCO = {"lr": 2e-4, "decay": 1e-4, "epochs": 40}
SAYS = {
    "ml-decoder-coco-paper": Says("tresnet_v2_l", 448, 80, 80, **COCO),
    "ml-decoder-coco-m": Says("tresnet_m", 448, 80, 80, **COCO),
    "ml-decoder-coco-r101": Says("resnet101", 448, 80, 80, **COCO),
    "ml-decoder-coco-xl": Says("tresnet_xl", 640, 80, 80, **COCO),
    "ml-decoder-coco-reference": Says("tresnet_l", 448, 80, 80, 1e-4, 1e-4, 40, torch.optim.Adam),
    "ml-decoder-voc": Says("tresnet_v2_l", 448, 20, 20, **COCO),
    "ml-decoder-openimages": Says("tresnet_m", 224, 9605, 100, 2e-4, 1e-4, 25, gamma=7.0),
    "ml-decoder-nus-zsl": Says("tresnet_m", 224, 1006, 1006, **COCO, gamma=None),
    "ml-decoder-imagenet": Says("resnet50", 224, 1000, 100, 5e-3, 0.02, 300, object, IMAGENET, None),  # type: ignore[arg-type]
    "ml-decoder-imagenet-a1": Says("resnet50", 224, 1000, 100, 5e-3, 0.01, 600, object, IMAGENET, None),  # type: ignore[arg-type]
}


def _head(config: Any, says: Says, channels: dict[str, int]) -> Any:
    unseen = np.arange(says.labels) >= 925 if config.only.text.name != "none" else None
    vectors = np.random.default_rng(0).normal(size=(says.labels, 50)).astype(np.float32)
    known = LabelKnowledge(vectors if unseen is not None else None, unseen=unseen)
    return HEADS.build(config.only.head, channels=channels, num_labels=says.labels, knowledge=known)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAYS)
def test_a_recipe_does_what_the_paper_says(name: str) -> None:
    says, config = SAYS[name], resolve(make_config(name))
    with torch.device("meta"):
        backbone = Backbone(config.backbone, load_weights=False)
    backbone.train()
    norms = [module for module in backbone.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    assert len(norms) > 20
    assert all(norm.training for norm in norms)
    assert all(p.requires_grad for p in backbone.parameters())
    assert (backbone.name, backbone.preprocess.size) == (says.backbone, says.size)
    assert (backbone.preprocess.mean, backbone.preprocess.std) == says.colours

    head = _head(config, says, backbone.channels)
    assert int(head.query_of_label.max()) + 1 == says.queries
    assert len(head.layers) == 1
    width, d, hidden = backbone.channels["final"], 768, 2048
    body = width * d + d + 4 * (d * d + d) + 2 * d * hidden + hidden + d + 3 * 2 * d  # project, Eq. 1, FF, three norms
    size = -(-says.labels // says.queries)
    if isinstance(head, TextMLDecoder):
        own = (50 * d + d) + (d + 1)  # W_a with its bias; one W and one bias for all labels
        assert len(head.words.seen) == 925
    else:
        own = says.queries * size * d + says.labels  # the group FC; its queries are not trained
    assert sum(p.numel() for p in head.parameters() if p.requires_grad) == body + own

    loss = LOSSES.build(config.only.loss)
    assert isinstance(loss, Loss)
    assert getattr(loss.options, "gamma_negative", None) == says.gamma
    assert (config.train.epochs, config.optimiser.options["lr"]) == (says.epochs, says.lr)
    rated = _Rated(head)
    optimiser = OPTIMISERS.build(config.optimiser).build(rated)
    assert isinstance(optimiser, says.optimiser)
    assert {group["weight_decay"] for group in optimiser.param_groups} == {says.decay, 0.0}
    if config.schedule.name == "one_cycle":
        assert _shares(config, optimiser, says.lr) == pytest.approx(ONE_CYCLE, abs=1e-3)


@pytest.mark.parametrize(("name", "warm", "smoothing", "mixup"), [("", 5 / 300, 0.0, 0.1), ("-a1", 5 / 600, 0.1, 0.2)])
def test_imagenets_configurations(name: str, warm: float, smoothing: float, mixup: float) -> None:
    config = resolve(make_config(f"ml-decoder-imagenet{name}"))
    a, task = config.only.augment, config.only
    assert (a.flip, a.randaugment, a.mixup, a.cutmix, a.repeats, a.erasing) == (True, 7, mixup, 1.0, 3, 0.0)
    assert (task.kind, task.loss.name, task.loss.options["label_smoothing"]) == ("single_label", "bce", smoothing)
    assert (config.backbone.drop_path, config.train.batch_size, config.train.ema) == (0.05, 2048, 0.0)
    assert config.optimiser.name == "lamb"
    assert task.head.options["grouping"] == "random"
    assert config.schedule.options["warm_up"] == pytest.approx(warm, rel=0.01)
    order = EpochBatches(np.arange(90), 9, shuffle=True, repeats=a.repeats)
    assert len(order.order()) == 90
    assert len(set(order.order().tolist())) == 30


def test_group_decoding_for_labels_never_trained() -> None:
    """Table 4's second row as a command: 925 seen labels in 78 queries, 81 unseen ones in 7 of their own."""
    config = resolve(make_config("ml-decoder-nus-zsl", ["head.groups=100", "head.pooling=text"]))
    head = _head(config, SAYS["ml-decoder-nus-zsl"], {"final": 8})
    assert (head.size, head.words.trained_groups, head.words.groups) == (12, 78, 85)


def test_the_transformer_decoder_of_table_1() -> None:
    config = resolve(make_config("ml-decoder-coco-m", ["head.self_attention=true", "head.query=learnable"]))
    head = _head(config, SAYS["ml-decoder-coco-m"], {"final": 8})
    assert head.queries.weight.shape == (80, 768)
    assert head.queries.weight.requires_grad
    assert head.layers[0].self_attention is not None


@pytest.mark.parametrize("name", SAYS)
def test_training_images_are_varied_as_said(name: str) -> None:
    config = resolve(make_config(name))
    with torch.device("meta"):
        preprocess = Backbone(config.backbone, load_weights=False).preprocess
    steps = [type(step).__name__ for step in training_transform(preprocess, config.only.augment).steps.transforms]  # type: ignore[attr-defined]
    if "imagenet" in name:
        assert steps == ["RandomResizedCrop", "PILToTensor", "RandomHorizontalFlip", "RandAugment"]
    else:
        policy = "RandAugment" if name == "ml-decoder-coco-reference" else "AutoAugment"
        assert steps == ["Square", "PILToTensor", policy, "Cutout"]  # no flip


class _Rated(nn.Module):
    """A head alone, at the highest rate."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def rates(self, _: object) -> dict[str, float]:
        return {}


def _shares(config: Any, optimiser: torch.optim.Optimizer, lr: float, steps: int = 1001) -> list[float]:
    schedule, found = SCHEDULES.build(config.schedule).build(optimiser, steps), []
    for _ in range(steps):
        found.append(optimiser.param_groups[0]["lr"] / lr)
        optimiser.step()
        schedule.step()
    return [found[round(at * (steps - 1))] for at in AT]

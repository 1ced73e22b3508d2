"""A forward pass leaves nothing in the model, so one model answers from many threads what it answers from one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from explained import LABELS, bundle
from PIL import Image
from small_tasks import SMALL
from torch import Tensor, nn

from manylabel.config import make_config
from manylabel.core.contract import untouched
from manylabel.core.output import Output
from manylabel.core.trace import Trace
from manylabel.error import ConfigError
from manylabel.features import FINAL, Features
from manylabel.head import HEADS, Head, LabelKnowledge
from manylabel.head.linear import Linear
from manylabel.inference.predictor import Predictor
from manylabel.model import Model, TaskModel
from manylabel.neck import NECKS, Neck

THREADS = 8
SIZES: dict[str, list[str]] = {
    **{name: [] for name in HEADS.names()},
    "ml_decoder": ["head.dim=16", "head.heads=2", "head.hidden=16"],
    "query2label": ["head.dim=16", "head.heads=2", "head.hidden=16"],
    "hsq": ["head.dim=16", "head.heads=2", "head.hidden=16", "head.shared_experts=3"],
    "hsq_linear": ["head.dim=16", "head.heads=2", "head.hidden=16"],
    "words": ["head.name=ml_decoder", "head.dim=16", "head.heads=2", "head.query=text", "head.pooling=shared"],
}
MIXES: dict[str, list[str]] = {
    **{name: [f"neck.name={name}"] for name in NECKS.names()},
    "rm": ["neck.name=rm", "neck.stages=stage2,stage3"],
    "rm by label": ["neck.name=rm", "neck.stages=stage2,stage3", "neck.share=label"],
}


def from_everywhere(ask: Callable[[Tensor], Any], images: list[Tensor]) -> list[Any]:
    """The answers for all images, asked from eight threads at once, several times over."""
    with ThreadPoolExecutor(THREADS) as pool, torch.no_grad():
        return list(pool.map(_without_gradients(ask), images))


def _without_gradients(ask: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    def one(image: Tensor) -> Any:
        with torch.no_grad():  # a thread begins with gradients on
            return ask(image)

    return one


def pictures(count: int = 3 * THREADS, size: int = 64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(0, 256, (1, 3, size, size), dtype=torch.uint8, generator=generator) for _ in range(count)]


def test_every_head_and_neck_is_here() -> None:
    assert set(HEADS.names()) <= set(SIZES)
    assert set(NECKS.names()) == {name.split()[0] for name in MIXES}


@pytest.mark.parametrize("inputs", ["pixels", "cached", "cut", "cut, cached"])
@pytest.mark.parametrize("neck", MIXES)
@pytest.mark.parametrize("head", SIZES)
def test_one_model_answers_for_many_threads(head: str, neck: str, inputs: str) -> None:
    if head == "words" and neck == "rm by label":
        pytest.skip("a mix for each label does not go with a zero-shot head")
    knowledge = LabelKnowledge(vectors=np.random.default_rng(0).normal(size=(len(LABELS), 8)).astype(np.float32))
    freeze = "backbone.freeze=partial" if "cut" in inputs else "backbone.freeze=frozen"
    settings = [*SIZES[head], *MIXES[neck], freeze]
    if head != "words":
        settings.append(f"head.name={head}")
    model = bundle(*settings, knowledge=knowledge if head == "words" else None).model
    images = pictures()

    def ask(image: Tensor) -> Tensor:
        given: Any = model.features(image) if "cached" in inputs else image
        return model(given, trace=Trace(gates=[], attention=[], shares={})).logits

    with torch.no_grad(), untouched(model):
        expected = [ask(image) for image in images]
        answers = from_everywhere(ask, images)
    for answer, alone in zip(answers, expected, strict=True):
        torch.testing.assert_close(answer, alone, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("sharing", ["experts", "dense", "taps", "taps_released"])
def test_one_model_of_several_tasks_answers_for_many_threads(sharing: str) -> None:
    recipe = copy.deepcopy(SMALL)
    recipe["backbone"]["options"]["experts"]["sharing"] = sharing
    torch.manual_seed(0)
    model = Model(make_config(recipe), {"labels": 5, "objects": 4}).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    images = pictures()
    tasks = {id(image): ("labels", "objects")[i % 2] for i, image in enumerate(images)}

    def ask(image: Tensor) -> Tensor:
        answer = model(image, tasks[id(image)], trace=Trace(routes={})).answer
        return answer if isinstance(answer, Tensor) else answer[0].scores

    with torch.no_grad(), untouched(model):
        expected = [ask(image) for image in images]
        answers = from_everywhere(ask, images)
    for answer, alone in zip(answers, expected, strict=True):
        torch.testing.assert_close(answer, alone, atol=1e-6, rtol=1e-5)


def test_a_backbone_that_hands_out_no_stages_is_listened_to_and_not_changed() -> None:
    model = bundle("neck.name=rm", "neck.stages=stage2,stage3").model
    reader = model.backbone.reader
    images = pictures()
    with torch.no_grad():
        expected = [model(image).logits for image in images]
        reader.hands_out = False
        model.backbone.select(model.neck.reads(model.head.stages))
        reader.select(model.backbone.stages)
        with untouched(model):
            answers = from_everywhere(lambda image: model(image).logits, images)
    for answer, alone in zip(answers, expected, strict=True):
        torch.testing.assert_close(answer, alone, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("freeze", ["full", "partial"])
def test_a_vision_transformer_with_experts_answers_for_many_threads(freeze: str) -> None:
    torch.manual_seed(0)
    config = make_config(
        {"backbone": {**SMALL["backbone"], "freeze": freeze, "image_size": 64}, "head": {"name": "linear"}}
    )
    model = Model(config, 5).only.eval()
    images = pictures()

    def ask(image: Tensor) -> Tensor:
        return model(image, trace=Trace(routes={})).logits

    with torch.no_grad(), untouched(model):
        expected = [ask(image) for image in images]
        answers = from_everywhere(ask, images)
    for answer, alone in zip(answers, expected, strict=True):
        torch.testing.assert_close(answer, alone, atol=1e-6, rtol=1e-5)


def test_one_predictor_answers_for_many_threads() -> None:
    predictor = Predictor(bundle("head.name=hsq", "head.dim=16", "head.heads=2", "head.hidden=16"))
    photos = [Image.fromarray(image[0].permute(1, 2, 0).numpy()) for image in pictures()]
    expected = [predictor.predict(photo)[0] for photo in photos]
    with ThreadPoolExecutor(THREADS) as threads:
        answers = list(threads.map(lambda photo: predictor.predict(photo)[0], photos))
    for answer, alone in zip(answers, expected, strict=True):
        scores = {one.label: one.score for one in alone.labels}
        assert {one.label: one.score for one in answer.labels} == pytest.approx(scores, abs=1e-6)


# --- parts that break their contract ----------------------------------------------------------------------------------


class Remembers(Linear):
    """Writes into itself."""

    def forward(self, features: Features, targets: Any = None, trace: Trace | None = None) -> Output:
        self.last = features.final.mean()
        return super().forward(features, targets, trace)


class Counts(Linear):
    """Writes into a buffer of its own."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, features: Features, targets: Any = None, trace: Trace | None = None) -> Output:
        self.seen += 1
        return super().forward(features, targets, trace)


class Collects(Linear):
    """Writes into a list of its own."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.seen: list[int] = []

    def forward(self, features: Features, targets: Any = None, trace: Trace | None = None) -> Output:
        self.seen.append(1)
        return super().forward(features, targets, trace)


class Overwrites(Linear):
    """Writes into a dict of its own."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.known = {"first": 0, "second": 0}

    def forward(self, features: Features, targets: Any = None, trace: Trace | None = None) -> Output:
        self.known["first"] += 1
        return super().forward(features, targets, trace)


class Hooks(Linear):
    """Puts a hook on itself."""

    def forward(self, features: Features, targets: Any = None, trace: Trace | None = None) -> Output:
        self.classifier.register_forward_hook(lambda *_: None)
        return super().forward(features, targets, trace)


class Bare(Linear):
    """Gives a tensor."""

    def forward(self, features: Features, targets: Any = None, trace: Trace | None = None) -> Any:
        return super().forward(features, targets, trace).logits


class Short(Linear):
    """Forgets a label."""

    def forward(self, features: Features, targets: Any = None, trace: Trace | None = None) -> Output:
        return Output(super().forward(features, targets, trace).logits[:, 1:])


class Wide(Neck):
    """Says other channels than it gives."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.channels = {FINAL: 7}

    def forward(self, features: Features, trace: Trace | None = None) -> Any:
        return [(None, features)]


class Heavy(Neck):
    """Weighs by something that is no label."""

    def forward(self, features: Features, trace: Trace | None = None) -> Any:
        return [(torch.ones(1, 5), features)]


class Plain(Neck):
    """Gives Features without a weight."""

    def forward(self, features: Features, trace: Trace | None = None) -> Any:
        return features


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (Remembers, r"head \(Remembers\) changes its 'last' during a pass"),
        (Counts, r"head \(Counts\) changes its '_buffers.seen'"),
        (Collects, r"head \(Collects\) changes its 'seen'"),
        (Overwrites, r"head \(Overwrites\) changes its 'known.first'"),
        (Hooks, r"head.classifier \(Linear\) changes its '_forward_hooks"),
        (Bare, "head Bare gives a Tensor; forward must give Output"),
        (Short, r"head Short gives logits of shape \[1, 5\] for 1 image and 6 labels, not \[1, 6\]"),
        (Wide, r"neck Wide says that final has 7 channels, and gives \[1, "),
        (Heavy, r"neck Heavy weighs features by \[1, 5\] for 1 image and 6 labels, not \[1, 6\]"),
        (Plain, "neck Plain gives a Features; forward must give a list"),
    ],
)
def test_a_part_that_breaks_its_contract_is_named_before_training(part: type[nn.Module], said: str) -> None:
    model: TaskModel = bundle().model
    if issubclass(part, Head):
        model.head = part(model.head.options, channels=model.neck.channels, num_labels=len(LABELS))
    else:
        model.neck = part(model.neck.options, channels={FINAL: 1}, num_labels=len(LABELS))
    with pytest.raises(ConfigError, match=said):
        model.check()


def test_parts_that_keep_it_pass() -> None:
    for head in SIZES:
        if head != "words":
            model = bundle(f"head.name={head}", *SIZES[head], *MIXES["rm by label"]).model
            model.train()
            model.check()
            assert model.training

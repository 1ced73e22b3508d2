from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from manylabel.config import parse
from manylabel.detect import DetectionTarget, Detector, DetectorOptions
from manylabel.error import ConfigError, DataError
from manylabel.features import FINAL, Features
from manylabel.metric.detection import ImageFound, ImageTruth, coco_average_precision, run_lengths

SIZE = (64, 64)
SMALL: dict[str, Any] = {
    "width": 16, "levels": (2, 1, 0.5), "proposals": 40, "test_proposals": 30, "box_hidden": 32, "mask_width": 8,
    "mask_layers": 1, "box_samples": 32, "anchor_samples": 32,
}  # fmt: skip


def build(labels: int = 4, channels: int = 12, **options: Any) -> Detector:
    torch.manual_seed(0)
    return Detector(DetectorOptions(**(SMALL | options)), channels={"final": channels}, num_labels=labels, stride=8)


def seen(images: int = 2, channels: int = 12, size: tuple[int, int] = SIZE) -> Features:
    final = torch.randn(images, channels, 8, 8, generator=torch.Generator().manual_seed(3))
    return Features({FINAL: final}, size=size)


def objects(boxes: list[list[float]], labels: list[int], ignore: list[bool] | None = None) -> DetectionTarget:
    masks = torch.zeros(len(boxes), *SIZE, dtype=torch.bool)
    for mask, (left, top, right, bottom) in zip(masks, boxes, strict=True):
        mask[int(top) : int(bottom), int(left) : int(right)] = True
    ignored = torch.tensor(ignore or [False] * len(boxes), dtype=torch.bool)
    return DetectionTarget(torch.tensor(boxes).reshape(-1, 4), torch.tensor(labels, dtype=torch.long), masks, ignored)


SOME = [objects([[4.0, 6.0, 30.0, 40.0], [35.0, 35.0, 60.0, 62.0]], [0, 3]), objects([[10.0, 10.0, 50.0, 30.0]], [1])]
NONE = [objects([], []), objects([], [])]
CROWD = [objects([[0.0, 0.0, 64.0, 64.0]], [1], [True]), objects([[0.0, 0.0, 64.0, 64.0]], [2], [True])]


@pytest.mark.parametrize("options", [{}, {"stages": 1}, {"masks": False}, {"levels": (1,)}], ids=str)
def test_every_trained_weight_gets_a_gradient(options: dict[str, Any]) -> None:
    detector = build(**options)
    losses = detector(seen(), SOME).losses
    expected = {"rpn_objectness", "rpn_box"} | ({"mask"} if detector.options.masks else set())
    for stage in range(1, detector.options.stages + 1):
        expected |= {f"cls_{stage}", f"box_{stage}"}
    assert set(losses) == expected
    assert all(loss.shape == () and torch.isfinite(loss) for loss in losses.values())
    sum(losses.values()).backward()
    assert [name for name, p in detector.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


def test_it_begins_with_what_is_known_of_the_images() -> None:
    """Its first scores are the shares of boxes on each label, so the first loss is their entropy."""
    detector = build()
    present = torch.tensor([0.5, 0.25, 1.0, 0.0])
    even = sum(detector(seen(), SOME).losses[f"cls_{stage}"] for stage in (1, 2, 3))
    detector.expect(present)
    for head in detector.cascade.heads:
        share = head.label.bias.softmax(dim=0)
        assert share[:3].tolist() == pytest.approx((present[:3] / 32).tolist(), rel=1e-3)
        assert 0 < share[3] < 1e-3
    objectness = detector.proposals.head.cls_logits.bias.sigmoid()
    assert objectness.tolist() == pytest.approx([2 * 1.751 / 32] * 3, rel=1e-3)
    assert sum(detector(seen(), SOME).losses[f"cls_{stage}"] for stage in (1, 2, 3)) < 0.7 * even
    detector.expect(torch.full((4,), 1e6))  # far more than there are boxes: a quarter of them, as many as are drawn
    assert detector.cascade.heads[0].label.bias.softmax(dim=0).tolist() == pytest.approx([1 / 16] * 4 + [3 / 4])


@pytest.mark.parametrize("targets", [NONE, CROWD], ids=["no objects", "all is a crowd"])
def test_images_without_objects_teach_background_alone(targets: list[DetectionTarget]) -> None:
    detector = build()
    losses = detector(seen(), targets).losses
    for name in ("rpn_box", "box_1", "box_2", "box_3", "mask"):
        assert losses[name] == 0
    if targets is NONE:
        assert losses["cls_1"] > 0
        assert losses["rpn_objectness"] > 0
    sum(losses.values()).backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in detector.parameters())


def test_what_is_found_has_the_right_form() -> None:
    detector = build(most=7, score=0.0).eval()
    with torch.no_grad():
        found = detector(seen()).answer
    for each in found:
        assert len(each) == 7
        assert each.boxes.min() >= 0
        assert each.boxes.max() <= 64
        assert (each.scores.diff() <= 0).all()  # best first
        assert each.masks.shape == (7, 28, 28)
        assert each.paste(SIZE).shape == (7, *SIZE)
    with pytest.raises(ValueError, match="masks=False"):
        build(masks=False).eval()(seen()).answer[0].paste(SIZE)


def test_an_image_is_judged_alike_alone_and_among_others() -> None:
    detector = build(score=0.0).eval()
    with torch.no_grad():
        together, alone = detector(seen(3)).answer, detector(seen(3).part(slice(1, 2))).answer
    for name in ("boxes", "scores", "masks"):
        torch.testing.assert_close(getattr(together[1], name), getattr(alone[0], name), atol=1e-4, rtol=1e-4)
    assert torch.equal(together[1].labels, alone[0].labels)


def test_labels_in_another_order_are_found_in_another_order() -> None:
    detector = build(score=0.0).eval()
    order = torch.tensor([2, 0, 3, 1])
    with torch.no_grad():
        before = detector(seen(1)).answer[0]
        for head in detector.cascade.heads:
            head.label.weight[:4], head.label.bias[:4] = head.label.weight[order], head.label.bias[order]
        detector.mask.label.weight.copy_(detector.mask.label.weight[order])
        after = detector(seen(1)).answer[0]
    assert torch.equal(order[after.labels], before.labels)
    torch.testing.assert_close(after.boxes, before.boxes)
    torch.testing.assert_close(after.masks, before.masks)


def test_held_out_losses_are_the_same_every_time_and_leave_chance_alone() -> None:
    detector = build(box_samples=8, anchor_samples=8).eval()
    torch.manual_seed(5)
    first = detector(seen(), SOME).losses
    drawn = torch.rand(3)
    second = detector(seen(), SOME).losses
    assert all(torch.equal(first[name], second[name]) for name in first)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(3), drawn)
    detector.train()
    assert not torch.equal(detector(seen(), SOME).losses["cls_1"], detector(seen(), SOME).losses["cls_1"])


def test_held_out_losses_do_not_ask_how_sure_it_is_of_background() -> None:
    """That follows from the share of boxes on objects while training, which changes with the proposals."""
    detector = build().eval()
    before = {name: float(loss) for name, loss in detector(seen(), SOME).losses.items()}
    for head in detector.cascade.heads:
        head.label.bias.data[-1] += 5
    after = {name: float(loss) for name, loss in detector(seen(), SOME).losses.items()}
    assert after == pytest.approx(before)
    for head in detector.cascade.heads:
        head.label.bias.data[2] += 5  # a label that none of them has
    worse = detector(seen(), SOME).losses
    assert all(worse[f"cls_{stage}"] > before[f"cls_{stage}"] + 1 for stage in (1, 2, 3))
    none = detector(seen(), NONE).losses
    assert all(float(none[f"cls_{stage}"]) == 0 for stage in (1, 2, 3))


def test_half_precision_keeps_boxes_and_losses_whole() -> None:
    detector = build().eval()
    with torch.no_grad():
        exact = detector(seen(), SOME).losses
        with torch.autocast("cpu", torch.bfloat16):
            losses, found = detector(seen(), SOME).losses, detector(seen()).answer
    assert all(loss.dtype == torch.float32 for loss in losses.values())
    assert {each.dtype for each in (found[0].boxes, found[0].scores, found[0].masks)} == {torch.float32}
    assert abs(float(losses["rpn_objectness"] - exact["rpn_objectness"])) < 0.05


@pytest.mark.parametrize(
    ("boxes", "labels", "said"),
    [
        ([[5.0, 5.0, 5.0, 20.0]], [0], "image 1 of the batch: the box .* has no area"),
        ([[5.0, float("nan"), 9.0, 20.0]], [0], "image 1 of the batch: the box .* has no area"),
        ([[5.0, 5.0, 9.0, 20.0]], [4], "image 1 of the batch: label 4, where there are 4"),
    ],
)
def test_objects_that_cannot_be_learned_are_named(boxes: list[list[float]], labels: list[int], said: str) -> None:
    count = len(boxes)
    wrong = DetectionTarget(torch.tensor(boxes), torch.tensor(labels), None, torch.zeros(count, dtype=torch.bool))
    with pytest.raises(DataError, match=said):
        build()(seen(), [SOME[0], wrong])


def test_masks_must_fit_the_image_and_their_boxes() -> None:
    small = DetectionTarget(SOME[0].boxes, SOME[0].labels, torch.zeros(2, 32, 32, dtype=torch.bool), SOME[0].ignore)
    with pytest.raises(DataError, match=r"image 0 of the batch: masks of \(32, 32\)"):
        build()(seen(), [small, SOME[1]])
    with pytest.raises(DataError, match="do not belong together"):
        DetectionTarget(SOME[0].boxes, SOME[0].labels, torch.zeros(1, *SIZE, dtype=torch.bool), SOME[0].ignore)
    with pytest.raises(ValueError, match="a stride of 8 gives"):
        build()(seen(size=(72, 64)))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"levels": (4, 1)}, "without gaps"),
        ({"levels": ()}, "without gaps"),
        ({"stages": 4}, "1 to 3"),
        ({"anchors": (32, 64)}, "4 sides above 0"),
        ({"nms": 0}, "above 0"),
        ({"score": float("nan")}, "at least 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=f"head.*{said}"):
        DetectorOptions(**wrong)


def test_settings_can_be_given_as_text() -> None:
    options = parse(DetectorOptions, {"levels": "2,1,0.5", "ratios": [0.5, 1, 2], "masks": False}, "detector")
    assert options.levels == (2, 1, 0.5)
    assert not options.masks


# --- does it learn ---------------------------------------------------------------------------------------------------


def of(map: torch.Tensor) -> Features:
    return Features({FINAL: map}, size=SIZE)


def held_out_loss(detector: Detector, map: torch.Tensor, targets: list[DetectionTarget]) -> float:
    """In evaluation mode; the mode is as it was afterwards."""
    detector.eval()
    with torch.no_grad():
        total = float(sum(detector(of(map), targets).losses.values()))
    detector.train()
    return total


def drawn(rng: np.random.Generator) -> tuple[torch.Tensor, DetectionTarget]:
    """Bright and dark rectangles that do not touch, on noise."""
    image, taken = rng.normal(0, 0.1, (3, *SIZE)).astype(np.float32), np.zeros(SIZE, bool)
    boxes, labels = [], []
    for _ in range(rng.integers(0, 4)):
        (width, height), label = rng.integers(10, 30, 2), int(rng.integers(2))
        left, top = int(rng.integers(0, 64 - width)), int(rng.integers(0, 64 - height))
        place = (slice(top, top + height), slice(left, left + width))
        if not taken[place].any():
            taken[place] = True
            image[:, *place] = 1 if label else -1
            boxes.append([float(left), float(top), float(left + width), float(top + height)])
            labels.append(label)
    return torch.from_numpy(image), objects(boxes, labels)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Products this small are faster without company."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("stages", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_planted_rectangles_are_learned(stages: int) -> None:
    rng = np.random.default_rng(0)
    images, targets = zip(*[drawn(rng) for _ in range(12)], strict=True)
    detector = build(labels=2, channels=48, stages=stages, levels=(2, 1), width=24)
    stem = nn.Sequential(
        nn.Conv2d(3, 24, 4, stride=4), nn.GELU(), nn.Conv2d(24, 24, 3, padding=1), nn.GELU(),
        nn.Conv2d(24, 48, 2, stride=2), nn.GELU(), nn.Conv2d(48, 48, 3, padding=1),
    )  # fmt: skip
    detector.expect(torch.cat([t.labels for t in targets]).bincount(minlength=2) / len(targets))
    optimiser = torch.optim.AdamW([*stem.parameters(), *detector.parameters()], lr=4e-3)
    pixels = torch.stack(images)
    before = held_out_loss(detector, stem(pixels), targets)
    for _ in range(120):
        chosen = torch.randperm(len(images))[:6]
        losses = detector(of(stem(pixels[chosen])), [targets[i] for i in chosen]).losses
        optimiser.zero_grad()
        sum(losses.values()).backward()
        optimiser.step()
    after = held_out_loss(detector, stem(pixels), targets)
    assert after < 0.6 * before  # of the same boxes; that of its own proposals rises for a while
    detector.eval()
    with torch.no_grad():
        found = detector(of(stem(pixels))).answer
    truth = [ImageTruth(SIZE, t.boxes.numpy(), t.labels.numpy(), t.masks.numpy()) for t in targets]
    guess = [
        ImageFound(f.boxes.numpy(), f.labels.numpy(), f.scores.numpy(), run_lengths(f.paste(SIZE).numpy()))
        for f in found
    ]
    for kind in ("box", "mask"):
        result = coco_average_precision(truth, guess, 2, kind)  # type: ignore[arg-type]
        assert result.ap50 is not None
        assert result.ap50 > 0.5, kind

from __future__ import annotations

import torch

from manylabel.detect import DetectionTarget, DetectorOptions
from manylabel.detect.cascade import Cascade, Regions, select
from manylabel.detect.matching import IGNORED, sample
from manylabel.detect.pyramid import Levels

SIZE = (64, 64)
BOXES = torch.tensor([[4.0, 4.0, 30.0, 30.0], [30.0, 30.0, 60.0, 50.0], [0.0, 0.0, 63.0, 63.0]])


def cascade(labels: int = 3, **options: object) -> Cascade:
    torch.manual_seed(0)
    return Cascade(DetectorOptions(width=5, box_hidden=8, **options), labels)  # type: ignore[arg-type]


def maps() -> Levels:
    return Levels((torch.randn(2, 5, 16, 16, generator=torch.Generator().manual_seed(1)),), (4,))


def test_scores_are_the_mean_over_stages_and_boxes_those_of_the_last() -> None:
    heads = cascade(score=0.0, nms=1.0)
    with torch.no_grad():
        for number, head in enumerate(heads.heads):
            for parameter in head.parameters():
                parameter.zero_()
            head.label.bias[number] = 2.0  # every stage votes for another label
            head.box.bias[0] = (number + 1) * 10 * 0.01  # each moves the box by a hundredth of its width to the right
        found, _ = heads.find(maps(), SIZE, [BOXES[:1], BOXES[1:]])
    probability = torch.tensor([2.0, 0, 0, 0]).softmax(dim=0)
    mean = (probability[0] + 2 * probability[1]) / 3
    torch.testing.assert_close(found.scores, mean.expand(3))
    assert sorted(found.labels.tolist()) == [0, 1, 2]
    moved = BOXES[0] + torch.tensor([1.0, 0, 1.0, 0]) * 26 * 0.03
    torch.testing.assert_close(found.boxes, moved.expand(3, 4))


def test_one_stage_is_enough() -> None:
    heads = cascade(stages=1)
    target = DetectionTarget(BOXES[:1] + 1, torch.tensor([2]), None, torch.tensor([False]))
    losses, regions = heads.losses(maps(), SIZE, [BOXES, BOXES], [target, target])
    assert set(losses) == {"cls_1", "box_1"}
    assert 2 in regions.labels[0]


def test_boxes_of_an_ignored_object_are_no_negatives() -> None:
    target = DetectionTarget(BOXES[:2], torch.tensor([1, 2]), None, torch.tensor([True, False]))
    regions = Regions.matched([torch.cat([BOXES, BOXES[:1] + 3])], [target], 0.5, 3)
    assert regions.labels[0].tolist() == [IGNORED, 2, 3, IGNORED]
    chosen = sample(regions.labels[0], 3, 100)
    assert sorted(chosen.tolist()) == [1, 2]


def test_a_quarter_of_the_sample_is_on_objects_and_the_rest_is_background() -> None:
    labels = torch.tensor([0] * 50 + [3] * 50 + [IGNORED] * 10)
    torch.manual_seed(0)
    chosen = labels[sample(labels, 3, 40)]
    assert (chosen == 0).sum() == 10
    assert (chosen == 3).sum() == 30
    few = labels[sample(labels[48:], 3, 40) + 48]
    assert (few == 0).sum() == 2
    assert (few == 3).sum() == 38


def test_the_best_of_overlapping_boxes_of_one_label_is_kept() -> None:
    boxes = torch.tensor([[0.0, 0, 10, 10], [0, 0, 10, 9], [20, 20, 30, 30], [5, 5, 5, 9]])
    scores = torch.tensor([[0.3, 0.5], [0.6, 0.2], [0.05, 0.4], [0.9, 0.9]])
    found = select(boxes, scores, DetectorOptions(score=0.1, nms=0.5, most=3))
    assert found.labels.tolist() == [0, 1, 1]
    torch.testing.assert_close(found.scores, torch.tensor([0.6, 0.5, 0.4]))  # the box without area is none
    torch.testing.assert_close(found.boxes, boxes[[1, 0, 2]])
    assert len(select(boxes, scores, DetectorOptions(score=0.1, nms=0.5, most=1))) == 1
    assert len(select(boxes, scores * 0, DetectorOptions())) == 0


def test_every_stage_has_its_share_of_what_they_all_read() -> None:
    levels = maps()
    shares = []
    for stages in (1, 3):
        heads = cascade(stages=stages)
        x = levels.crop([BOXES, BOXES], 7).requires_grad_()
        heads._equal_say(x).sum().backward()
        shares.append(float(x.grad.mean()))
    torch.testing.assert_close(torch.tensor(shares), torch.tensor([1.0, 1 / 3]))

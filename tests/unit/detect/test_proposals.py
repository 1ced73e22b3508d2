from __future__ import annotations

import pytest
import torch

from manylabel.detect import DetectionTarget, DetectorOptions
from manylabel.detect.proposals import Proposals, grid_anchors
from manylabel.detect.pyramid import Levels

SIZE = (64, 96)


def objects(boxes: list[list[float]], ignore: list[bool] | None = None) -> DetectionTarget:
    count = len(boxes)
    ignored = torch.tensor(ignore or [False] * count, dtype=torch.bool)
    return DetectionTarget(torch.tensor(boxes).reshape(-1, 4), torch.zeros(count, dtype=torch.long), None, ignored)


def maps(width: int = 6) -> Levels:
    return Levels((torch.zeros(1, width, 16, 24), torch.zeros(1, width, 8, 12)), (4, 8))


def network(**options: object) -> Proposals:
    torch.manual_seed(0)
    return Proposals(DetectorOptions(width=6, levels=(2, 1), **options))  # type: ignore[arg-type]


def test_anchors_lie_around_the_centres_of_the_cells() -> None:
    anchors = grid_anchors(torch.zeros(1, 3, 2, 3), 8, 10, (0.5, 1, 2))
    assert anchors.shape == (2 * 3 * 3, 4)
    centres = (anchors[:, :2] + anchors[:, 2:]) / 2
    expected = [(x, y) for y in (4, 12) for x in (4, 12, 20) for _ in range(3)]
    torch.testing.assert_close(centres, torch.tensor(expected, dtype=torch.float32))
    sides = anchors[:3, 2:] - anchors[:3, :2]
    torch.testing.assert_close(sides.prod(dim=1), torch.full((3,), 100.0))
    torch.testing.assert_close(sides[:, 1] / sides[:, 0], torch.tensor([0.5, 1.0, 2.0]))


def test_without_sides_the_anchors_follow_the_size_of_the_image() -> None:
    areas = {size: (a[:, 2:] - a[:, :2]).prod(dim=1).sqrt() for size in (64, 128)
             for a in [network().anchors(maps(), (size, size))]}  # fmt: skip
    assert areas[64].unique().round().unique().tolist() == [16, 32]
    assert areas[128].unique().round().unique().tolist() == [32, 64]
    fixed = network(anchors=(5, 9)).anchors(maps(), (64, 64))
    assert (fixed[:, 2:] - fixed[:, :2]).prod(dim=1).sqrt().round().unique().tolist() == [5, 9]


def test_the_best_proposal_is_the_anchor_that_the_head_likes() -> None:
    rpn = network(ratios=(0.5, 2)).eval()
    levels = maps()
    levels.maps[1][0, 0, 5, 7] = 1.0  # one place of the coarser level
    with torch.no_grad():
        for parameter in rpn.head.parameters():
            parameter.zero_()
        rpn.head.conv[0][0].weight[0, 0, 1, 1] = 1.0
        rpn.head.cls_logits.weight[1, 0] = 3.0  # its second ratio
        (found,), losses = rpn(levels, SIZE)
    side, x, y = max(SIZE) / 2, 7.5 * 8, 5.5 * 8
    half_width, half_height = side / 2 / 2**0.5, side / 2 * 2**0.5
    expected = torch.tensor([x - half_width, y - half_height, x + half_width, y + half_height])
    expected = torch.minimum(expected.clamp(min=0), torch.tensor([96.0, 64.0, 96.0, 64.0]))
    torch.testing.assert_close(found[0], expected)
    assert losses == {}


def test_anchors_in_an_ignored_object_are_not_background() -> None:
    rpn = network()
    anchors = [rpn.anchors(maps(), SIZE)]
    free, _ = rpn.assign_targets_to_anchors(anchors, [objects([[8.0, 8.0, 40.0, 40.0]])])
    crowded = objects([[8.0, 8.0, 40.0, 40.0], [50.0, 0.0, 96.0, 64.0]], [False, True])
    labels, _ = rpn.assign_targets_to_anchors(anchors, [crowded])
    changed = free[0] != labels[0]
    assert changed.any()
    assert (free[0][changed] == 0).all()
    assert (labels[0][changed] == -1).all()
    assert torch.equal(free[0] == 1, labels[0] == 1)  # what stands for the real object stays
    inside = anchors[0][changed]
    shared = torch.minimum(inside[:, 2], torch.tensor(96.0)) - inside[:, 0].clamp(min=50)
    assert (shared > 0).all()


@pytest.mark.parametrize(
    "target",
    [objects([]), objects([[0.0, 0.0, 96.0, 64.0]], [True]), objects([[-200.0, -200.0, 300.0, 300.0]], [True])],
)
def test_nothing_to_find_is_learned_without_nan(target: DetectionTarget) -> None:
    rpn = network()
    levels = maps()
    _, losses = rpn(levels, SIZE, [target])
    assert all(torch.isfinite(loss) for loss in losses.values())
    assert losses["rpn_box"] == 0
    sum(losses.values()).backward()
    assert all(torch.isfinite(p.grad).all() for p in rpn.parameters())

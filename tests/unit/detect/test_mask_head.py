from __future__ import annotations

import torch

from manylabel.detect import Detections, DetectionTarget, DetectorOptions
from manylabel.detect.cascade import Regions
from manylabel.detect.mask import MaskHead, cut
from manylabel.detect.matching import IGNORED
from manylabel.detect.pyramid import Levels

BOX = torch.tensor([[8.0, 4.0, 36.0, 32.0]])


def head(labels: int = 3) -> MaskHead:
    torch.manual_seed(0)
    return MaskHead(DetectorOptions(width=4, mask_width=6, mask_layers=1), labels)


def maps() -> Levels:
    return Levels((torch.randn(1, 4, 12, 12, generator=torch.Generator().manual_seed(1)),), (4,))


def target(drawn: bool = True) -> DetectionTarget:
    """A square in the lower right of its box."""
    masks = torch.zeros(1, 48, 48, dtype=torch.bool)
    masks[0, 18:32, 22:36] = drawn
    return DetectionTarget(BOX, torch.tensor([1]), masks, torch.tensor([False]))


def test_the_true_mask_is_cut_out_of_the_box() -> None:
    expected = torch.zeros(28, 28)
    expected[14:, 14:] = 1
    torch.testing.assert_close(cut(target(), torch.tensor([0]), BOX, 28)[0], expected)  # a cell is a pixel here
    shifted = cut(target(), torch.tensor([0]), BOX + torch.tensor([14.0, 14.0, 14.0, 14.0]), 28)[0]
    assert shifted[:14, :14].min() == 1
    assert shifted[15:, 15:].max() == 0


def test_only_the_mask_of_the_true_label_is_learned() -> None:
    mask = head()
    regions = Regions([BOX.repeat(3, 1)], [torch.tensor([1, 3, IGNORED])], [torch.tensor([0, 0, 0])])
    loss = mask.loss(maps(), regions, [target()])
    assert abs(float(loss.detach()) - 0.693) < 0.02  # nothing is known yet
    loss.backward()
    moved = mask.label.weight.grad.abs().sum(dim=1)
    assert moved[1] > 0
    assert moved[0] == moved[2] == 0


def test_where_no_mask_was_drawn_there_is_no_loss() -> None:
    regions = Regions([BOX], [torch.tensor([1])], [torch.tensor([0])])
    boxes_alone = DetectionTarget(BOX, torch.tensor([1]), None, torch.tensor([False]))
    for there in (target(drawn=False), boxes_alone):
        mask = head()
        loss = mask.loss(maps(), regions, [there])
        loss.backward()
        assert loss == 0
        assert all(torch.equal(p.grad, torch.zeros_like(p)) for p in mask.parameters())


def test_pasting_what_was_cut_gives_the_mask_back() -> None:
    there = target()
    assert there.masks is not None
    found = Detections(BOX, torch.tensor([1]), torch.tensor([0.9]), cut(there, torch.tensor([0]), BOX, 28))
    assert torch.equal(found.paste((48, 48)), there.masks)
    larger = Detections(BOX * 2, found.labels, found.scores, found.masks).paste((96, 96))
    assert torch.equal(larger[:, ::2, ::2], there.masks)
    assert found.paste((20, 48)).shape == (1, 20, 48)  # what reaches out of the image is cut off

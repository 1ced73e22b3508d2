from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from manylabel.config import AugmentConfig
from manylabel.data.augment import training_transform, varies
from manylabel.data.mix import mix_batch
from manylabel.data.transform import evaluation_transform, needed_side
from manylabel.preprocess import Preprocess

PREPROCESS = Preprocess(32, (0.5,) * 3, (0.5,) * 3)
WIDE = Image.fromarray(np.concatenate([np.full((40, 40, 3), v, np.uint8) for v in (0, 128, 255)], axis=1))


def test_resize_modes_keep_what_they_promise() -> None:
    stretch = evaluation_transform(PREPROCESS)(WIDE)
    crop = evaluation_transform(replace(PREPROCESS, resize="crop", crop_share=1.0))(WIDE)
    pad = evaluation_transform(replace(PREPROCESS, resize="pad"))(WIDE)
    assert all(t.shape == (3, 32, 32) and t.dtype == np.uint8 for t in (stretch, crop, pad))
    assert stretch[0, 16, 0] == 0
    assert stretch[0, 16, -1] == 255  # whole photo, squeezed
    assert (crop[0] == 128).mean() > 0.8  # the middle third only
    assert (pad[:, 0] == 128).all()  # grey bar above


@pytest.mark.parametrize(
    "augment",
    [
        AugmentConfig(flip=True),
        AugmentConfig(random_crop=0.3),
        AugmentConfig(randaugment=9),
        AugmentConfig(colour=0.4),
        AugmentConfig(cutout=0.5),
        AugmentConfig(erasing=1.0),
    ],
)
def test_each_augmentation_changes_images_and_follows_the_seed(augment: AugmentConfig) -> None:
    assert varies(augment)
    transform, plain = training_transform(PREPROCESS, augment), evaluation_transform(PREPROCESS)(WIDE)

    def draw(seed: int) -> np.ndarray:
        torch.manual_seed(seed)
        return transform(WIDE)

    drawn = [draw(seed) for seed in range(8)]
    assert any(not np.array_equal(image, plain) for image in drawn)
    assert all(image.shape == (3, 32, 32) and image.dtype == np.uint8 for image in drawn)
    assert np.array_equal(draw(3), draw(3))


def test_cutout_can_come_first_and_in_any_colour() -> None:
    """As in ML-Decoder's released code; a policy behind it changes the square, too."""
    first = AugmentConfig(cutout=0.5, cutout_first=True)
    steps = training_transform(PREPROCESS, replace(first, randaugment=9)).steps.transforms  # type: ignore[attr-defined]
    assert [type(step).__name__ for step in steps] == ["Square", "PILToTensor", "Cutout", "RandAugment"]
    grey, colours = Image.fromarray(np.full((40, 40, 3), 7, np.uint8)), set()
    for seed in range(6):
        torch.manual_seed(seed)
        image = training_transform(PREPROCESS, first)(grey).reshape(3, -1).T
        squares = {tuple(pixel) for pixel in image.tolist()} - {(7, 7, 7)}
        assert len(squares) == 1
        colours |= squares
    assert len(colours) == 6


def test_nothing_to_augment_means_nothing_changes() -> None:
    assert not varies(AugmentConfig())
    varied, plain = training_transform(PREPROCESS, AugmentConfig())(WIDE), evaluation_transform(PREPROCESS)(WIDE)
    assert np.array_equal(varied, plain)


def test_cutout_covers_the_share_it_is_given() -> None:
    torch.manual_seed(0)
    black = Image.new("RGB", (32, 32))
    covered = [(training_transform(PREPROCESS, AugmentConfig(cutout=0.5))(black) == 128).mean() for _ in range(50)]
    assert max(covered) == pytest.approx(0.25)  # a whole square of half the side
    assert min(covered) >= 0.06  # at a corner a quarter of it remains


def test_decoder_is_asked_for_enough_pixels() -> None:
    assert needed_side(PREPROCESS) == 32
    assert needed_side(PREPROCESS, AugmentConfig(random_crop=0.25)) == 64
    assert needed_side(replace(PREPROCESS, resize="crop", crop_share=0.5)) == 64


def _batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    images = torch.stack([torch.full((3, 16, 16), v, dtype=torch.uint8) for v in (0, 200)])
    return images, torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), torch.tensor([[True] * 3, [True, True, False]])


def _swapping_rng(augment: AugmentConfig) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mix until the two images really were exchanged (a permutation of two can be the identity)."""
    for seed in range(50):
        images, targets, known = mix_batch(*_batch(), augment, np.random.default_rng(seed))
        if not torch.equal(known, _batch()[2]):
            return images, targets, known
    raise AssertionError("never mixed")


def test_mixup_blends_pixels_and_targets_alike() -> None:
    images, targets, known = _swapping_rng(AugmentConfig(mixup=1.0))
    share = targets[0, 1].item()
    assert 0 < share < 1
    assert images[0].float().mean().item() == pytest.approx(200 * (1 - share), abs=1)
    assert targets[0, 0] == 1  # both have it
    assert targets[1, 1].item() == pytest.approx(1 - share)
    assert known.tolist() == [[True, True, False], [True, True, False]]  # unknown in one is unknown in the mixture


def test_cutmix_weighs_by_the_area_really_pasted() -> None:
    images, targets, known = _swapping_rng(AugmentConfig(cutmix=1.0))
    kept = (images[0] == 0).float().mean().item()
    assert targets[0, 1].item() == pytest.approx(kept, abs=1e-6)
    assert set(images.unique().tolist()) <= {0, 200}  # pasted, not blended
    assert not known[:, 2].any()


def test_mixing_is_off_by_default_and_for_single_images() -> None:
    images, targets, known = _batch()
    assert mix_batch(images, targets, known, AugmentConfig(), np.random.default_rng(0))[0] is images
    alone = mix_batch(images[:1], targets[:1], known[:1], AugmentConfig(mixup=1.0), np.random.default_rng(0))
    assert torch.equal(alone[1], targets[:1])

"""Rows of a table as batches of pixels. What an image looks like depends on seed, epoch and row alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from manylabel.config import AugmentConfig
from manylabel.data.audit.fingerprint import FINGERPRINT, fingerprint
from manylabel.data.augment import training_transform
from manylabel.data.sampler import EpochBatches
from manylabel.data.table import Table
from manylabel.data.transform import Transform, evaluation_transform, needed_side
from manylabel.error import DataError, DecodeError
from manylabel.features import Features
from manylabel.preprocess import Preprocess


@dataclass(frozen=True)
class Batch:
    """Inputs of some rows (pixels, or features computed before) with the rows they belong to."""

    inputs: Tensor | Features
    rows: Tensor  # [B] int64, row numbers of the table
    bad: list[tuple[str, str]] = field(default_factory=list)  # key and reason of images that are left out
    fingerprints: np.ndarray | None = None  # [B] FINGERPRINT, where they are asked for
    wrong: DataError | None = None  # raised here and not in a worker process, which would bury it in its traceback

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def pixels(self) -> Tensor:
        """The inputs where they are known to be pixels."""
        assert isinstance(self.inputs, Tensor)
        return self.inputs

    def pin_memory(self) -> Batch:
        return replace(self, inputs=self.inputs.pin_memory()) if isinstance(self.inputs, Tensor) else self


Sample = tuple[int, Any, str, np.ndarray | None]  # row, what was made of the image, why there is none, its fingerprint


class ImageDataset(Dataset):
    """Row (epoch, i) → image tensor, or the reason why there is none; with `fingerprints`, also what it is known by."""

    def __init__(self, table: Table, transform: Transform, at_least: int, seed: int = 0, random: bool = False) -> None:
        self.source = table.source
        self.keys = table.keys
        self.transform = transform
        self.at_least = at_least
        self.seed = seed
        self.random = random
        self.fingerprints = False

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, item: tuple[int, int]) -> Sample:
        epoch, row = item
        try:
            image = self.source.read(str(self.keys[row]), at_least=self.at_least)
        except DecodeError as error:
            return row, None, str(error), None
        known_by = self.known_by(row, image)
        if not self.random:
            return row, torch.from_numpy(self.transform(image)), "", known_by
        with torch.random.fork_rng(devices=[]):  # in the main process, dropout's random numbers stay what they were
            torch.manual_seed(_mix_seed(self.seed, epoch, row))
            return row, torch.from_numpy(self.transform(image)), "", known_by

    def known_by(self, row: int, image: Image.Image) -> np.ndarray | None:
        """Made here, where the image is decoded anyway: to decode it again would cost more than all the rest."""
        return fingerprint(self.source, str(self.keys[row]), image) if self.fingerprints else None

    def collate(self, samples: Sequence[Sample]) -> Batch:
        good = [sample for sample in samples if sample[1] is not None]
        bad = [(str(self.keys[row]), reason) for row, image, reason, _ in samples if image is None]
        images = torch.stack([image for _, image, *_ in good]) if good else torch.empty(0, 3, 1, 1, dtype=torch.uint8)
        known_by = np.array([sample[3] for sample in good], FINGERPRINT) if self.fingerprints else None
        return Batch(images, torch.tensor([row for row, *_ in good], dtype=torch.int64), bad, known_by)


def image_dataset(
    table: Table, preprocess: Preprocess, augment: AugmentConfig | None = None, seed: int = 0
) -> ImageDataset:
    """The images of a table as they are, unless `augment` varies them."""
    if augment is None:
        return ImageDataset(table, evaluation_transform(preprocess), needed_side(preprocess))
    transform = training_transform(preprocess, augment)
    return ImageDataset(table, transform, needed_side(preprocess, augment), seed, random=True)


def _mix_seed(*numbers: int) -> int:
    """One well-mixed 63-bit seed from several numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))


def pixel_loader(dataset: ImageDataset, batches: EpochBatches, workers: int, pin: bool = False) -> DataLoader[Any]:
    """A loader that keeps its worker processes between epochs."""
    return DataLoader(
        dataset,
        batch_sampler=batches,
        num_workers=workers,
        collate_fn=dataset.collate,
        persistent_workers=workers > 0,
        prefetch_factor=4 if workers else None,
        pin_memory=pin,
        worker_init_fn=_quiet_worker,
        generator=torch.Generator(),  # or it would draw from the generator that dropout uses
    )


def _quiet_worker(_worker: int) -> None:
    """Workers decode on one thread each, and leave Ctrl-C to the main process, which saves first."""
    import signal

    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

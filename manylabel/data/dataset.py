"""Rows of a table as batches of pixels. What an image looks like depends on seed, epoch and row alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from manylabel.data.sampler import EpochBatches
from manylabel.data.table import Table
from manylabel.data.transform import Transform
from manylabel.error import DecodeError
from manylabel.features import Features


@dataclass(frozen=True)
class Batch:
    """Inputs of some rows (pixels, or features computed before) with the rows they belong to."""

    inputs: Tensor | Features
    rows: Tensor  # [B] int64, row numbers of the table
    bad: list[tuple[str, str]] = field(default_factory=list)  # key and reason of images that are left out

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def pixels(self) -> Tensor:
        """The inputs where they are known to be pixels."""
        assert isinstance(self.inputs, Tensor)
        return self.inputs

    def pin_memory(self) -> Batch:
        pinned = self.inputs.pin_memory() if isinstance(self.inputs, Tensor) else self.inputs
        return Batch(pinned, self.rows, self.bad)


class ImageDataset(Dataset):
    """Row (epoch, i) → image tensor, or the reason why there is none."""

    def __init__(self, table: Table, transform: Transform, at_least: int, seed: int = 0, random: bool = False) -> None:
        self.source = table.source
        self.keys = table.keys
        self.transform = transform
        self.at_least = at_least
        self.seed = seed
        self.random = random

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, item: tuple[int, int]) -> tuple[int, Tensor | None, str]:
        epoch, row = item
        try:
            image = self.source.read(str(self.keys[row]), at_least=self.at_least)
        except DecodeError as error:
            return row, None, str(error)
        if not self.random:
            return row, self.transform(image), ""
        with torch.random.fork_rng(devices=[]):  # in the main process, dropout's random numbers stay what they were
            torch.manual_seed(_mix_seed(self.seed, epoch, row))
            return row, self.transform(image), ""

    def collate(self, samples: list[tuple[int, Tensor | None, str]]) -> Batch:
        good = [(row, image) for row, image, _ in samples if image is not None]
        bad = [(str(self.keys[row]), reason) for row, image, reason in samples if image is None]
        images = torch.stack([image for _, image in good]) if good else torch.empty(0, 3, 1, 1, dtype=torch.uint8)
        return Batch(images, torch.tensor([row for row, _ in good], dtype=torch.int64), bad)


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

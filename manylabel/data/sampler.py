"""Which rows make which batch: a pure function of seed and epoch, so that a run can be taken up at any batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


class EpochBatches:
    """A batch sampler over `rows`; set `epoch` and `start` (batches to skip) before iterating.

    It yields (epoch, row) pairs, so that a worker process knows the epoch without being told.
    With several processes each takes every world-th row; training repeats a few rows so that all have equally many
    steps, evaluation (shuffle=False) never does.
    """

    def __init__(
        self, rows: np.ndarray, batch_size: int, *, shuffle: bool, seed: int = 0, rank: int = 0, world: int = 1
    ) -> None:
        self.rows = np.asarray(rows)
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.rank = rank
        self.world = world
        self.epoch = 0
        self.start = 0

    def order(self) -> np.ndarray:
        """This process's rows of the current epoch, in order."""
        if not self.shuffle:
            return self.rows[self.rank :: self.world]
        shuffled = np.random.default_rng([self.seed, self.epoch]).permutation(self.rows)
        padded = np.resize(shuffled, -(-len(shuffled) // self.world) * self.world)
        return padded[self.rank :: self.world]

    def __len__(self) -> int:
        mine = -(-len(self.rows) // self.world) if self.shuffle else len(self.rows[self.rank :: self.world])
        return -(-mine // self.batch_size)

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        order = self.order()
        for first in range(self.start * self.batch_size, len(order), self.batch_size):
            yield [(self.epoch, int(row)) for row in order[first : first + self.batch_size]]

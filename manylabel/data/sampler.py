"""Which rows make which batch: a pure function of seed and epoch, so that a run can be taken up at any batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from manylabel.data.shard.blocks import Blocks


class EpochBatches:
    """A batch sampler over `rows`; set `epoch` and `start` (batches to skip) before iterating.

    It yields (epoch, row) pairs, so that a worker process knows the epoch without being told.
    With several processes each takes every world-th row; training repeats a few rows so that all have equally many
    steps, evaluation (shuffle=False) never does.

    With `repeats` above 1 so many copies of a row stand beside each other, each with an epoch number of its own, by which it
    is varied; an epoch then has as many rows as before, of a part of the data (repeated augmentation).

    With `blocks` a process takes whole blocks (cut where its share begins and ends), in an order of their own each
    epoch, and mixes the rows of `blocks.window` of them at a time. So a process reads a block once and not for each row;
    of several loader workers each reads the blocks of a window for itself, as each gets some of its batches.
    """

    def __init__(
        self,
        rows: np.ndarray,
        batch_size: int,
        *,
        shuffle: bool,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        blocks: Blocks | None = None,
        repeats: int = 1,
    ) -> None:
        self.rows = np.asarray(rows)
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.rank = rank
        self.world = world
        self.blocks = blocks
        self.repeats = repeats
        self.epoch = 0
        self.start = 0

    def order(self) -> np.ndarray:
        """This process's rows of the current epoch, in order."""
        if self.blocks is not None and self.repeats == 1:  # copies are spread over all processes
            return self._mixed(self.blocks) if self.shuffle else self._share(self.rows)
        if not self.shuffle:
            return self.rows[self.rank :: self.world]
        shuffled = np.random.default_rng([self.seed, self.epoch]).permutation(self.rows)
        shuffled = np.repeat(shuffled, self.repeats)[: len(shuffled)]
        padded = np.resize(shuffled, self._steps() * self.world)
        return padded[self.rank :: self.world]

    def _steps(self) -> int:
        """Rows of each process when all have equally many."""
        return -(-len(self.rows) // self.world)

    def _share(self, rows: np.ndarray) -> np.ndarray:
        """A part without gaps; together the parts are all rows, each once."""
        return rows[len(rows) * self.rank // self.world : len(rows) * (self.rank + 1) // self.world]

    def _mixed(self, blocks: Blocks) -> np.ndarray:
        found, block = np.unique(blocks.ids[self.rows], return_inverse=True)
        turn = np.random.default_rng([self.seed, self.epoch]).permutation(len(found))
        ordered = self.rows[np.argsort(turn[block], kind="stable")]
        share = self._share(ordered)
        if not len(share):  # fewer rows than processes
            share = ordered
        share = share[np.minimum(np.arange(self._steps()), len(share) - 1)]
        ids = blocks.ids[share]
        window = np.cumsum(np.diff(ids, prepend=ids[:1]) != 0) // blocks.window
        # rank + 1, for a trailing 0 would give the numbers that the blocks were ordered with
        chance = np.random.default_rng([self.seed, self.epoch, self.rank + 1]).random(len(share))
        return share[np.lexsort((chance, window))]

    def __len__(self) -> int:
        if self.shuffle:
            mine = self._steps()
        else:
            mine = len(self._share(self.rows) if self.blocks is not None else self.rows[self.rank :: self.world])
        return -(-mine // self.batch_size)

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        order = self.order()
        copy = (
            self.rank + self.world * np.arange(len(order))
        ) % self.repeats  # of each row, its number among its copies
        for first in range(self.start * self.batch_size, len(order), self.batch_size):
            part = slice(first, first + self.batch_size)
            yield [
                (self.epoch * self.repeats + int(number), int(row))
                for number, row in zip(copy[part], order[part], strict=True)
            ]

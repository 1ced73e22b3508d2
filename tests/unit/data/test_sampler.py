"""The order of rows where they lie in blocks: every row once, each process with its own blocks, the same again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manylabel.data.sampler import EpochBatches
from manylabel.data.shard.blocks import Blocks


def _all(batches: EpochBatches) -> list[int]:
    return [row for batch in batches for _, row in batch]


def _parts(ids: list[int], rows: np.ndarray, world: int, window: int = 3, shuffle: bool = True) -> list[EpochBatches]:
    blocks = Blocks(np.array(ids), window)
    return [
        EpochBatches(rows, 4, shuffle=shuffle, seed=3, rank=rank, world=world, blocks=blocks) for rank in range(world)
    ]


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    world=st.integers(1, 4),
    window=st.integers(1, 5),
    epoch=st.integers(0, 3),
)
def test_every_row_is_seen_once_up_to_padding(sizes: list[int], world: int, window: int, epoch: int) -> None:
    ids = [block for block, size in enumerate(sizes) for _ in range(size)]
    rows = np.arange(len(ids))
    parts = _parts(ids, rows, world, window)
    for part in parts:
        part.epoch = epoch
    seen = [_all(part) for part in parts]
    steps = -(-len(rows) // world)
    assert [len(each) for each in seen] == [steps] * world  # or processes would wait for each other for ever
    assert {len(part) for part in parts} == {-(-steps // 4)}
    assert set().union(*map(set, seen)) == set(rows.tolist())
    judged = [_all(part) for part in _parts(ids, rows, world, window, shuffle=False)]
    assert sorted(row for each in judged for row in each) == rows.tolist()  # evaluation: each exactly once
    assert [len(part) for part in _parts(ids, rows, world, window, shuffle=False)] == [
        -(-len(each) // 4) for each in judged
    ]


@pytest.mark.parametrize("world", [1, 2, 4])
@pytest.mark.parametrize("count", [12, 13])
def test_repeated_augmentation_takes_copies_of_a_part_of_the_rows(world: int, count: int) -> None:
    """As many rows as before, of a third of them; no two copies are varied alike, in this epoch or another."""
    seen: dict[int, list[tuple[int, int]]] = {}
    for epoch in range(2):
        parts = [
            EpochBatches(np.arange(count), 4, shuffle=True, seed=1, rank=rank, world=world, repeats=3)
            for rank in range(world)
        ]
        for part in parts:
            part.epoch = epoch
        pairs = [[pair for batch in part for pair in batch] for part in parts]
        assert {len(each) for each in pairs} == {-(-count // world)}
        interleaved = [each[i] for i in range(len(pairs[0])) for each in pairs][:count]
        rows = [row for _, row in interleaved]
        assert len(set(rows)) == -(-count // 3)
        assert rows[0] == rows[1] == rows[2] != rows[3]
        assert len(set(interleaved)) == count
        seen[epoch] = interleaved
    assert not set(seen[0]) & set(seen[1])


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("shuffle", [True, False])
def test_a_process_opens_only_its_share_of_the_blocks(world: int, shuffle: bool) -> None:
    ids = np.repeat(np.arange(30), 10)
    for epoch in range(3):
        parts = _parts(ids.tolist(), np.arange(300), world, shuffle=shuffle)
        for part in parts:
            part.epoch = epoch
            touched = len(set(ids[_all(part)].tolist()))
            assert touched <= -(-30 // world) + 1


def test_a_block_is_read_once_when_the_window_fits_in_memory() -> None:
    """What a reader that keeps 3 blocks has to read again."""
    ids = np.repeat(np.arange(30), 10)
    (part,) = _parts(ids.tolist(), np.arange(300), 1)
    kept: list[int] = []
    reads = 0
    for block in ids[_all(part)].tolist():
        if block in kept:
            kept.remove(block)
        else:
            reads += 1
        kept = [*kept, block][-3:]
    assert reads == 30


def test_rows_are_mixed_across_blocks_and_differently_each_epoch() -> None:
    ids = np.repeat(np.arange(30), 10)
    (part,) = _parts(ids.tolist(), np.arange(300), 1)
    orders = []
    for epoch in range(3):
        part.epoch = epoch
        orders.append(_all(part))
        first = ids[orders[-1][:30]]
        assert len(set(first.tolist())) == 3  # a window of three blocks …
        assert len(set(first[:10].tolist())) > 1  # … mixed, not one after the other
    assert orders[0] != orders[1] != orders[2]
    assert len({tuple(dict.fromkeys(ids[order].tolist())) for order in orders}) == 3  # blocks in another order, too


def test_starting_late_gives_the_rest_of_the_same_epoch() -> None:
    ids = np.repeat(np.arange(10), 7).tolist()
    for part in _parts(ids, np.arange(70), 2):
        part.epoch = 2
        whole = list(part)
        part.start = 4
        assert list(part) == whole[4:]
        assert whole[4:]


def test_some_rows_of_a_table() -> None:
    """Rows are those of a split; block numbers belong to the whole table."""
    ids = np.repeat(np.arange(10), 7).tolist()
    rows = np.arange(0, 70, 3)
    parts = _parts(ids, rows, 2)
    assert {row for part in parts for row in _all(part)} == set(rows.tolist())


def test_without_blocks_the_order_is_what_it_always_was() -> None:
    """Runs that began before there were blocks must be taken up with the same bits."""
    batches = EpochBatches(np.arange(11), 4, shuffle=True, seed=1)
    assert _all(batches) == np.random.default_rng([1, 0]).permutation(np.arange(11)).tolist()

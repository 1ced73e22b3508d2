"""Which label shares a query with which."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manylabel.error import ConfigError
from manylabel.head.grouping import (
    by_likeness,
    cooccurrence_likeness,
    group_size,
    slots,
    text_likeness,
)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 60),
    st.integers(1, 60),
    st.sampled_from(["order", "random", "cooccurrence", "text"]),
    st.integers(0, 9),
)
def test_every_label_has_a_place_of_its_own_and_no_group_is_empty(
    labels: int, groups: int, how: str, seed: int
) -> None:
    groups = min(groups, labels)
    size = group_size(labels, groups)
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 5, (labels, labels))
    slot = slots(how, labels, size, seed=seed, together=counts + counts.T, vectors=rng.normal(size=(labels, 3)))
    assert sorted(slot.tolist()) == list(range(labels))
    used = set((slot // size).tolist())
    assert used == set(range(-(-labels // size)))
    assert len(used) <= groups


def test_labels_that_come_together_share_a_group() -> None:
    """Three cliques of three, shuffled: grouping finds them."""
    clique = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2])
    together = (clique[:, None] == clique) * 10 + 1
    slot = by_likeness(cooccurrence_likeness(together), 3)
    assert len({(int(c), int(s) // 3) for c, s in zip(clique, slot, strict=True)}) == 3


def test_likeness_of_words_is_their_cosine() -> None:
    likeness = text_likeness(np.array([[1.0, 0], [2, 0], [0, 3]]))
    np.testing.assert_allclose(likeness, [[1, 1, 0], [1, 1, 0], [0, 0, 1]], atol=1e-6)


def test_random_groups_depend_on_the_seed_alone() -> None:
    assert slots("random", 20, 4, seed=1).tolist() == slots("random", 20, 4, seed=1).tolist()
    assert slots("random", 20, 4, seed=1).tolist() != slots("random", 20, 4, seed=2).tolist()


@pytest.mark.parametrize(("how", "message"), [("cooccurrence", "training images"), ("text", r"text.name=glove")])
def test_what_a_grouping_needs_is_said(how: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        slots(how, 10, 2)

"""Groups of trained labels are fixed when training begins: whatever is asked for beside them, their logits stay."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from manylabel import console
from manylabel.config import Part
from manylabel.features import FINAL, Features
from manylabel.head import HEADS, LabelKnowledge
from manylabel.head.grouping import slots
from manylabel.head.text_ml_decoder import TextMLDecoder

SMALL: dict[str, Any] = {"dim": 24, "heads": 4, "hidden": 20, "dropout": 0.0}
TABLE_8 = [("text", "own"), ("text", "shared"), ("learnable", "text"), ("text", "text")]
SEEN, UNSEEN, K = 65, 15, 20
HIDDEN = np.arange(80) % 5 == 3  # 16 of 80
GROUPINGS = ["order", "random", "cooccurrence", "text"]


def vectors(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 6)).astype(np.float32)


def build(unseen: np.ndarray, **options: Any) -> TextMLDecoder:
    torch.manual_seed(0)
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 9, (len(unseen), len(unseen))) * ~unseen * ~unseen[:, None]
    head: TextMLDecoder = HEADS.build(
        Part("ml_decoder", SMALL | {"query": "text", "pooling": "text", "groups": K} | options),
        channels={FINAL: 9},
        num_labels=len(unseen),
        knowledge=LabelKnowledge(vectors(len(unseen)), counts + counts.T, unseen),
    )
    torch.nn.init.normal_(head.get_parameter("pool.bias"))
    return head


def maps(batch: int = 2) -> Features:
    return Features({FINAL: torch.randn(batch, 9, 3, 3, generator=torch.Generator().manual_seed(3))})


def logits(head: TextMLDecoder) -> torch.Tensor:
    with torch.no_grad():
        return head(maps()).logits


def asked(head: TextMLDecoder, words: np.ndarray) -> torch.Tensor:
    other = copy.deepcopy(head).eval()
    other.relabel(words)
    return logits(other)


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize(("query", "pooling"), TABLE_8)
class TestSeenLabels:
    def test_the_same_logits_in_training_and_among_all(self, grouping: str, query: str, pooling: str) -> None:
        head = build(HIDDEN, grouping=grouping, query=query, pooling=pooling)
        torch.testing.assert_close(logits(head.train())[:, ~HIDDEN], logits(head.eval())[:, ~HIDDEN], atol=1e-5, rtol=0)

    @pytest.mark.parametrize("added", [0, 1, 7, 200])
    def test_the_same_whatever_is_added(self, grouping: str, query: str, pooling: str, added: int) -> None:
        head = build(HIDDEN, grouping=grouping, query=query, pooling=pooling).eval()
        among_all, own = logits(head), vectors(80)
        few = [40, 2, 77]  # not their group companions
        words = np.concatenate([vectors(added, seed=9), own[few]])
        torch.testing.assert_close(asked(head, words)[:, added:], among_all[:, few], atol=1e-5, rtol=0)

    def test_unseen_labels_alone_as_among_all(self, grouping: str, query: str, pooling: str) -> None:
        """ZSL is a pass over the unseen labels, GZSL one over all."""
        head = build(HIDDEN, grouping=grouping, query=query, pooling=pooling).eval()
        zsl = asked(head, vectors(80)[HIDDEN])
        torch.testing.assert_close(zsl, logits(head)[:, HIDDEN], atol=1e-5, rtol=0)

    def test_others_can_be_asked_for_again_and_again(self, grouping: str, query: str, pooling: str) -> None:
        head = build(HIDDEN, grouping=grouping, query=query, pooling=pooling).eval()
        before = logits(head)
        for count in (5, 1):
            head.relabel(vectors(count, seed=count))
        head.relabel(vectors(80))
        torch.testing.assert_close(logits(head), before, atol=1e-5, rtol=0)


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_every_seen_label_keeps_its_query(grouping: str) -> None:
    unseen = np.arange(SEEN + UNSEEN) >= SEEN
    head = build(unseen, grouping=grouping)
    words = head.words
    assert torch.equal(words.slot[words.seen], words.seen_slot)
    query = head.query_of_label
    assert not set(query[unseen].tolist()) & set(query[~unseen].tolist())


def test_random_queries_sit_apart_from_labels() -> None:
    """Else the last group of the seen labels would be trained with noise among them."""
    unseen = np.arange(10) >= 7
    noisy = build(unseen, groups=4, random_queries=3).train()
    assert noisy.size == 3
    quiet = copy.deepcopy(noisy).eval()
    output = noisy(maps())
    assert output.extra is not None
    assert output.extra.shape == (2, 3)
    torch.testing.assert_close(output.logits[:, ~unseen], logits(quiet)[:, ~unseen], atol=1e-5, rtol=0)


def test_bundles_of_earlier_versions_answer_as_they_did() -> None:
    """They mixed seen and unseen labels in groups; what is stored decides."""
    head = build(HIDDEN, grouping="random").eval()
    mixed = slots("random", 80, head.size, seed=0)
    state = head.state_dict() | {"words.slot": torch.as_tensor(mixed)}
    head.load_state_dict(state)
    everybody_seen = build(np.zeros(80, bool), grouping="random").eval()  # the same groups, of all 80
    everybody_seen.load_state_dict(
        {k: v for k, v in state.items() if not k.startswith("words.seen")}
        | {k: v for k, v in everybody_seen.state_dict().items() if k.startswith("words.seen")}
    )
    torch.testing.assert_close(logits(head), logits(everybody_seen), atol=1e-5, rtol=0)


def test_how_many_queries_there_are_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(console, "say", said.append)
    unseen = np.arange(1006) >= 925
    options = {"dim": 768, "heads": 8, "hidden": 8, "query": "text", "pooling": "text", "groups": 100}
    known = {"channels": {FINAL: 3}, "num_labels": 1006}
    head = HEADS.build(Part("ml_decoder", options), **known, knowledge=LabelKnowledge(vectors(1006), unseen=unseen))
    assert (head.size, head.words.groups, head.words.trained_groups) == (12, 78 + 7, 78)
    assert said == [
        "head.groups=100 for 1,006 labels: 85 queries of 12 labels each, for 12 must divide head.dim=768",
    ]
    HEADS.build(Part("ml_decoder", options), **known, knowledge=LabelKnowledge(vectors(1006), restored=True))
    HEADS.build(Part("ml_decoder", {"groups": 20}), channels={FINAL: 3}, num_labels=80)
    assert len(said) == 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("options", [{}, {"word_space": "mixture"}, {"pooling": "shared", "groups": None}], ids=str)
def test_in_half_precision(dtype: torch.dtype, options: dict[str, Any]) -> None:
    head = build(HIDDEN, **options).eval()
    whole, half = logits(head), copy.deepcopy(head).to(dtype)
    small = Features({FINAL: maps().final.to(dtype)})
    np.testing.assert_allclose(half.vectors, head.vectors, atol=0.02)
    words = np.concatenate([vectors(80)[[40, 2]], vectors(3, seed=5)])
    half.relabel(words)
    with torch.no_grad():
        found = half(small).logits
    assert found.dtype == dtype
    near = 0.1 * whole.abs().max()
    torch.testing.assert_close(found[:, :2].float(), whole[:, [40, 2]], atol=float(near), rtol=0)


def test_cutout_deletes_parts_of_the_words_in_training_only() -> None:
    head = build(np.zeros(8, bool), query_cutout=0.5, groups=None, pooling="shared")
    plain = head.words.eval()().words
    torch.manual_seed(0)
    cut = head.words.train()().words
    assert torch.equal(cut[cut != 0], plain[cut != 0])
    assert 0.2 < (cut == 0).float().mean() < 0.8
    assert not torch.equal(head.words().words, cut)  # anew for each batch

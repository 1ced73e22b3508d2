"""ML-Decoder's settings, its stored groups and words, and equality with timm's."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from benchmarks.heads import pair
from manylabel.config import Part
from manylabel.error import ConfigError
from manylabel.features import FINAL, Features
from manylabel.head import HEADS, LabelKnowledge
from manylabel.head.ml_decoder import MLDecoder

SMALL: dict[str, Any] = {"dim": 24, "heads": 4, "hidden": 20}


def build(labels: int, knowledge: LabelKnowledge | None = None, **options: Any) -> MLDecoder:
    head: MLDecoder = HEADS.build(
        Part("ml_decoder", SMALL | options),
        channels={"stage4": 5, FINAL: 9},
        num_labels=labels,
        knowledge=knowledge or LabelKnowledge(),
    )
    return head


def maps(batch: int = 2, side: int = 3) -> Features:
    return Features({"stage4": torch.randn(batch, 5, 2 * side, 2 * side), FINAL: torch.randn(batch, 9, side, side)})


def words(labels: int, size: int = 6, seed: int = 0) -> LabelKnowledge:
    return LabelKnowledge(np.random.default_rng(seed).normal(size=(labels, size)).astype(np.float32))


@pytest.mark.parametrize("labels", [80, 1000])
def test_equals_timms_with_the_same_weights(labels: int) -> None:
    ours, theirs = pair(labels)
    x = torch.randn(2, 2048, 3, 3)
    with torch.inference_mode():
        torch.testing.assert_close(ours.eval()(Features({FINAL: x})).logits, theirs.eval()(x), atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("labels", "options", "queries"),
    [
        (80, {}, 80),
        (100, {}, 100),
        (101, {}, 51),  # 100 groups asked for: two labels each
        (9605, {}, 100),
        (1000, {"groups": 300}, 250),  # four labels each: fifty queries would have none
        (7, {"groups": 7}, 7),
        (7, {"groups": 1}, 1),
    ],
)
def test_how_many_queries_there_are(labels: int, options: dict[str, Any], queries: int) -> None:
    head = build(labels, **options)
    assert len(head.queries.weight) == queries
    assert head(maps()).logits.shape == (2, labels)


def test_zero_shot_asks_one_query_per_label_unless_told_otherwise() -> None:
    assert build(300, words(300), query="text", pooling="shared").size == 1
    assert build(300, words(300), query="text", pooling="text", groups=100).size == 3  # 3 | 24
    assert build(300, words(300), query="text", pooling="text", groups=61).size == 6  # 5 does not divide 24


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (7, {"groups": 8}, r"head.groups=8 is more than the 7 labels"),
        (7, {"groups": 0}, r"head.groups must be none, or 1 or more"),
        (7, {"dim": 25}, r"head.dim must be a multiple of head.heads \(4\)"),
        (7, {"stages": ("stage9",)}, r"no stage 'stage9'; did you mean 'stage4'"),
        (7, {"stages": ()}, r"head.stages must be one stage or more"),
        (7, {"stages": ("final", "final")}, "different stages"),
        (7, {"query": "text"}, r"text vectors of the labels"),
        (7, {"query_noise": 0.1}, r"head.query=text"),
        (7, {"random_queries": 3, "query": "text"}, r"head.pooling=shared"),
        (7, {"query_cutout": 0.2}, r"head.query_cutout vary text queries"),
        (7, {"query_cutout": 1.0, "query": "text", "pooling": "shared"}, r"head.query_cutout must be"),
        (7, {"grouping": "cooccurrence", "groups": 2}, "training images"),
        (7, {"token_dropout": 1.0}, "token_dropout"),
    ],
)
def test_settings_that_cannot_work_are_refused(labels: int, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(labels, **options)


def test_labels_that_do_not_fit_into_a_word_query_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"50 labels a query do not fit into head.dim=24"):
        build(100, words(100), query="text", pooling="text", groups=2)


@pytest.mark.parametrize(
    "options",
    [{}, {"query": "text"}, {"pooling": "text"}, {"query": "text", "pooling": "shared", "self_attention": True}],
)
def test_unseen_labels_need_a_zero_shot_head(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"zero_shot.unseen.*head.query=text"):
        build(4, LabelKnowledge(words(4).vectors, unseen=np.arange(4) > 2), **options)


def test_vectors_for_other_labels_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"shape \[5, 6\] for 7 labels"):
        build(7, words(5), query="text", pooling="shared")


def test_groups_are_stored_with_the_weights(tmp_path: Path) -> None:
    """A head that is built without the training labels takes its groups from the file."""
    together = np.random.default_rng(0).integers(0, 9, (10, 10))
    head = build(10, LabelKnowledge(together=together + together.T), groups=3, grouping="cooccurrence").eval()
    save_file(head.state_dict(), tmp_path / "w.safetensors")
    state = load_file(tmp_path / "w.safetensors")
    again = build(10, MLDecoder.knowledge_of(state, 10), groups=3, grouping="cooccurrence").eval()
    again.load_state_dict(state)
    x = maps()
    assert torch.equal(head(x).logits, again(x).logits)
    assert again.slot.tolist() == head.slot.tolist() != list(range(10))


@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "shared"},
        {"pooling": "text", "groups": 4, "grouping": "text"},
        {"pooling": "shared", "word_space": "mixture"},
    ],
)
def test_words_and_unseen_labels_are_stored_with_the_weights(options: dict[str, Any], tmp_path: Path) -> None:
    unseen = np.arange(10) % 4 == 1
    head = build(10, LabelKnowledge(words(10).vectors, unseen=unseen), query="text", **options).eval()
    save_file(head.state_dict(), tmp_path / "w.safetensors")
    state = load_file(tmp_path / "w.safetensors")
    again = build(10, MLDecoder.knowledge_of(state, 10), query="text", **options).eval()
    again.load_state_dict(state)
    x = maps()
    assert torch.equal(head(x).logits, again(x).logits)
    assert again.unseen is not None
    assert again.unseen.tolist() == unseen.tolist()
    np.testing.assert_allclose(np.square(again.vectors).mean(axis=1), 1, rtol=1e-5)


class TestOtherLabels:
    def test_the_same_words_give_the_same_logits_in_any_company(self) -> None:
        head = build(6, words(6), query="text", pooling="shared").eval()
        x, other = maps(), copy.deepcopy(head)
        other.relabel(np.concatenate([words(4, seed=9).vectors, words(6).vectors[[2]]]))
        assert other(x).logits.shape == (2, 5)
        torch.testing.assert_close(other(x).logits[:, 4], head(x).logits[:, 2], atol=1e-5, rtol=0)

    def test_groups_hold_for_any_number(self) -> None:
        head = build(7, words(7), query="text", pooling="text", groups=3).eval()
        for count in (1, 3, 8, 50):
            head.relabel(words(count, seed=count).vectors)
            assert head(maps()).logits.shape == (2, count)

    def test_vectors_of_another_size_are_refused(self) -> None:
        head = build(7, words(7), query="text", pooling="shared")
        with pytest.raises(ConfigError, match="5 numbers each, this model was trained with 6"):
            head.relabel(np.ones((2, 5), np.float32))

    def test_a_head_that_is_not_zero_shot_says_so(self) -> None:
        for head in (build(7), build(7, words(7), query="text")):
            with pytest.raises(ConfigError, match="zero-shot"):
                head.relabel(words(2).vectors)


def test_tokens_that_are_dropped_are_dropped_in_training_only() -> None:
    head = build(5, token_dropout=0.5, dropout=0.0)
    x = maps()
    assert torch.equal(head.eval()(x).logits, head(x).logits)
    assert not torch.equal(head.train()(x).logits, head(x).logits)
    assert head.tokens(x).shape[1] == 5  # of 9


def test_a_fine_stage_is_averaged_down() -> None:
    head = build(5, stages=("stage4", "final"), finest=1)
    assert head.tokens(maps()).shape[1] == 18
    assert build(5, stages=("stage4", "final"), finest=2).tokens(maps()).shape[1] == 36 + 9
    assert build(5, stages=("stage4",)).tokens(maps()).shape[1] == 36


def test_an_earlier_stage_begins_by_saying_nothing_new() -> None:
    """Each fine token is first the coarse one that it lies in; what it adds is learnt."""
    head = build(5, stages=("stage4", "final"), dropout=0.0).eval()
    for sign in head.tokens.scale.values():
        sign.data.zero_()
    e = head.tokens(maps(side=3))  # 6 × 6 fine ones, then 3 × 3
    fine, coarse = e[:, :36].unflatten(1, (6, 6)), e[:, 36:].unflatten(1, (3, 3))
    torch.testing.assert_close(fine, coarse.repeat_interleave(2, 1).repeat_interleave(2, 2))
    head.tokens.project["stage4"].weight.data.normal_()
    fine = head.tokens(maps(side=3))[:, :36].unflatten(1, (6, 6))
    assert not torch.allclose(fine[:, 0, 0], fine[:, 0, 1])


def test_attention_weights_add_up_to_one() -> None:
    head = build(5)
    e = head.tokens(maps())
    weights = head.layers[0].attention.weights(head.queries.weight, e)
    assert weights.shape == (2, 4, 5, 9)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 4, 5))

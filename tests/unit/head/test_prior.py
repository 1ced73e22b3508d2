"""A head begins with what is known of its labels: the logit of (positives + 1) / (known + 2)."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from command import TINY

from manylabel import run
from manylabel.bundle import load_bundle
from manylabel.config import Part, TaskConfig
from manylabel.features import Features
from manylabel.head import HEADS, Head, LabelKnowledge
from manylabel.head.prior import Prior
from manylabel.labels import UNKNOWN
from manylabel.task import task_of

CHANNELS = {"stage1": 8, "final": 12}
MATRIX = np.array([[1, 0, -1, 0], [1, 0, -1, 1], [0, 0, -1, -1], [1, 1, -1, -1]], np.int8)
SHARES = [4 / 6, 2 / 6, 1 / 2, 2 / 4]  # (positives + 1) / (known + 2), counted by hand
HEAD_VARIANTS = [
    *(Part(name) for name in HEADS.names()),
    Part("linear", {"attention": 0.7}),
    Part("ml_decoder", {"groups": 3, "grouping": "random"}),
    Part("hsq", {"groups": 3, "grouping": "random", "classifier_hidden": 4}),
]


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def test_the_rule_in_loops() -> None:
    prior = Prior.of(MATRIX)
    assert prior.labels.tolist() == pytest.approx([_logit(share) for share in SHARES], abs=1e-6)
    assert prior.mean == pytest.approx(_logit((4 / 6 + 2 / 6 + 2 / 4) / 3))  # of labels that somebody told
    filled = Prior.of(MATRIX, filled=True)
    assert filled.labels.tolist() == pytest.approx([_logit(s) for s in (4 / 6, 2 / 6, 1 / 6, 2 / 6)], abs=1e-6)
    competing = Prior.of(MATRIX, compete=True)
    assert competing.labels.tolist() == pytest.approx([math.log(share) for share in SHARES], abs=1e-6)
    assert Prior.of(np.full((3, 2), UNKNOWN, np.int8)).labels.tolist() == [0, 0]


def _features() -> Features:
    return Features({name: torch.randn(3, count, 4, 4) for name, count in CHANNELS.items()})


@pytest.mark.parametrize("part", HEAD_VARIANTS, ids=str)
def test_every_label_of_every_head_begins_with_its_own(part: Part) -> None:
    head: Head = HEADS.build(part, channels=CHANNELS, num_labels=7).eval()
    features, logits = _features(), []
    for prior in (Prior(torch.zeros(7), 0.0), Prior(torch.linspace(-4, 2, 7), 9.0)):
        head.expect(prior)
        logits.append(head(features).logits)
    torch.testing.assert_close(logits[1] - logits[0], torch.linspace(-4, 2, 7).expand(3, -1))


@pytest.mark.parametrize("pooling", ["shared", "text"])
@pytest.mark.parametrize("groups", [None, 3])
def test_a_head_that_can_be_asked_for_others_begins_with_one_for_all(pooling: str, groups: int | None) -> None:
    part = Part("ml_decoder", {"query": "text", "pooling": pooling, "groups": groups})
    words = LabelKnowledge(vectors=np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32))
    head: Head = HEADS.build(part, channels=CHANNELS, num_labels=7, knowledge=words).eval()
    features = _features()
    before = head(features).logits
    head.expect(Prior(torch.linspace(-4, 2, 7), -1.5))
    torch.testing.assert_close(head(features).logits - before, torch.full((3, 7), -1.5))


def test_seen_labels_with_weights_of_their_own_begin_with_their_own() -> None:
    part = Part("ml_decoder", {"query": "text", "pooling": "own", "groups": 3})
    unseen = np.arange(7) % 3 == 2
    vectors = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    words = LabelKnowledge(vectors=vectors, unseen=unseen)
    head: Head = HEADS.build(part, channels=CHANNELS, num_labels=7, knowledge=words).eval()
    features, labels = _features(), torch.linspace(-4, 2, 7)
    before = head(features).logits
    head.expect(Prior(labels, -1.5))
    gained = head(features).logits - before
    seen = torch.from_numpy(~unseen)
    torch.testing.assert_close(gained[:, seen], labels[seen].expand(3, -1))
    assert gained[:, ~seen].abs().max() < 1e-6


def _bias(data: Path, out: Path, *settings: str) -> torch.Tensor:
    still = [*TINY, "data.workers=0", "optimiser.lr=1e-12", "train.epochs=1", "train.keep=last", *settings]
    run.train(str(data), out=out, settings=still)
    return load_bundle(out).only.model.head.classifier.bias.detach()


def test_a_run_begins_with_the_shares_of_its_training_images(photos: Path, tmp_path: Path) -> None:
    found = _bias(photos, tmp_path / "with")
    split = dict(line.split(",")[:2] for line in (tmp_path / "with" / "split.csv").read_text().splitlines()[1:])
    rows = [line.split(",") for line in (photos / "labels.csv").read_text().splitlines()]
    names = load_bundle(tmp_path / "with").only.labels.names
    train = [row for row in rows[1:] if split[row[0]] == "train"]
    for name, bias in zip(names, found.tolist(), strict=True):
        present = sum(name in row[1] for row in train)
        assert bias == pytest.approx(_logit((present + 1) / (len(train) + 2)), abs=1e-4)
    assert _bias(photos, tmp_path / "without", "head.prior_bias=false").abs().max() < 1e-4


def test_labels_that_compete_and_losses_that_fill(photos: Path) -> None:
    class Table:
        matrix = MATRIX

    heard: list[Prior] = []

    class Listener:
        options = HEADS.options("linear")

        def expect(self, prior: Prior) -> None:
            heard.append(prior)

    rows = np.arange(4)
    for kind, loss, options in (
        ("multi_label", "bce", {}),
        ("multi_label", "asl", {"unknown": "negative"}),
        ("single_label", "cross_entropy", {}),
    ):
        config = TaskConfig(kind=kind, loss=Part(loss, options))
        task_of(config).prepare(Listener(), config, Table(), rows)  # type: ignore[arg-type]
    expected = (Prior.of(MATRIX), Prior.of(MATRIX, filled=True), Prior.of(MATRIX, compete=True))
    for prior, its in zip(heard, expected, strict=True):
        assert torch.equal(prior.labels, its.labels)
    Listener.options = replace(Listener.options, prior_bias=False)
    task_of(TaskConfig()).prepare(Listener(), TaskConfig(), Table(), rows)  # type: ignore[arg-type]
    assert len(heard) == 3

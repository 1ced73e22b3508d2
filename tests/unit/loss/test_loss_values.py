"""Values one can check by hand, what the shared options do, and which settings are refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from manylabel.config import Part
from manylabel.error import ConfigError
from manylabel.loss import LOSSES, Loss
from manylabel.loss.partial import likeliest

NAMES = [name for name in LOSSES.names() if LOSSES.get(name).activation == "sigmoid"]


def make(name: str, positives: list[int] | None = None, knowns: list[int] | None = None, **options: Any) -> Loss:
    counts = {"positive_counts": positives, "known_counts": knowns}
    return LOSSES.build(Part(name, options), **{k: None if v is None else torch.tensor(v) for k, v in counts.items()})


def value(loss: Loss, logits: Any, targets: Any, known: Any = None) -> float:
    x = torch.tensor(logits, dtype=torch.float32)
    y = torch.tensor(targets, dtype=torch.float32)
    return loss(x, y, torch.ones_like(y, dtype=torch.bool) if known is None else torch.tensor(known)).item()


def logit(p: float) -> float:
    return math.log(p / (1 - p))


def test_the_losses_by_hand() -> None:
    x = [[logit(0.8), logit(0.3)]]
    y = [[1.0, 0.0]]
    assert value(make("bce"), x, y) == pytest.approx(-(math.log(0.8) + math.log(0.7)) / 2, abs=1e-6)
    assert value(make("focal"), x, y) == pytest.approx(-(0.2**2 * math.log(0.8) + 0.3**2 * math.log(0.7)) / 2, abs=1e-6)
    assert value(make("focal", alpha=0.25, gamma=1.0), x, y) == pytest.approx(
        -(0.25 * 0.2 * math.log(0.8) + 0.75 * 0.3 * math.log(0.7)) / 2, abs=1e-6
    )
    assert value(make("asl"), x, y) == pytest.approx(-(math.log(0.8) + 0.25**4 * math.log(0.75)) / 2, abs=1e-6)
    assert value(make("asl", gamma_positive=1.0, gamma_negative=2.0, clip=0.0), x, y) == pytest.approx(
        -(0.2 * math.log(0.8) + 0.3**2 * math.log(0.7)) / 2, abs=1e-6
    )


@pytest.mark.parametrize("gamma", [0.0, 0.5, 4.0])
@pytest.mark.parametrize("p", [0.0001, 0.02, 0.0499])
def test_asl_drops_easy_absent_labels(p: float, gamma: float) -> None:
    x = torch.tensor([[logit(p)]], requires_grad=True)
    loss = make("asl", gamma_negative=gamma)(x, torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool))
    loss.backward()
    assert loss.item() == 0
    assert x.grad is not None
    assert x.grad.item() == 0


def test_asl_detaches_its_focus_unless_told() -> None:
    """With γ− = 1 and no clip: d/dx of −p log(1−p) is p·p, and −p(1−p) log(1−p) more with the weight's own part."""
    p = 0.3
    grads = []
    for detach in (True, False):
        x = torch.tensor([[logit(p)]], requires_grad=True)
        loss = make("asl", gamma_negative=1.0, clip=0.0, detach_focus=detach)
        (grad,) = torch.autograd.grad(loss(x, torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool)), x)
        grads.append(grad.item())
    assert grads[0] == pytest.approx(p * p, abs=1e-6)
    assert grads[1] == pytest.approx(p * p - p * (1 - p) * math.log(1 - p), abs=1e-6)


def test_reductions_count_only_what_is_known() -> None:
    """Three known zeros in two of three images: each costs log 2."""
    case = ([[0.0, 0.0], [0.0, 5.0], [7.0, -7.0]], [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    known = [[True, True], [True, False], [False, False]]
    assert value(make("bce"), *case, known) == pytest.approx(math.log(2), abs=1e-6)
    assert value(make("bce", reduction="sum_labels"), *case, known) == pytest.approx(3 * math.log(2) / 2, abs=1e-6)
    assert value(make("bce", reduction="sum"), *case, known) == pytest.approx(3 * math.log(2), abs=1e-6)


def test_smoothing_moves_targets_towards_one_half() -> None:
    x = [[2.0, -1.0, 0.5]]
    smoothed = value(make("bce", label_smoothing=0.2), x, [[1.0, 0.0, 0.5]])
    assert smoothed == pytest.approx(value(make("bce"), x, [[0.9, 0.1, 0.5]]), abs=1e-6)


class TestPositiveWeights:
    positives, knowns = [10, 50, 0, 100, 0], [100, 100, 100, 100, 0]  # rare, even, never, always, not annotated

    def test_balanced(self) -> None:
        weights = make("bce", self.positives, self.knowns, positive_weight="balanced").positive_weights
        torch.testing.assert_close(weights, torch.tensor([9.0, 1.0, 20.0, 0.05, 1.0]))

    def test_root(self) -> None:
        weights = make("bce", self.positives, self.knowns, positive_weight="sqrt").positive_weights
        torch.testing.assert_close(weights, torch.tensor([3.0, 1.0, 20.0, 0.05, 1.0]))

    def test_cap(self) -> None:
        loss = make("bce", self.positives, self.knowns, positive_weight="balanced", positive_weight_cap=4.0)
        torch.testing.assert_close(loss.positive_weights, torch.tensor([4.0, 1.0, 4.0, 0.25, 1.0]))

    @pytest.mark.parametrize("name", NAMES)
    def test_only_present_labels_weigh_more(self, name: str) -> None:
        weighted, plain = make(name, [10, 50], [100, 100], positive_weight="balanced"), make(name)
        assert value(weighted, [[0.3, 9.0]], [[1.0, 1.0]], [[True, False]]) == pytest.approx(
            9 * value(plain, [[0.3, 9.0]], [[1.0, 1.0]], [[True, False]]), rel=1e-6
        )
        absent = ([[0.3, 0.7]], [[0.0, 0.0]])
        assert value(weighted, *absent) == value(plain, *absent)

    @pytest.mark.parametrize("counts", [(None, None), ([1, 2], None), (None, [3, 3])])
    def test_without_counts_says_so(self, counts: tuple[Any, Any]) -> None:
        with pytest.raises(ConfigError, match=r"positive_weight=balanced needs the label counts"):
            make("bce", *counts, positive_weight="balanced")

    def test_counts_must_make_sense(self) -> None:
        with pytest.raises(ValueError, match="between 0 and the known count"):
            make("bce", [5], [4], positive_weight="balanced")
        with pytest.raises(ValueError, match=r"\[labels\]"):
            make("bce", [5, 1], [9], positive_weight="balanced")


X = [[3.0, -2.0, 0.5, 1.5], [-1.0, 2.5, -0.5, 0.1]]
Y = [[1.0, 0.0, 1.0, -1.0], [0.0, -1.0, -1.0, -1.0]]
KNOWN = [[True, True, True, False], [True, False, False, False]]  # unknown logits: 1.5; 2.5, −0.5, 0.1
ALL = [[True] * 4] * 2
AS_ABSENT = [[1.0, 0.0, 1.0, 0.0], [0.0] * 4]


@pytest.mark.parametrize("name", NAMES)
class TestUnknown:
    def test_negative_is_the_same_as_absent(self, name: str) -> None:
        for options in ({}, {"label_smoothing": 0.1}, {"reduction": "sum_labels"}):
            guessed = value(make(name, unknown="negative", **options), X, Y, KNOWN)
            assert guessed == value(make(name, **options), X, AS_ABSENT, ALL)

    def test_weight_of_unknown_labels(self, name: str) -> None:
        """Linear in the weight; the count that a mean divides by stays."""
        sure = value(make(name, reduction="sum"), X, Y, KNOWN)
        whole = value(make(name, unknown="negative", reduction="sum"), X, Y, KNOWN)
        light = make(name, unknown="negative", unknown_weight=0.25, reduction="sum")
        assert value(light, X, Y, KNOWN) == pytest.approx(sure + 0.25 * (whole - sure), rel=1e-5)
        mean = make(name, unknown="negative", unknown_weight=0.25)
        assert value(mean, X, Y, KNOWN) == pytest.approx((sure + 0.25 * (whole - sure)) / 8, rel=1e-5)

    def test_unknown_labels_have_their_own_gamma(self, name: str) -> None:
        loss = make(name, unknown="negative", unknown_gamma=3.0, reduction="sum")
        m = 0.05 if name == "asl" else 0.0
        expected = value(make(name, reduction="sum"), X, Y, KNOWN)
        for x in (1.5, 2.5, -0.5, 0.1):
            p = 1 / (1 + math.exp(-x))
            expected -= (p - m) ** 3 * math.log(1 - p + m)
        assert value(loss, X, Y, KNOWN) == pytest.approx(expected, rel=1e-5)

    def test_selective_leaves_out_the_likeliest_of_the_batch(self, name: str) -> None:
        loss = make(name, unknown="selective", selective_prior=1.0, selective_top_k=2)
        kept = [[True, True, True, False], [True, False, True, True]]  # without 2.5 and 1.5
        assert value(loss, X, Y, KNOWN) == value(make(name), X, AS_ABSENT, kept)

    def test_selective_leaves_out_frequent_labels(self, name: str) -> None:
        loss = make(name, [1, 6, 5, 2], [10] * 4, unknown="selective", selective_top_k=0)
        kept = [[True, True, True, True], [True, False, True, True]]  # the second label: 0.6 > 0.5, the third is not
        assert value(loss, X, Y, KNOWN) == value(make(name), X, AS_ABSENT, kept)

    @pytest.mark.parametrize("unknown", ["negative", "selective"])
    def test_nothing_is_guessed_of_unseen_labels(self, name: str, unknown: str) -> None:
        """The second label is unseen: a constant logit there takes no place among the likeliest, and costs nothing."""
        loss = make(name, unknown=unknown, selective_prior=1.0, selective_top_k=1)
        loss.unseen = torch.tensor([False, True, False, False])
        x = [[3.0, 9.0, 0.5, 1.5], [-1.0, 9.0, -0.5, 0.1]]  # the likeliest that may be guessed: 1.5
        told = [[True, False, True, False], [True, False, False, False]]
        kept = [[True, False, True, unknown == "negative"], [True, False, True, True]]
        assert value(loss, x, Y, told) == value(make(name), x, AS_ABSENT, kept)

    def test_selective_never_touches_known_labels(self, name: str) -> None:
        loss = make(name, [9] * 4, [10] * 4, unknown="selective", selective_top_k=100)
        assert value(loss, X, Y, KNOWN) == value(make(name), X, Y, KNOWN)
        assert value(loss, X, AS_ABSENT, ALL) == value(make(name), X, AS_ABSENT, ALL)

    def test_selective_without_counts_says_so(self, name: str) -> None:
        with pytest.raises(ConfigError, match="unknown=selective needs the label counts"):
            make(name, unknown="selective")


def test_likeliest_takes_no_more_than_there_are() -> None:
    x = torch.tensor([[1.0, 9.0], [5.0, 3.0]])
    among = torch.tensor([[True, False], [True, True]])
    assert likeliest(x, among, 2).tolist() == [[False, False], [True, True]]
    assert likeliest(x, among, 0).any().item() is False
    assert torch.equal(likeliest(x, among, 50), among)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("bce", {"label_smoothing": 1.0}, "label_smoothing"),
        ("bce", {"label_smoothing": -0.1}, "label_smoothing"),
        ("bce", {"label_smoothing": math.nan}, "label_smoothing"),
        ("bce", {"reduction": "average"}, "reduction"),
        ("bce", {"reduction": "sums"}, "did you mean 'sum'"),
        ("bce", {"positive_weight": "balance"}, "did you mean 'balanced'"),
        ("bce", {"positive_weight_cap": 0.5}, "positive_weight_cap"),
        ("bce", {"unknown": "absent"}, "unknown"),
        ("bce", {"unknown_weight": 0.0}, "unknown=ignore"),
        ("bce", {"unknown_gamma": -1.0}, "unknown_gamma"),
        ("bce", {"selective_prior": 1.5}, "selective_prior"),
        ("bce", {"selective_top_k": -1}, "selective_top_k"),
        ("bce", {"selective_top_k": 2.5}, "selective_top_k must be int"),
        ("bce", {"gamma": 2.0}, "gamma"),
        ("focal", {"gamma": -1.0}, "gamma"),
        ("focal", {"gamma": math.inf}, "gamma"),
        ("focal", {"alpha": 1.5}, "alpha"),
        ("asl", {"gamma_negative": -1.0}, "gamma_negative"),
        ("asl", {"gamma_positive": math.nan}, "gamma_positive"),
        ("asl", {"clip": 1.0}, "clip"),
        ("asl", {"clipp": 0.1}, "did you mean 'clip'"),
        ("asymetric", {}, "there is no loss"),
    ],
)
def test_bad_settings_are_refused_by_name(name: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        LOSSES.options(Part(name, options))


def test_a_loss_prints_what_matters() -> None:
    shown = repr(make("asl", reduction="sum", clip=0.0))
    assert "reduction=sum" in shown
    assert "gamma_negative=4.0" in shown
    assert "clip=0.0" in shown
    assert "label_smoothing" not in shown


def test_buffers_follow_the_module_but_stay_out_of_checkpoints() -> None:
    loss = make("bce", [1, 2], [9, 9], positive_weight="sqrt", unknown="selective")
    tensors: dict[str, Tensor] = dict(loss.named_buffers())
    assert set(tensors) == {"positive_weights", "frequent"}
    assert not loss.state_dict()

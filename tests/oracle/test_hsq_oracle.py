"""HSQ against Algorithm 1 taken literally: values and gradients, for labels, experts and layers of any number."""

from __future__ import annotations

import copy
from typing import Any

import literal_attention as literal
import literal_hsq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from manylabel.config import Part
from manylabel.features import Features
from manylabel.head import HEADS
from manylabel.head.hsq import HSQ
from manylabel.head.hybrid_sharing import HybridSharingLayer

CHANNELS = {"stage4": 6, "final": 9}
SMALL: dict[str, Any] = {"dim": 16, "heads": 4, "hidden": 20, "dropout": 0.0, "layer_dims": (6, 5)}
IMAGES = 3


@settings(max_examples=40, deadline=None)
@given(
    labels=st.integers(1, 6),
    n_t=st.integers(0, 3),
    n_s=st.integers(0, 4),
    pooled=st.booleans(),
    reads=st.sampled_from(["own", "shared"]),
    sigma=st.sampled_from(list(literal_hsq.SIGMA)),
    expert_hidden=st.sampled_from([None, 3]),
    gate_hidden=st.sampled_from([None, 4]),
    block=st.sampled_from([1, 60, 10**6]),
    seed=st.integers(0, 1000),
)
def test_a_layer_is_algorithm_1(
    labels, n_t, n_s, pooled, reads, sigma, expert_hidden, gate_hidden, block, seed
) -> None:
    if n_t + n_s == 0:
        n_s = 1
    torch.manual_seed(seed)
    layer = HybridSharingLayer(
        labels, 7, 5, n_t, n_s, shared_branch=True, reads=reads, activation=sigma, expert_hidden=expert_hidden,
        gate_hidden=gate_hidden, block=block,
    )  # fmt: skip
    x_t, x_s = torch.randn(IMAGES, labels, 7), torch.randn(IMAGES, 1 if pooled else labels, 7)
    pull_t, pull_s = torch.randn(IMAGES, labels, 5), torch.randn(IMAGES, x_s.shape[1], 5)
    inputs = [x.clone().requires_grad_() for x in (x_t, x_s)]
    o_t, o_s = layer(*inputs)
    assert o_s is not None
    ((o_t * pull_t).sum() + (o_s * pull_s).sum()).backward()

    exact = copy.deepcopy(layer).double()
    exact.zero_grad()
    their = [x.double().requires_grad_() for x in (x_t, x_s)]
    total = torch.zeros((), dtype=torch.float64)
    for image in range(IMAGES):
        expected_t, expected_s = literal_hsq.layer(
            exact, list(their[0][image]), list(their[1][image]), literal_hsq.SIGMA[sigma]
        )
        assert (o_t[image] - torch.stack(expected_t)).abs().max() < 1e-5
        assert (o_s[image] - torch.stack(expected_s)).abs().max() < 1e-5
        total = (
            total + (torch.stack(expected_t) * pull_t[image]).sum() + (torch.stack(expected_s) * pull_s[image]).sum()
        )
    total.backward()
    for ours, theirs in zip(inputs, their, strict=True):
        if theirs.grad is not None:
            assert (ours.grad - theirs.grad).abs().max() < 1e-5 * max(1.0, float(theirs.grad.abs().max()))
    literal.assert_same_gradients(layer, exact)


@settings(max_examples=20, deadline=None)
@given(labels=st.integers(1, 5), n_t=st.integers(0, 2), n_s=st.integers(2, 5), seed=st.integers(0, 1000))
def test_a_label_uses_no_more_shared_experts_than_it_may(labels: int, n_t: int, n_s: int, seed: int) -> None:
    torch.manual_seed(seed)
    layer = HybridSharingLayer(labels, 7, 5, n_t, n_s, shared_branch=False)
    x, allowed = torch.randn(IMAGES, labels, 7), torch.randint(1, n_s + 1, (labels,))
    o_t, _ = layer(x, x, allowed)
    exact = copy.deepcopy(layer).double()
    for image in range(IMAGES):
        row = list(x[image].double())
        expected, _ = literal_hsq.layer(exact, row, row, literal_hsq.SIGMA["relu"], allowed)
        assert (o_t[image] - torch.stack(expected)).abs().max() < 1e-5


# --- the whole head ------------------------------------------------------------------------------------------------------


def features() -> Features:
    generator = torch.Generator().manual_seed(7)
    sizes = {"stage4": (6, 4, 6), "final": (9, 2, 3)}
    return Features({name: torch.randn(2, *size, generator=generator) for name, size in sizes.items()})


def build(name: str, n: int, **options: Any) -> HSQ:
    torch.manual_seed(0)
    head: HSQ = HEADS.build(Part(name, SMALL | options), channels=CHANNELS, num_labels=n)
    return head


def literal_group_queries(head: HSQ, given: Features, image: int) -> list[Tensor]:
    """ML-Decoder, Eq. 4: fixed queries, a norm where self-attention was, cross-attention, feed-forward."""
    decoder = head.transformer.decoder
    e = literal.tokens(decoder.tokens, given, image, relu=True)
    t = list(head.transformer.queries.weight)
    for layer in decoder.layers:
        t = [literal.layer_norm(layer.norm1, q + q) for q in t]
        looked = literal.attention(layer.attention, t, e, e)
        t = [literal.layer_norm(layer.norm2, q + a) for q, a in zip(t, looked, strict=True)]
        t = [literal.layer_norm(layer.norm3, q + literal.feed_forward(layer.feed_forward, q)) for q in t]
    return t


def literal_logits(head: HSQ, given: Features) -> Tensor:
    """Every layer with both branches, each fed by its own branch of the layer before, as the paper says."""
    o, g = head.options, head.size
    rows = []
    for image in range(2):
        if o.decoder == "ml_decoder":
            x_t = literal_group_queries(head, given, image)
        else:
            x_t = literal.query_transformer(head.transformer, o, given, image)
        x_s = x_t
        if o.shared_reads == "shared" and o.shared_input == "pooled":
            x_s = [sum(x_t) / len(x_t)]
        for layer in head.layers:
            x_t, x_s = literal_hsq.layer(layer, x_t, x_s, literal_hsq.SIGMA[o.activation])
        logits = []
        for n in range(head.num_labels):
            group, place = divmod(int(head.slot[n]), g)
            logits.append(literal_hsq.expert(head.classifier, group, 0, x_t[group])[place])
        rows.append(torch.stack(logits))
    return torch.stack(rows)


BEHIND_ML_DECODER: dict[str, Any] = {
    "decoder": "ml_decoder",
    "encoder_layers": 0,
    "decoder_layers": 1,
    "decoder_start": "queries",
    "positions": False,
    "decoder_norm": False,
}
VARIANTS: list[tuple[str, int, dict[str, Any]]] = [
    ("hsq", 5, {}),
    ("hsq", 5, {**BEHIND_ML_DECODER, "shared_experts": 3}),
    ("hsq", 9, {**BEHIND_ML_DECODER, "shared_experts": 3, "groups": 4, "grouping": "random", "decoder_layers": 2}),
    ("hsq_linear", 5, {**BEHIND_ML_DECODER, "stages": ("stage4", "final")}),
    ("hsq", 5, {"decoder_start": "queries"}),
    ("hsq", 1, {"shared_experts": 1}),
    ("hsq", 5, {"shared_experts": 0}),
    ("hsq", 5, {"shared_experts": 0, "task_experts": 3}),
    ("hsq", 4, {"shared_experts": 3, "task_experts": 0}),
    ("hsq", 4, {"shared_experts": 3, "task_experts": 2, "layer_dims": (6, 5, 4), "activation": "gelu"}),
    ("hsq", 5, {"shared_experts": 3, "shared_reads": "shared"}),
    ("hsq", 5, {"shared_experts": 3, "shared_reads": "shared", "layer_dims": (6, 5, 4), "task_experts": 2}),
    ("hsq", 5, {"shared_experts": 3, "shared_reads": "shared", "shared_input": "pooled", "layer_dims": (6, 5, 4)}),
    ("hsq", 5, {"shared_experts": 2, "expert_hidden": 4, "gate_hidden": 3, "classifier_hidden": 7}),
    ("hsq", 4, {"shared_experts": 2, "layer_dims": (8,), "self_attention": True}),
    ("hsq", 7, {"shared_experts": 3, "groups": 3, "grouping": "random", "shared_reads": "shared"}),
    ("hsq", 10, {"shared_experts": 3, "groups": 4, "classifier_hidden": 5}),
    ("hsq_linear", 5, {}),
    ("hsq_linear", 5, {"layer_dims": (9, 8, 3), "activation": "tanh"}),
]


@pytest.mark.parametrize(("name", "n", "options"), VARIANTS, ids=str)
class TestAgainstTheLiteralVersion:
    def test_logits(self, name: str, n: int, options: dict[str, Any]) -> None:
        head = build(name, n, **options).eval()
        expected = literal_logits(copy.deepcopy(head).double(), features())
        assert (head(features()).logits - expected).abs().max() < 1e-5

    def test_gradients(self, name: str, n: int, options: dict[str, Any]) -> None:
        head = build(name, n, **options)
        exact = copy.deepcopy(head).double()
        pull = torch.randn(2, n, generator=torch.Generator().manual_seed(5))
        (head(features()).logits * pull).sum().backward()
        (literal_logits(exact, features()) * pull).sum().backward()
        literal.assert_same_gradients(head, exact)


def test_by_the_letter_of_algorithm_1_the_shared_branch_reaches_no_label() -> None:
    """Why `shared_reads=own` computes no O_s: whatever X_s is, the labels' outputs are the same."""
    torch.manual_seed(0)
    layer = HybridSharingLayer(4, 7, 5, 1, 3, shared_branch=True, reads="own")
    x = torch.randn(2, 4, 7)
    (o_t, o_s), (again_t, again_s) = layer(x, x), layer(x, torch.randn_like(x))
    assert torch.equal(o_t, again_t)
    assert not torch.equal(o_s, again_s)
    whole = build("hsq", 4, shared_experts=3)
    literal_layers = copy.deepcopy(whole)
    for module in literal_layers.layers:  # compute it all the same
        module.shared_branch, module.shared_gate = (
            True,
            HybridSharingLayer(4, module.task.weight.shape[1], module.d_out, 1, 3, shared_branch=True).shared_gate,
        )
    assert torch.equal(whole.eval()(features()).logits, literal_layers.eval()(features()).logits)


def test_hsq_linear_is_fully_connected_layers() -> None:
    head = build("hsq_linear", 5).eval()
    x = head.transformer(features())
    for layer in head.layers:
        x = torch.relu(x @ layer.shared.weight[0, :, 0])
    logits = (x * head.classifier.weight[:, :, 0, 0]).sum(dim=-1) + head.classifier.bias[:, 0, 0]
    assert (head(features()).logits - logits).abs().max() < 1e-6

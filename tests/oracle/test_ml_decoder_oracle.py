"""ML-Decoder against a literal version: loops over images, queries, heads, tokens and labels (Eq. 3–6, App. K and L)."""

from __future__ import annotations

import copy
from typing import Any

import literal_attention as literal
import numpy as np
import pytest
import torch
from torch import Tensor

from manylabel.config import Part
from manylabel.features import Features
from manylabel.head import HEADS, LabelKnowledge
from manylabel.head.ml_decoder import MLDecoder
from manylabel.head.words import mixture, one_length
from manylabel.loss import LOSSES

CHANNELS = {"stage4": 6, "final": 9}
SMALL: dict[str, Any] = {"dim": 24, "heads": 4, "hidden": 20, "dropout": 0.0}
WORD = 5  # d_w


def features(batch: int = 2) -> Features:
    generator = torch.Generator().manual_seed(7)
    return Features(
        {
            "stage4": torch.randn(batch, 6, 4, 6, generator=generator),
            "final": torch.randn(batch, 9, 2, 3, generator=generator),
        }
    )


def vectors(n: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, WORD)).astype(np.float32)


def build(n: int, unseen: np.ndarray | None = None, **options: Any) -> MLDecoder:
    torch.manual_seed(0)
    together = np.random.default_rng(1).integers(0, 9, (n, n))
    knowledge = LabelKnowledge(vectors(n), together + together.T, unseen)
    head: MLDecoder = HEADS.build(
        Part("ml_decoder", SMALL | options), channels=CHANNELS, num_labels=n, knowledge=knowledge
    )
    with torch.no_grad():  # biases and norms that are zero or one would hide mistakes
        for parameter in head.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return head


# --- the paper, literally -------------------------------------------------------------------------------------------


def group_fully_connected(g: list[Tensor], group_weights: Tensor, num_classes: int) -> Tensor:
    """Appendix K: a product for each group, flattened, and the padding cut off."""
    output = []
    for i in range(len(g)):
        g_i = g[i]  # [embeddings]
        w_i = group_weights[i]  # [embeddings, classes // groups]
        output.append(g_i @ w_i)
    return torch.cat(output)[:num_classes]


def group_weights_zsl(words: dict[int, Tensor], w: Tensor, groups: int, size: int) -> Tensor:
    """Appendix L: group_weights[i // g, :, i % g] = W · wordvecs[i], of the label at place i."""
    weights = torch.zeros(groups, len(w), size, dtype=torch.float64)
    for i, word in words.items():
        weights[i // size, :, i % size] = w @ word
    return weights


def literal_words(head: MLDecoder) -> Tensor:
    """N_i: the vectors as they are, or softmax(cos(label, seen label) / temperature) over the seen ones; mean square 1."""
    rows = []
    for vector in head.words.vectors:
        if head.options.word_space == "mixture":
            cosines = [torch.dot(vector, a) / vector.norm() / a.norm() for a in head.words.anchors]
            weights = [torch.exp(c / head.options.temperature) for c in cosines]
            vector = torch.stack([weight / sum(weights) for weight in weights])
        rows.append(vector / torch.sqrt((vector**2).sum() / len(vector)))
    return torch.stack(rows)


def literal_logits(head: MLDecoder, given: Features) -> Tensor:
    """Eq. 4 (Eq. 2 with self-attention) for every image; labels are read from their places at the end.

    Groups of labels that were never trained come behind those of training. Where queries or weights are trained and not
    made of words, such groups take those of the trained groups, from the first on (Table 8, rows 1 and 3).
    """
    o = head.options
    n, size = head.num_labels, head.size
    slot = (head.words.slot if hasattr(head, "words") else head.slot).tolist()
    groups = max(slot) // size + 1
    words = dict(zip(slot, literal_words(head), strict=True)) if hasattr(head, "words") else {}
    if o.query == "text" and size == 1:
        queries = [torch.clamp(literal.linear(head.queries.project, words[i]), min=0) for i in range(n)]
    elif o.query == "text":
        nothing = torch.zeros(o.dim // size, dtype=torch.float64)
        queries = []
        for k in range(groups):  # Eq. 5: q_k = concat({W_a · N_i}), zeros where no label is
            places = range(k * size, (k + 1) * size)
            queries.append(
                torch.cat([head.queries.project.weight @ words[i] if i in words else nothing for i in places])
            )
    else:
        queries = list(head.queries.weight)
    rows = []
    for image in range(len(given.final)):
        e = literal.tokens(head.tokens, given, image, relu=True)
        t = queries
        for layer in head.layers:
            looked = literal.attention(layer.self_attention, t, t, t) if o.self_attention else t
            t = [literal.layer_norm(layer.norm1, q + a) for q, a in zip(t, looked, strict=True)]
            looked = literal.attention(layer.attention, t, e, e)
            t = [literal.layer_norm(layer.norm2, q + a) for q, a in zip(t, looked, strict=True)]
            t = [literal.layer_norm(layer.norm3, q + literal.feed_forward(layer.feed_forward, q)) for q in t]
        t = [t[k % len(t)] for k in range(groups)]
        if o.pooling == "text":
            weights = group_weights_zsl(words, head.pool.project.weight, groups, size)  # Eq. 6
        elif o.pooling == "shared":
            weights = torch.stack([head.pool.weight[0]] * groups)
        else:
            weights = torch.stack([head.pool.weight[k % len(head.pool.weight)] for k in range(groups)])
        in_slots = group_fully_connected(t, weights, groups * size)
        rows.append(torch.stack([in_slots[slot[i]] for i in range(n)]) + literal_bias(head))
    return torch.stack(rows)


def literal_bias(head: MLDecoder) -> Tensor:
    """One for all, or each trained label's own."""
    bias = head.pool.bias
    if head.options.pooling != "own" or getattr(head, "unseen", None) is None:
        return bias
    seen = head.words.seen.tolist()
    return torch.stack([bias[seen.index(i)] if i in seen else 0 * bias[0] for i in range(head.num_labels)])


# --- comparisons ------------------------------------------------------------------------------------------------------

VARIANTS: list[tuple[int, dict[str, Any]]] = [
    (7, {}),  # full decoding
    (1, {}),
    (8, {"groups": 4}),
    (7, {"groups": 3}),  # N not divisible by K: two places of the last group are empty
    (10, {"groups": 6}),  # g = 2: the sixth query would have no label
    (10, {"groups": 4, "grouping": "random"}),
    (10, {"groups": 4, "grouping": "cooccurrence"}),
    (10, {"groups": 4, "grouping": "text"}),
    (7, {"groups": 3, "query": "learnable"}),
    (7, {"layers": 2, "groups": 4}),
    (7, {"stages": ("stage4", "final")}),
    (7, {"stages": ("stage4", "final"), "earlier": "beside"}),
    (6, {"query": "text", "pooling": "own"}),  # Table 7: fixed words, weights of their own
    (6, {"query": "text", "pooling": "shared"}),  # full decoding for zero-shot
    (7, {"query": "text", "pooling": "text", "groups": 3}),  # Eq. 5 and 6, N not divisible by K
    (7, {"query": "text", "pooling": "text"}),
    (7, {"query": "text", "pooling": "own", "groups": 3}),  # Table 8, rows 1 to 3
    (7, {"query": "text", "pooling": "shared", "groups": 3}),
    (7, {"query": "fixed", "pooling": "text", "groups": 3}),
    (6, {"query": "text", "pooling": "shared", "word_space": "mixture", "temperature": 0.3}),
    (7, {"query": "text", "pooling": "text", "groups": 3, "word_space": "mixture"}),
    (7, {"query": "learnable", "self_attention": True}),  # Eq. 2, the transformer decoder
    (7, {"query": "learnable", "self_attention": True, "groups": 3, "layers": 2}),
    (6, {"query": "text", "self_attention": True}),
]
UNSEEN: list[dict[str, Any]] = [
    {"query": "text", "pooling": "shared"},
    {"query": "text", "pooling": "own", "groups": 4},  # Table 8, row by row
    {"query": "text", "pooling": "shared", "groups": 4},
    {"query": "learnable", "pooling": "text", "groups": 4},
    {"query": "text", "pooling": "text", "groups": 4},
    {"query": "text", "pooling": "text", "groups": 4, "word_space": "mixture", "grouping": "random"},
    {"query": "fixed", "pooling": "text", "groups": 10, "self_attention": True, "grouping": "text"},
]


@pytest.mark.parametrize(("n", "options"), VARIANTS, ids=str)
class TestAgainstTheLiteralVersion:
    def test_logits(self, n: int, options: dict[str, Any]) -> None:
        head = build(n, **options).eval()
        expected = literal_logits(copy.deepcopy(head).double(), features())
        assert head(features()).logits.shape == (2, n)
        assert (head(features()).logits - expected).abs().max() < 1e-5

    def test_gradients(self, n: int, options: dict[str, Any]) -> None:
        head = build(n, **options).train()
        exact = copy.deepcopy(head).double()
        pull = torch.randn(2, n, generator=torch.Generator().manual_seed(5))
        (head(features()).logits * pull).sum().backward()
        (literal_logits(exact, features()) * pull).sum().backward()
        literal.assert_same_gradients(head, exact)


@pytest.mark.parametrize("options", UNSEEN, ids=str)
def test_labels_that_training_never_told(options: dict[str, Any]) -> None:
    head = build(11, np.arange(11) % 3 == 1, **options).eval()
    assert head.unseen is not None
    expected = literal_logits(copy.deepcopy(head).double(), features())
    assert (head(features()).logits - expected).abs().max() < 1e-5


def test_a_transformer_decoder_trains_its_self_attention() -> None:
    """Queries differ, and are queries, keys and values alike (Eq. 2): each part of the self-attention gets a gradient."""
    head = build(5, query="learnable", self_attention=True).train()
    head(features()).logits.square().sum().backward()
    among = head.layers[0].self_attention
    assert among is not None
    for part in (among.query, among.key, among.value, among.out):
        assert part.weight.grad is not None
        assert part.weight.grad.abs().max() > 1e-6
    first = among(*3 * [head.queries.weight])
    assert (first[0] - first[1]).abs().max() > 1e-3


def test_padding_of_the_last_group_gets_no_gradient() -> None:
    """N = 7 in K = 3 groups of 3: places 7 and 8 belong to no label."""
    head = build(7, groups=3)
    head(features()).logits.square().sum().backward()
    grad = head.pool.weight.grad  # [3, D, 3]
    assert grad is not None
    assert not grad[2, :, 1:].any()
    assert grad[2, :, 0].any()
    assert grad[:2].any()


def test_training_asks_only_for_seen_labels() -> None:
    """In training the logits are those of a head that knows nothing but the seen labels; unseen ones are 0."""
    unseen = np.array([False, True, False, False, True, False, False])
    for options in (
        {"pooling": "shared"},
        {"pooling": "text", "groups": 3},
        {"pooling": "shared", "word_space": "mixture"},
    ):
        head = build(7, unseen, query="text", **options).train()
        alone = copy.deepcopy(head)
        alone.relabel(vectors(7)[~unseen])
        logits = head(features()).logits
        assert torch.equal(logits[:, unseen], torch.zeros(2, 2))
        torch.testing.assert_close(logits[:, ~unseen], alone.eval()(features()).logits, atol=1e-5, rtol=0)
        assert head.eval()(features()).logits[:, unseen].abs().min() > 0


def test_a_mixture_asks_for_what_its_neighbours_ask_for() -> None:
    """A label between two seen ones is half of each; a seen one is itself; one label alone is all there is."""
    seen = torch.eye(3) * 3**0.5
    middle = one_length((seen[:1] + seen[1:2]) / 2)
    code = mixture(torch.cat([seen, middle]), seen, 0.05)
    torch.testing.assert_close(code[:3], seen, atol=1e-4, rtol=0)
    torch.testing.assert_close(code[3], one_length((seen[:1] + seen[1:2]) / 2)[0], atol=1e-4, rtol=0)
    torch.testing.assert_close(mixture(middle, seen[:1], 0.05), torch.ones(1, 1))


def test_random_queries_cost_what_a_missed_label_costs() -> None:
    """−log σ of the random queries' logits, in proportion to their number (ours; the paper does not say)."""
    head = build(6, query="text", pooling="shared", random_queries=3).train()
    twin = copy.deepcopy(head).eval()
    torch.manual_seed(11)
    output = head(features())
    torch.manual_seed(11)
    random = torch.randn(3, WORD)
    twin.words.words = torch.cat([twin.words.words, random])
    twin.words.slot = torch.arange(9)
    twin.num_labels = 9
    every = twin(features()).logits
    torch.testing.assert_close(output.logits, every[:, :6], atol=1e-5, rtol=0)
    expected = -torch.log(torch.sigmoid(every[:, 6:]))
    assert output.extra is not None
    torch.testing.assert_close(output.extra, expected, atol=1e-5, rtol=0)
    for reduction, share in (("mean", 1 / (2 * 6)), ("sum_labels", 1 / 2), ("sum", 1.0)):  # like three labels more
        loss = LOSSES.build(Part("bce", {"reduction": reduction}))
        known = torch.ones(2, 6, dtype=torch.bool)
        torch.testing.assert_close(loss.reduce(output.extra, known), share * expected.sum(), atol=1e-5, rtol=1e-5)
    assert head.eval()(features()).extra is None


def test_query_noise_is_drawn_anew_for_each_batch_and_never_when_judging() -> None:
    head = build(6, query="text", pooling="shared", query_noise=0.5)
    assert not torch.equal(head.train()(features()).logits, head(features()).logits)
    assert torch.equal(head.eval()(features()).logits, head(features()).logits)

"""Our ML-Decoder against timm's, in the same process on the same features; and how heads grow with the number of labels:
time, throughput, memory and the largest batch (ML-Decoder's Table 9, of the heads alone), always at the same batch.

timm's `MLDecoder` cannot be called on current torch (its wrapper asks for a self-attention that is not there), so its parts
are called one after the other here, exactly as its forward does. Both have the paper's sizes: D = 768, FFN 2048, K = 100.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.cost import DECODER, PAPER, decoder_options
from benchmarks.memory import peak_megabytes
from benchmarks.table import Row, interleave, less_is_better
from manylabel.allocator import keep_memory
from manylabel.config import Part
from manylabel.core.output import Output
from manylabel.features import FINAL, Features
from manylabel.head import HEADS, Head
from manylabel.head.group_linear import GroupLinear

CHANNELS, GRID = 2048, 7  # a ResNet50 at 224 px
GROWTH_BATCH = 2  # of all heads: the transformer decoder's 10,000 queries take gigabytes for more
FEW = 4  # images a step, where it has up to 5,000 queries
LARGE = 2  # the batch whose memory is measured, and twice it
MEMORY = 16_000  # megabytes, for which the largest batch is extrapolated from these (Table 9: a GPU of 16 GB)
BATCH = 8  # per step on a laptop; the larger, the less the peer's loop over groups weighs
PEER = "timm MLDecoder, its parts called directly"


class _Peer(nn.Module):
    """timm's MLDecoder with the one line that crashes (self.decoder) replaced by the layer inside it."""

    def __init__(self, labels: int) -> None:
        from timm.layers.ml_decoder import MLDecoder

        super().__init__()
        self.inner: Any = MLDecoder(labels, initial_num_features=CHANNELS)

    def forward(self, x: Tensor) -> Tensor:
        m = self.inner
        embedded = torch.relu_(m.embed_standart(x.flatten(2).transpose(1, 2)))
        queries = m.query_embed.weight.unsqueeze(1).expand(-1, len(x), -1)
        h = m.decoder.layers[0](queries, embedded.transpose(0, 1)).transpose(0, 1)
        out = torch.zeros(h.shape[0], h.shape[1], m.duplicate_factor, dtype=h.dtype)
        for i in range(m.embed_len_decoder):
            out[:, i, :] = torch.matmul(h[:, i, :], m.duplicate_pooling[i, :, :])
        logits = out.flatten(1)[:, : m.num_classes]
        logits += m.duplicate_pooling_bias
        return logits


def run(quick: bool = False) -> list[Row]:
    """Both at each number of labels, the group FC against its loop, and what more labels cost each kind of head."""
    keep_memory()
    repeats = 3 if quick else 9
    torch.manual_seed(0)
    images = torch.randn(BATCH, CHANNELS, GRID, GRID)
    rows = []
    for labels in (80, 1000) if quick else (80, 1000, 9605):
        rows += _against_timm(labels, images, repeats)
    rows += group_fc_memory(*((1000, 100, 8) if quick else (9605, 100, 64)))
    for labels in (100, 1000) if quick else (100, 1000, 5000):
        rows += _throughput(labels, images[:FEW], 1 if quick or labels > 1000 else 3)
    return rows + _growth(images[:GROWTH_BATCH], repeats, 2_000 if quick else 10_000)


def same_weights(ours: Any, theirs: Any) -> None:
    """Give our head the weights of timm's."""
    layer, its_layer = ours.layers[0], theirs.decoder.layers[0]
    attention = its_layer.multihead_attn
    pairs = [
        (ours.tokens.project[FINAL], theirs.embed_standart),
        (layer.feed_forward[0], its_layer.linear1),
        (layer.feed_forward[3], its_layer.linear2),
        (layer.attention.out, attention.out_proj),
        *((getattr(layer, f"norm{i}"), getattr(its_layer, f"norm{i}")) for i in (1, 2, 3)),
    ]
    used = len(ours.queries.weight)  # timm keeps queries that no label uses
    with torch.no_grad():
        for mine, its in pairs:
            mine.weight.copy_(its.weight)
            mine.bias.copy_(its.bias)
        weights, biases = attention.in_proj_weight.chunk(3), attention.in_proj_bias.chunk(3)
        for i, name in enumerate(("query", "key", "value")):
            getattr(layer.attention, name).weight.copy_(weights[i])
            getattr(layer.attention, name).bias.copy_(biases[i])
        ours.queries.weight.copy_(theirs.query_embed.weight[:used])
        ours.pool.weight.copy_(theirs.duplicate_pooling[:used])
        ours.pool.bias.copy_(theirs.duplicate_pooling_bias)


def pair(labels: int) -> tuple[Head, nn.Module]:
    """Our head and timm's, with the same weights."""
    ours: Head = HEADS.build(
        Part("ml_decoder", {**PAPER, "groups": min(labels, 100)}), channels={FINAL: CHANNELS}, num_labels=labels
    )
    peer = _Peer(labels)
    same_weights(ours, peer.inner)
    return ours, peer


def _against_timm(labels: int, images: Tensor, repeats: int) -> list[Row]:
    ours, peer = pair(labels)
    features = Features({FINAL: images})
    with torch.inference_mode():
        gap = float((ours.eval()(features).logits - peer.eval()(images)).abs().max())
    if gap > 1e-4:
        raise AssertionError(f"the two heads differ by {gap:.2g}, so their speed must not be compared")
    rows = []
    for mode in ("eval", "train"):
        seconds, peer_seconds = interleave(_step(ours, features, mode), _step(peer, images, mode), repeats)
        case = f"{labels:,} labels, K = {min(labels, 100)}, batch {BATCH}, {GRID}×{GRID}×{CHANNELS}"
        rows.append(less_is_better(f"ML-Decoder, {mode}", case, 1000 * seconds, 1000 * peer_seconds, "ms", PEER))
    return rows


def _step(head: nn.Module, inputs: Any, mode: str) -> Callable[[], None]:
    """One forward pass, or one forward and backward pass."""

    def judge() -> None:
        with torch.inference_mode():
            head.eval()(inputs)

    def train() -> None:
        head.train()
        for parameter in head.parameters():
            parameter.grad = None
        output = head(inputs)
        logits = output.logits if isinstance(output, Output) else output  # the peer's are bare
        logits.square().mean().backward()

    return train if mode == "train" else judge


class _Loop(GroupLinear):
    """The group FC as appendix K writes it: one group after the other."""

    def forward(self, queries: Tensor, slot: Tensor, label: Tensor | None = None) -> Tensor:
        out = queries.new_zeros(*queries.shape[:2], self.weight.shape[2])
        for k in range(len(self.weight)):
            out[:, k] = queries[:, k] @ self.weight[k]
        return out.flatten(1)[:, : len(slot)] + self.bias


def group_fc_memory(labels: int, groups: int, batch: int) -> list[Row]:
    """Peak memory of a training step, beyond queries and weights; nothing where the system cannot tell."""
    size, dim = -(-labels // groups), PAPER["dim"]
    queries, slot = torch.randn(batch, -(-labels // size), dim, requires_grad=True), torch.arange(labels)
    ours, loop = (kind(labels, queries.shape[1], size, dim) for kind in (GroupLinear, _Loop))
    loop.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(queries, slot), loop(queries, slot), atol=1e-4, rtol=1e-4)
    peaks = []
    for pool in (ours, loop):

        def step(pool: nn.Module = pool) -> None:
            queries.grad = None
            pool.zero_grad(set_to_none=True)
            pool(queries, slot).square().mean().backward()

        step()  # what is allocated once and kept is not of the step
        peaks.append(peak_megabytes(step))
    case = f"{labels:,} labels, K = {queries.shape[1]}, batch {batch}, D = {dim}"
    mine, its = peaks
    if not mine or its is None:
        return []
    return [less_is_better("group FC, memory of a training step", case, mine, its, "MB", "the loop of appendix K")]


def _three(labels: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """The heads of Table 9."""
    return {
        "ML-Decoder": ("ml_decoder", {**PAPER, "groups": min(labels, 100), "dropout": 0.0}),
        "average pooling": ("linear", {}),
        DECODER: ("ml_decoder", {**decoder_options(labels), "dropout": 0.0}),
    }


def _throughput(labels: int, images: Tensor, repeats: int) -> list[Row]:
    """ML-Decoder beside average pooling and the transformer decoder: images a second, and the largest batch."""
    built = {name: _head(*choice, labels) for name, choice in _three(labels).items()}
    features, case = Features({FINAL: images}), f"{labels:,} labels, K ≤ 100, heads alone, batch {len(images)}"
    ours, *peers = built
    rows = []
    for peer in peers:
        for mode in ("eval", "train"):
            first, second = (_step(built[name], features, mode) for name in (ours, peer))
            mine, its = (len(images) / seconds for seconds in interleave(first, second, repeats))
            rows.append(Row(f"throughput, {mode}", case, mine, its, mine / its, "images/s", peer))
        most, its_most = largest_batch(built[ours]), largest_batch(built[peer])
        if most and its_most:
            where = f"{labels:,} labels, heads alone, in {MEMORY // 1000} GB, extrapolated from {LARGE} and {2 * LARGE}"
            rows.append(Row("largest batch, train", where, most, its_most, most / its_most, "images", peer))
    return rows


def largest_batch(head: Head) -> float | None:
    """Images whose training step fits into MEMORY, by the peaks of two batches; None where the system cannot tell."""
    peaks = []
    for batch in (LARGE, 2 * LARGE):
        step = _step(head, Features({FINAL: torch.randn(batch, CHANNELS, GRID, GRID)}), "train")
        step()
        peaks.append(peak_megabytes(step))
    few, many = peaks
    if few is None or many is None or many <= few:
        return None
    return LARGE + (MEMORY - few) / ((many - few) / LARGE)


def _head(name: str, options: dict[str, Any], labels: int) -> Head:
    head: Head = HEADS.build(Part(name, options), channels={FINAL: CHANNELS}, num_labels=labels)
    return head


def _growth(images: Tensor, repeats: int, most: int) -> list[Row]:
    """Time at `most` labels as a multiple of that at 1,000: ML-Decoder with K = 100 beside the transformer decoder."""
    features, rows = Features({FINAL: images}), []
    for mode in ("eval", "train"):
        growth = []
        for name in ("ML-Decoder", DECODER):
            few, many = (_head(*_three(labels)[name], labels) for labels in (1000, most))
            times = repeats if name == "ML-Decoder" else 1
            long, short = interleave(_step(many, features, mode), _step(few, features, mode), times)
            growth.append(long / short)
        case = f"time at {most:,} labels / at 1,000; ML-Decoder K = 100; batch {len(images)} of both"
        ours, its = growth
        rows.append(less_is_better(f"growth with labels, {mode}", case, ours, its, "×", DECODER))
    return rows

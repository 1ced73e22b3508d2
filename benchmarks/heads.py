"""Our ML-Decoder against timm's, in the same process on the same features; and how the cost of heads grows with labels.

timm's `MLDecoder` cannot be called on current torch (its wrapper asks for a self-attention that is not there), so its parts
are called one after the other here, exactly as its forward does. Both have the paper's sizes: D = 768, FFN 2048, K = 100.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.table import Row, interleave, less_is_better
from manylabel.allocator import keep_memory
from manylabel.config import Part
from manylabel.core.output import Output
from manylabel.features import FINAL, Features
from manylabel.head import HEADS, Head

CHANNELS, GRID = 2048, 7  # a ResNet50 at 224 px
BATCH = 8  # per step on a laptop; the larger, the less the peer's loop over groups weighs
PAPER = {"dim": 768, "heads": 8, "hidden": 2048}
DECODER = {**PAPER, "encoder_layers": 0, "decoder_layers": 1, "self_attention": True, "positions": False}
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
    """Evaluation and training of both at each number of labels, then growth from 1,000 to 10,000 labels."""
    keep_memory()
    repeats = 3 if quick else 9
    torch.manual_seed(0)
    images = torch.randn(BATCH, CHANNELS, GRID, GRID)
    rows = []
    for labels in (80, 1000) if quick else (80, 1000, 9605):
        rows += _against_timm(labels, images, repeats)
    return rows + _growth(images, repeats, 2_000 if quick else 10_000)


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
        gap = float((ours.eval()(features) - peer.eval()(images)).abs().max())
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


def _growth(images: Tensor, repeats: int, most: int) -> list[Row]:
    """Time at `most` labels as a multiple of that at 1,000: ML-Decoder with K = 100 beside the transformer decoder."""
    decoder_images = images[:1]  # its attention between 10,000 labels takes gigabytes for more
    rows = []
    for mode in ("eval", "train"):
        growth = []
        for name, options, inputs, times in (
            ("ml_decoder", {**PAPER, "groups": 100, "dropout": 0.0}, images, repeats),
            ("query2label", {**DECODER, "dropout": 0.0}, decoder_images, 1),
        ):
            few, many = (
                HEADS.build(Part(name, options), channels={FINAL: CHANNELS}, num_labels=n) for n in (1000, most)
            )
            features = Features({FINAL: inputs})
            long, short = interleave(_step(many, features, mode), _step(few, features, mode), times)
            growth.append(long / short)
        case = f"time at {most:,} labels / at 1,000; ML-Decoder K = 100, batch {BATCH}; transformer decoder, batch 1"
        ours, theirs = growth
        rows.append(less_is_better(f"growth with labels, {mode}", case, ours, theirs, "×", "transformer decoder"))
    return rows

"""Attention, norms and feed-forward as the papers write them: a loop for every image, head, query and token.

They take a module's weights by name and nothing else of it. float64, so that differences are the fast version's own.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """W x + b of one vector."""
    out = layer.weight @ x
    return out if layer.bias is None else out + layer.bias


def layer_norm(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    mean = x.sum() / len(x)
    variance = ((x - mean) ** 2).sum() / len(x)
    return (x - mean) / torch.sqrt(variance + 1e-5) * norm.weight + norm.bias


def attention(module: nn.Module, queries: list[Tensor], keys: list[Tensor], values: list[Tensor]) -> list[Tensor]:
    """MultiHeadAttn(Q, K, V) of one image: Concat(head_1 … head_h) W^O (Eq. 1)."""
    h = module.heads
    d = len(queries[0]) // h
    out = []
    for query in queries:
        q = linear(module.query, query)
        heads = []
        for i in range(h):
            part = slice(i * d, (i + 1) * d)
            raw = [torch.dot(q[part], linear(module.key, key)[part]) / math.sqrt(d) for key in keys]
            total = sum(torch.exp(r) for r in raw)
            weights = [torch.exp(r) / total for r in raw]
            heads.append(sum(w * linear(module.value, v)[part] for w, v in zip(weights, values, strict=True)))
        out.append(linear(module.out, torch.cat(heads)))
    return out


def feed_forward(module: nn.Sequential, x: Tensor) -> Tensor:
    return linear(module[3], torch.clamp(linear(module[0], x), min=0))


def tokens(module: nn.Module, features, image: int, relu: bool) -> list[Tensor]:  # type: ignore[no-untyped-def]
    """The spatial embeddings E of one image, stage by stage, row by row."""
    out = []
    for stage in module.stages:
        grid = features.stages[stage][image].double()
        final = features.stages["final"][image].double()
        for y in range(grid.shape[1]):
            for x in range(grid.shape[2]):
                if module.onto and stage != "final":  # what the final stage says of this place, and what is added to it
                    above = final[:, y * final.shape[1] // grid.shape[1], x * final.shape[2] // grid.shape[2]]
                    h = grid[:, y, x]
                    normal = (h - h.mean()) / torch.sqrt(h.var(correction=0) + 1e-5)
                    e = linear(module.project["final"], above) + module.project[stage].weight.double() @ normal
                else:
                    e = linear(module.project[stage], grid[:, y, x])
                e = torch.clamp(e, min=0) if relu else e
                out.append(e + module.scale[stage] if len(module.stages) > 1 else e)
    return out


def position(y: int, x: int, height: int, width: int, dim: int) -> Tensor:
    """Row first, then column; sine at even places, cosine at odd ones."""
    numbers = []
    for place, count in ((y, height), (x, width)):
        for j in range(dim // 2):
            angle = 2 * math.pi * (place + 1) / count / 10_000 ** (2 * (j // 2) / (dim // 2))
            numbers.append(math.sin(angle) if j % 2 == 0 else math.cos(angle))
    return torch.tensor(numbers, dtype=torch.float64)


def added(xs: list[Tensor], ys: list[Tensor]) -> list[Tensor]:
    return [x + y for x, y in zip(xs, ys, strict=True)]


def query_transformer(module: nn.Module, o, features, image: int) -> list[Tensor]:  # type: ignore[no-untyped-def]
    """Query2Label's encoder and decoder on one image: a vector for each query (ML-Decoder, Eq. 2)."""
    e = tokens(module.tokens, features, image, relu=False)
    p = []
    for stage in o.stages:
        height, width = features.stages[stage].shape[-2:]
        p += [position(y, x, height, width, o.dim) for y in range(height) for x in range(width)]
    if not o.positions:
        p = [torch.zeros_like(place) for place in p]
    for layer in module.encoder:
        looked = attention(layer.attention, added(e, p), added(e, p), e)
        e = [layer_norm(layer.norm1, x) for x in added(e, looked)]
        e = [layer_norm(layer.norm2, x + feed_forward(layer.feed_forward, x)) for x in e]
    q = list(module.queries.weight)
    t = q if o.decoder_start == "queries" else [torch.zeros_like(query) for query in q]
    for layer in module.decoder:
        if o.self_attention:
            looked = attention(layer.self_attention, added(t, q), added(t, q), t)
            t = [layer_norm(layer.norm1, x) for x in added(t, looked)]
        looked = attention(layer.attention, added(t, q), added(e, p), e)
        t = [layer_norm(layer.norm2, x) for x in added(t, looked)]
        t = [layer_norm(layer.norm3, x + feed_forward(layer.feed_forward, x)) for x in t]
    return [layer_norm(module.norm, x) for x in t] if o.decoder_norm else t


def assert_same_gradients(module: nn.Module, exact: nn.Module) -> None:
    """Every parameter of `module` has the gradient of its twin, to 1e-5 (of its largest entry, where that is above 1)."""
    for (name, ours), (_, theirs) in zip(module.named_parameters(), exact.named_parameters(), strict=True):
        assert ours.grad is not None, name
        scale = max(1.0, float(theirs.grad.abs().max()))
        assert (ours.grad - theirs.grad).abs().max() / scale < 1e-5, name

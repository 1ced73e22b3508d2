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
        for y in range(grid.shape[1]):
            for x in range(grid.shape[2]):
                e = linear(module.project[stage], grid[:, y, x])
                e = torch.clamp(e, min=0) if relu else e
                out.append(e + module.scale[stage] if len(module.stages) > 1 else e)
    return out


def assert_same_gradients(module: nn.Module, exact: nn.Module) -> None:
    """Every parameter of `module` has the gradient of its twin, to 1e-5 (of its largest entry, where that is above 1)."""
    for (name, ours), (_, theirs) in zip(module.named_parameters(), exact.named_parameters(), strict=True):
        assert ours.grad is not None, name
        scale = max(1.0, float(theirs.grad.abs().max()))
        assert (ours.grad - theirs.grad).abs().max() / scale < 1e-5, name

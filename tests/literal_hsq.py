"""Algorithm 1 of the HSQ paper, line by line: loops over images, labels and experts.

It takes a layer's weights by name and nothing else of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

SIGMA: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": lambda y: torch.clamp(y, min=0),
    "gelu": lambda y: y * 0.5 * (1 + torch.erf(y / math.sqrt(2))),
    "tanh": torch.tanh,
    "none": lambda y: y,
}


def expert(bank: nn.Module, owner: int, number: int, x: Tensor) -> Tensor:
    """x E of one expert, or of an MLP: W₂ ReLU(W₁ x + b₁) + b₂."""
    y = x @ bank.weight[owner, :, number]
    if bank.bias is not None:
        y = y + bank.bias[owner, number]
    if bank.hidden is None:
        return y
    place = owner * bank.count + number
    return torch.clamp(y, min=0) @ bank.weight2[place] + bank.bias2[place]


def softmax(x: Tensor) -> Tensor:
    total = sum(torch.exp(v) for v in x)
    return torch.stack([torch.exp(v) / total for v in x])


def layer(
    module: nn.Module, x_t: list[Tensor], x_s: list[Tensor], sigma: Callable[[Tensor], Tensor], allowed=None
) -> tuple[list[Tensor], list[Tensor]]:  # type: ignore[no-untyped-def]
    """One image: X_t of each label, X_s of each label (or one for all) → O_t, O_s."""
    labels, n_t, n_s = len(x_t), module.n_t, module.n_s
    y_t: list[list[Tensor]] = [[] for _ in range(labels)]
    y_s: list[list[Tensor]] = [[] for _ in x_s]
    for j in range(n_s):
        for p, x in enumerate(x_s):
            y_s[p].append(expert(module.shared, 0, j, x))  # Y_{s|s,j} = X_s E_{s,j}
    for i in range(labels):
        for j in range(n_t):
            for p, x in enumerate(x_s):
                y_s[p].append(expert(module.task, i, j, x))  # Y_{s|t_i,j} = X_s E_{t_i,j}
            y_t[i].append(expert(module.task, i, j, x_t[i]))  # Y_{t_i|t_i,j} = X_{t_i} E_{t_i,j}
    for j in range(n_s):
        for i in range(labels):
            seen = x_t[i] if module.reads == "own" else x_s[min(i, len(x_s) - 1)]
            y_t[i].append(expert(module.shared, 0, j, seen))  # Y_{t_i|s,j} = X_{t_i} E_{s,j}
    o_s = []
    if module.shared_branch:
        for p, x in enumerate(x_s):
            a = softmax(expert(module.shared_gate, 0, 0, x)) if len(y_s[p]) > 1 else torch.ones(1).to(x)
            o_s.append(sum(a[k] * sigma(y) for k, y in enumerate(y_s[p])))
    o_t = []
    for i in range(labels):
        raw = expert(module.gate, i, 0, x_t[i]) if len(y_t[i]) > 1 else torch.zeros(1).to(x_t[i])
        used = list(range(len(y_t[i])))
        if allowed is not None:  # its own experts, and of the shared ones those with the highest weights
            liked = sorted(range(n_t, n_t + n_s), key=lambda k: -float(raw[k]))[: int(allowed[i])]
            used = [*range(n_t), *sorted(liked)]
        a = softmax(raw[used])
        o_t.append(sum(a[m] * sigma(y_t[i][k]) for m, k in enumerate(used)))
    return o_t, o_s

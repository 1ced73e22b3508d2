"""Sparse experts and their losses, taken literally: every expert on every token, loops, and what was not chosen left out.

It takes weights by name, and what a router decided, and nothing else.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def perceptron(bank: nn.Module, i: int, x: Tensor) -> Tensor:
    """W₂ GELU(W₁ x + b₁) + b₂ of expert i, for one token."""
    h = x @ bank.weight1[i] + bank.bias1[i]
    h = h * 0.5 * (1 + torch.erf(h / math.sqrt(2)))
    return h @ bank.weight2[i] + bank.bias2[i]


def choose(probability: list[float], k: int) -> list[int]:
    """The k most probable experts, the most probable first."""
    left, chosen = list(range(len(probability))), []
    for _ in range(k):
        best = max(left, key=lambda i: probability[i])
        chosen.append(best)
        left.remove(best)
    return chosen


def has_room(
    expert: list[list[int]], weight: list[list[float]], experts: int, capacity: float | None, prioritised: bool
) -> list[list[bool]]:
    """For every token and choice whether the expert still has a slot: all first choices, then all second ones, …"""
    tokens = len(expert)
    if capacity is None or not tokens:
        return [[True] * len(row) for row in expert]
    k = len(expert[0])
    slots = math.ceil(capacity * tokens * k / experts)
    turn = list(range(tokens))
    if prioritised:
        turn.sort(key=lambda t: -max(weight[t]))  # Python's sort keeps the order of equals
    used, room = [0] * experts, [[False] * k for _ in expert]
    for choice in range(k):
        for t in turn:
            i = expert[t][choice]
            if used[i] < slots:
                used[i] += 1
                room[t][choice] = True
    return room


def mixture(
    outputs: list[list[Tensor]], expert: list[list[int]], weight: Tensor, room: list[list[bool]]
) -> list[Tensor]:
    """y of each token from outputs[t][i] of every expert on it: Σ R(x)_i f_i(x), the rest masked."""
    y = []
    for t, row in enumerate(outputs):
        total = torch.zeros_like(row[0])
        for i, output in enumerate(row):
            mask = torch.zeros((), dtype=output.dtype)
            for choice, chosen in enumerate(expert[t]):
                if chosen == i and room[t][choice]:
                    mask = mask + weight[t, choice]
            total = total + mask * output
        y.append(total)
    return y


def cv_squared(x: list[Tensor]) -> Tensor:
    mean = sum(x) / len(x)
    return sum((v - mean) ** 2 for v in x) / len(x) / mean**2


def importance(logits: Tensor) -> Tensor:
    """CV² of the sum over tokens of softmax(clean logits)."""
    tokens, experts = logits.shape
    imp = [torch.zeros((), dtype=logits.dtype) for _ in range(experts)]
    for t in range(tokens):
        total = sum(torch.exp(logits[t, i]) for i in range(experts))
        for i in range(experts):
            imp[i] = imp[i] + torch.exp(logits[t, i]) / total
    return cv_squared(imp)


def load(logits: list[list[float]], noisy: list[list[float]], sigma: float, k: int) -> float:
    """CV² of the mean over tokens of P = 1 − Φ((k-th highest noisy logit − clean logit) / σ)."""
    tokens, experts = len(logits), len(logits[0])
    mean = [0.0] * experts
    for t in range(tokens):
        threshold = sorted(noisy[t], reverse=True)[k - 1]
        for i in range(experts):
            z = (threshold - logits[t][i]) / sigma
            phi = 0.5 * (1 + math.erf(z / math.sqrt(2)))
            mean[i] += (1 - phi) / tokens
    return float(cv_squared([torch.tensor(m, dtype=torch.float64) for m in mean]))

"""The router of V-MoE: which k experts see a token, and with what weight; one for each task, or one for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manylabel.core.per_task import PerTaskParameters
from manylabel.error import ConfigError
from manylabel.require import require
from manylabel.suggest import closest

EVERY = "every"  # the one set of weights of a task-agnostic router


@dataclass(frozen=True)
class Routing:
    """What a router decided for T tokens; choices in falling order of weight."""

    expert: Tensor  # [T, k] int64
    weight: Tensor  # [T, k]
    probability: Tensor  # [T, E] softmax of the clean logits
    logits: Tensor  # [T, E] clean
    noisy: Tensor  # [T, E] by which the experts were chosen; the clean ones in evaluation
    noise: float  # its standard deviation σ

    @property
    def k(self) -> int:
        return self.expert.shape[1]

    @property
    def experts(self) -> int:
        return self.probability.shape[1]


class Router(nn.Module):
    """R_j(x) = TopK(softmax(g_j(x) + ε), k) with g_j linear without bias, ε ~ N(0, σ²) in training, σ = noise / E.

    `per_task=False` is the task-agnostic router: one g for all tasks. With `renormalise` the k weights add up to 1; at
    k = 1 they then say nothing, and only the balance losses teach the router. A task's weights have a gradient only in
    steps with that task, so distributed training must look for unused parameters unless every step has all tasks.
    """

    def __init__(
        self,
        dim: int,
        experts: int,
        tasks: Sequence[str],
        per_task: bool = True,
        noise: float = 1.0,
        renormalise: bool = False,
    ) -> None:
        super().__init__()
        require(experts >= 1, "experts", experts, "1 or more")
        require(len(tasks) >= 1, "tasks", tasks, "one name or more")
        require(0 <= noise < float("inf"), "router noise", noise, "0 or more")
        self.experts, self.tasks, self.per_task = experts, tuple(tasks), per_task
        self.noise, self.renormalise = noise, renormalise
        self.gate = PerTaskParameters() if per_task else nn.ParameterDict()
        for name in self.tasks if per_task else (EVERY,):
            free = "." not in name and not hasattr(self.gate, name)
            require(
                free, "a task's name", name, "given once, without dots, and not a word that torch's dictionaries use"
            )
            self.gate[name] = nn.Parameter(torch.empty(experts, dim))
            std = dim**-0.5  # logits of normalised tokens begin near N(0, 1), as V-MoE's do
            nn.init.trunc_normal_(self.gate[name], std=std, a=-2 * std, b=2 * std)

    def forward(self, x: Tensor, task: str, k: int) -> Routing:
        """Tokens [..., D], all of one task; k may differ from call to call."""
        require(1 <= k <= self.experts, f"k of task {task!r}", k, f"from 1 to the {self.experts} experts there are")
        g = self._gate(task)  # [E, D]
        precise = torch.promote_types(g.dtype, torch.float32)
        with torch.autocast(x.device.type, enabled=False):  # rounding must not choose the experts
            logits = F.linear(x.flatten(0, -2).to(precise), g.to(precise))  # [T, E]
        sigma = self.noise / self.experts if self.training else 0.0
        noisy = logits + sigma * torch.randn_like(logits) if sigma else logits
        weight, expert = noisy.softmax(dim=-1).topk(k)  # [T, k]
        if self.renormalise:
            weight = weight / weight.sum(dim=-1, keepdim=True)
        return Routing(expert, weight, logits.softmax(dim=-1), logits, noisy, sigma)

    def _gate(self, task: str) -> Tensor:
        if task not in self.tasks:
            raise ConfigError(f"no router for task {task!r}{closest(task, self.tasks)}")
        gate: Tensor = self.gate[task if self.per_task else EVERY]
        return gate

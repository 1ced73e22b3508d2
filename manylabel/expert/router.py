"""The router of V-MoE: which k experts see a token, and with what weight; one for each task, or one for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manylabel.core.per_task import PerTask, PerTaskParameters
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
    hidden: Tensor | None = None  # [T, D] what the router's last layer reads

    @property
    def k(self) -> int:
        return self.expert.shape[1]

    @property
    def experts(self) -> int:
        return self.probability.shape[1]


class Router(nn.Module):
    """R_j(x) = TopK(softmax(g_j(x) + ε), k) with g_j linear without bias, ε ~ N(0, σ²) in training, σ = noise / E.

    Of several `layers` g_j(x) = W GELU(… GELU(W₁ x + b₁) …). `kind`: a g for each task; agnostic: one g for all tasks;
    conditioned: one g of [x, the task as one of T], as M³ViT has it. With `renormalise` the k weights add up to 1; at
    k = 1 they then say nothing, and only the balance losses teach the router. A task's weights have a gradient only in
    steps with that task, so distributed training must look for unused parameters unless every step has all tasks.
    """

    def __init__(
        self,
        dim: int,
        experts: int,
        tasks: Sequence[str],
        kind: Literal["task", "agnostic", "conditioned"] = "task",
        noise: float = 1.0,
        renormalise: bool = False,
        layers: int = 1,
    ) -> None:
        super().__init__()
        require(experts >= 1, "experts", experts, "1 or more")
        require(len(tasks) >= 1, "tasks", tasks, "one name or more")
        require(0 <= noise < float("inf"), "router noise", noise, "0 or more")
        self.experts, self.tasks, self.kind = experts, tuple(tasks), kind
        self.noise, self.renormalise = noise, renormalise
        self.gate = PerTaskParameters() if kind == "task" else nn.ParameterDict()
        reads = dim + len(self.tasks) if kind == "conditioned" else dim
        whose = self.tasks if kind == "task" else (EVERY,)
        for name in whose:
            free = "." not in name and not hasattr(self.gate, name)
            require(
                free, "a task's name", name, "given once, without dots, and not a word that torch's dictionaries use"
            )
            width = reads if layers == 1 else dim
            self.gate[name] = nn.Parameter(torch.empty(experts, width))
            std = width**-0.5  # logits of normalised tokens begin near N(0, 1), as V-MoE's do
            nn.init.trunc_normal_(self.gate[name], std=std, a=-2 * std, b=2 * std)
        self.before: nn.ModuleDict | None = None  # layers before the last
        if layers > 1:
            deep = {name: _layers(reads, dim, layers - 1) for name in whose}
            self.before = PerTask(deep) if kind == "task" else nn.ModuleDict(deep)

    def forward(self, x: Tensor, task: str, k: int) -> Routing:
        """Tokens [..., D], all of one task; k may differ from call to call."""
        require(1 <= k <= self.experts, f"k of task {task!r}", k, f"from 1 to the {self.experts} experts there are")
        if task not in self.tasks:
            raise ConfigError(f"no router for task {task!r}{closest(task, self.tasks)}")
        whose = task if self.kind == "task" else EVERY
        g: Tensor = self.gate[whose]  # [E, D]
        precise = torch.promote_types(g.dtype, torch.float32)
        with torch.autocast(x.device.type, enabled=False):  # rounding must not choose the experts
            h = x.flatten(0, -2).to(precise)  # [T, D]
            if self.kind == "conditioned":
                which = F.one_hot(torch.tensor(self.tasks.index(task), device=x.device), len(self.tasks))
                h = torch.cat([h, which.to(precise).expand(len(h), -1)], dim=1)  # [T, D + number of tasks]
            if self.before is not None:
                h = self.before[whose](h.to(g.dtype)).to(precise)
            logits = F.linear(h, g.to(precise))  # [T, E]
        sigma = self.noise / self.experts if self.training else 0.0
        noisy = logits + sigma * torch.randn_like(logits) if sigma else logits
        weight, expert = noisy.softmax(dim=-1).topk(k)  # [T, k]
        if self.renormalise:
            weight = weight / weight.sum(dim=-1, keepdim=True)
        hidden = None if self.training else h  # it is looked at afterwards, and would be kept for nothing
        return Routing(expert, weight, logits.softmax(dim=-1), logits, noisy, sigma, hidden)


def _layers(first: int, width: int, count: int) -> nn.Sequential:
    parts: list[nn.Module] = []
    for number in range(count):
        parts += [nn.Linear(width if number else first, width), nn.GELU()]
    return nn.Sequential(*parts)

"""Parts that belong to one task each, inside a network that tasks share: whoever holds them says so by their type."""

from __future__ import annotations

from torch import nn


class PerTask(nn.ModuleDict):
    """A module for each task, by its name."""


class PerTaskParameters(nn.ParameterDict):
    """A parameter for each task, by its name."""


def owners(model: nn.Module) -> dict[str, str]:
    """Parameter → the task that it belongs to; those that are not here are shared."""
    found: dict[str, str] = {}
    for place, module in model.named_modules():
        if not isinstance(module, (PerTask, PerTaskParameters)):
            continue
        before = f"{place}." if place else ""
        for name, _ in module.named_parameters():
            found[f"{before}{name}"] = name.partition(".")[0]
    return found

"""What a part of a model must keep, looked at while it runs: nothing is written into it, and no hook is put on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from manylabel.error import ConfigError


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """An error names the first thing that a pass inside this block leaves in the model."""
    before = {name: _state(module) for name, module in model.named_modules()}
    yield
    for name, module in model.named_modules():
        now, then = _state(module), before.get(name, {})
        changed = [key for key in now.keys() | then.keys() if now.get(key) != then.get(key)]
        if changed:
            where = f"{name or 'the model'} ({type(module).__name__})"
            raise ConfigError(
                f"{where} changes its {min(changed)!r} during a pass in evaluation; a model must answer for many threads: "
                "give what happened on the way to the trace, and keep nothing"
            )


def _state(module: nn.Module) -> dict[str, tuple[Any, ...]]:
    """Which objects a module holds by name; of tensors also how often they were written to."""
    held: dict[str, tuple[Any, ...]] = {}
    for key, value in vars(module).items():
        if isinstance(value, dict):  # parameters, buffers, modules, hooks
            held |= {f"{key}.{name}": _identity(one) for name, one in value.items()}
        else:
            held[key] = _identity(value)
    return held


def _identity(value: Any) -> tuple[Any, ...]:
    if isinstance(value, Tensor):
        return id(value), value._version if not value.is_inference() else 0
    if isinstance(value, (list, tuple, set)):
        return id(value), *(_identity(one) for one in value)
    return (value,) if isinstance(value, (bool, int, float, str, type(None))) else (id(value),)

"""Convolutions that train faster on a CPU, with the same weights and the same numbers.

A 1×1 convolution is a matrix product; said as one it runs, in channels-last layout, at the speed of the product, also
in bfloat16, and torch does not meet the backward pass in which its strided form crashes there. Depthwise convolutions
have no quick backward pass in bfloat16: they stay in float32.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn.functional import linear


class Pointwise(nn.Conv2d):
    """A 1×1 convolution as a matrix product over places."""

    def forward(self, x: Tensor) -> Tensor:
        rows, columns = self.stride
        x = x[:, :, ::rows, ::columns] if (rows, columns) != (1, 1) else x
        return linear(x.permute(0, 2, 3, 1), self.weight[:, :, 0, 0], self.bias).permute(0, 3, 1, 2)


@lru_cache
def _in_float32(kind: type[nn.Conv2d]) -> type[nn.Conv2d]:
    """The same kind of convolution, without mixed precision."""

    class InFloat32(kind):  # type: ignore[valid-type, misc]
        def forward(self, x: Tensor) -> Tensor:
            with torch.autocast("cpu", enabled=False):
                return super().forward(x.float())

    return InFloat32


def quicken(body: nn.Module) -> None:
    """Change the trained convolutions of a network on a CPU; its weights keep their names."""
    for module in body.modules():
        if not isinstance(module, nn.Conv2d) or not module.weight.requires_grad:
            continue
        plain = type(module) is nn.Conv2d and module.groups == 1 and module.padding in ((0, 0), "valid")
        if plain and module.kernel_size == (1, 1):
            module.__class__ = Pointwise
        elif module.groups > 1:
            module.__class__ = _in_float32(type(module))  # type: ignore[arg-type]


def native_bfloat16() -> bool:
    """Whether this CPU computes with bfloat16 by itself, so that it is faster and not slower."""
    capable = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(capable and capable())

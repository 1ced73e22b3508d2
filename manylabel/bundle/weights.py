"""Weights as anybody may have written them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch import Tensor

from manylabel.error import BundleError


def check_weights(weights: Mapping[str, Tensor], where: str, endless: Collection[str] = ()) -> None:
    """Stop at a weight that is no number, or at an infinite one, which only `endless` tensors may hold."""
    for name, tensor in weights.items():
        if not tensor.is_floating_point():
            continue
        values = tensor.float() if tensor.element_size() < 2 else tensor  # torch cannot ask 8 bits
        odd = torch.isnan(values) if name in endless else ~torch.isfinite(values)
        if odd.any():
            raise BundleError(f"{where}, {name}: {int(odd.sum())} of {tensor.numel()} values are NaN or infinite")
        if name.endswith("running_var") and (values < 0).any():
            raise BundleError(f"{where}, {name}: a variance cannot be below 0")

"""What a network may take while it is built from a stranger's settings: about as much as the weights that came with it."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from manylabel.error import BundleError
from manylabel.storage.plain_file import MB

SPARE_BYTES = 100 * MB  # a classifier of 21 000 labels, which timm makes before we take it off
GROWTH = 3  # beside so many times the weights
SPARE_MAKES = 5_000
MAKES = 50  # new tensors for each that the weights hold


class Allowance(TorchDispatchMode):
    """Settings of a kilobyte may ask for a network of terabytes, or of a billion layers. Inside this block such a network is
    an error as soon as it asks for more tensors than the weights could fill, before the memory is taken."""

    def __init__(self, weights: dict[str, torch.Tensor], pixels: int = 0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        own = sum(tensor.numel() * tensor.element_size() for tensor in weights.values())
        self.bytes = SPARE_BYTES + GROWTH * own + 16 * pixels
        self.makes = SPARE_MAKES + MAKES * len(weights)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not any(isinstance(each, torch.Tensor) for each in (*args, *kwargs.values())):
            size = args[0] if args and isinstance(args[0], (list, tuple)) else kwargs.get("size", ())
            if all(isinstance(side, int) for side in size):
                self._take(math.prod(size) * 4)
        return func(*args, **kwargs)

    def _take(self, size: int) -> None:
        self.bytes -= size
        self.makes -= 1
        if self.bytes < 0 or self.makes < 0:
            raise BundleError("its settings ask for a far larger network than its weights are of")

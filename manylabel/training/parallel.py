"""Several processes that train one model: their gradients are averaged by hand, and their buffers kept equal.

torch's own wrapper expects one pass of the whole model in each step; here every task's pass uses a part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

BUCKET = 25_000_000  # bytes that are sent at once


def average_gradients(parameters: Iterable[nn.Parameter], processes: int) -> None:
    """The mean over the processes; a parameter that got no gradient here counts with zero."""
    if processes == 1:
        return
    gradients = []
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        gradients.append(parameter.grad)
    for bucket in _buckets(gradients):
        flat = _flat(bucket)
        torch.distributed.all_reduce(flat)
        _spread(flat / processes, bucket)


@torch.no_grad()
def share_buffers(model: nn.Module, processes: int) -> None:
    """What trained norms have counted, and other state that is no weight, as the main process has it."""
    if processes == 1:
        return
    moving = [buffer for module in model.modules() if module.training for buffer in module.buffers(recurse=False)]
    for bucket in _buckets([buffer for buffer in moving if buffer.dtype != torch.bool]):
        flat = _flat(bucket)
        torch.distributed.broadcast(flat, 0)
        _spread(flat, bucket)


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _spread(flat: Tensor, tensors: Sequence[Tensor]) -> None:
    for tensor, part in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))


def _buckets(tensors: Sequence[Tensor]) -> Iterable[list[Tensor]]:
    """Neighbours of one type, as many as are sent together."""
    bucket: list[Tensor] = []
    size = 0
    for tensor in tensors:
        if bucket and (tensor.dtype != bucket[0].dtype or size > BUCKET):
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += tensor.numel() * tensor.element_size()
    if bucket:
        yield bucket

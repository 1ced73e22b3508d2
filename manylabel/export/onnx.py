"""ONNX: any of our modules as a file that runs without torch, compared with the original before it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from manylabel.atomic import replacing
from manylabel.error import ManylabelError
from manylabel.features import FINAL, Features
from manylabel.onnx_file import need_onnx, quiet_export

TOLERANCE = 1e-4  # on logits
BATCHES = (1, 5)


class OfStages(nn.Module):
    """A head as a function of its stages' maps, by name."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, stages: dict[str, Tensor]) -> Tensor:
        return self.head(Features(stages))


def export_head(head: nn.Module, stages: Mapping[str, Tensor], path: Path) -> float:
    """A head with inputs named after its stages → `path`; `stages` are examples [B, C, H, W]. See `export_onnx`.

    `final` is always among them: how fine an earlier stage may be is measured by it.
    """
    needed = dict.fromkeys((*head.stages, FINAL))  # type: ignore[misc]
    return export_onnx(OfStages(head), {name: stages[name] for name in needed}, path)


def export_onnx(module: nn.Module, inputs: Mapping[str, Tensor], path: Path) -> float:
    """`module(stages=…)`, called with a mapping of these named tensors, as ONNX with any batch size.

    Returns the largest difference to torch over batches of 1 and 5; above the tolerance nothing is written.
    """
    need_onnx()
    import onnxruntime

    module.eval()
    batch = torch.export.Dim("batch")
    with replacing(path) as temporary, quiet_export():
        torch.onnx.export(
            module,
            (),
            str(temporary),
            kwargs={"stages": dict(inputs)},
            input_names=list(inputs),
            output_names=["logits"],
            dynamic_shapes={"stages": {name: {0: batch} for name in inputs}},
            dynamo=True,
            external_data=False,
        )
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(temporary), options, providers=["CPUExecutionProvider"])
        gap = max(_gap(module, session, _resized(inputs, count)) for count in BATCHES)
        if not gap <= TOLERANCE:
            raise ManylabelError(f"the ONNX model gives logits that differ by {gap:.2g}; it is not kept")
    return gap


def _gap(module: nn.Module, session: Any, inputs: Mapping[str, Tensor]) -> float:
    with torch.inference_mode():
        expected = module(stages=dict(inputs)).numpy()
    (logits,) = session.run(None, {entry.name: inputs[entry.name].numpy() for entry in session.get_inputs()})
    return float(np.abs(logits - expected).max())


def _resized(inputs: Mapping[str, Tensor], batch: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(batch)
    return {name: torch.randn(batch, *example.shape[1:], generator=generator) for name, example in inputs.items()}

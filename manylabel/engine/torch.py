"""The model itself as an engine."""

from __future__ import annotations

import numpy as np
import torch

from manylabel.engine.outputs import PIXELS, Outputs


class TorchEngine:
    """On the device where the model is."""

    name = "torch"

    def __init__(self, outputs: Outputs, device: torch.device | str = "cpu") -> None:
        self.outputs = outputs.eval()
        self.device = device

    @torch.inference_mode()
    def __call__(self, pixels: np.ndarray) -> dict[str, np.ndarray]:
        found = self.outputs({PIXELS: torch.from_numpy(pixels).to(self.device)})
        return {name: value.float().cpu().numpy() for name, value in zip(self.outputs.names, found, strict=True)}

"""Between the network's square and the photo: where the photo lies in the square, for all three ways of `resize`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import grid_sample

from manylabel.preprocess import Preprocess


@dataclass(frozen=True)
class Frame:
    """The photo's rectangle in the square, whose sides are 0 to 1; beyond these lies what a crop cut off."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def of(cls, preprocess: Preprocess, width: int, height: int) -> Frame:
        """Of a photo of this size, as `data.transform.Square` puts it there."""
        if preprocess.resize == "crop":
            side = preprocess.crop_share * min(width, height)  # pixels of the photo that fill the square
            x, y = width / side / 2, height / side / 2
            return cls(0.5 - x, 0.5 - y, 0.5 + x, 0.5 + y)
        if preprocess.resize == "pad":
            size, longer = preprocess.size, max(width, height)
            w, h = (max(1, round(side * size / longer)) for side in (width, height))
            x, y = round((size - w) * 0.5), round((size - h) * 0.5)
            return cls(x / size, y / size, (x + w) / size, (y + h) / size)
        return cls(0.0, 0.0, 1.0, 1.0)

    def spread(self, maps: np.ndarray, width: int, height: int) -> np.ndarray:
        """Maps over the square [n, rows, columns] as maps over the photo [n, height, width]; 0 where a crop cut it off."""
        x = self.left + (torch.arange(width) + 0.5) / width * (self.right - self.left)
        y = self.top + (torch.arange(height) + 0.5) / height * (self.bottom - self.top)
        places = torch.stack(torch.meshgrid(2 * x - 1, 2 * y - 1, indexing="xy"), dim=-1)  # [height, width, 2], −1 … 1
        values = torch.from_numpy(np.ascontiguousarray(maps, np.float32))[None]
        spread = grid_sample(values, places[None], mode="bicubic", padding_mode="border", align_corners=False)[0]
        seen = (places.abs() <= 1).all(dim=-1)
        return (spread.clamp(min=0) * seen).numpy()

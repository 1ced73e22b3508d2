"""Representation summarisation (RS): the map of a stage [B, C_l, H, W] as one vector [B, C] of the backbone's width."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import pad

from manylabel.error import ConfigError


class Summary(nn.Module):
    """Built as `cls(channels, width, hidden, queries)`."""

    def __init__(self, channels: int, width: int, hidden: int, queries: int) -> None:
        super().__init__()

    def forward(self, stage: Tensor) -> Tensor:
        raise TypeError(f"{type(self).__name__} defines no forward pass")


def layers(channels: int, width: int, hidden: int) -> nn.Module:
    """MLP of Eq. 2; as released it is one linear layer without bias."""
    if not hidden:
        return nn.Linear(channels, width, bias=False)
    return nn.Sequential(nn.Linear(channels, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, width))


class Mean(Summary):
    """ẑ_l = MLP(Pool2d(z_l))  (Eq. 2)"""

    def __init__(self, channels: int, width: int, hidden: int, queries: int) -> None:
        super().__init__(channels, width, hidden, queries)
        self.mlp = layers(channels, width, hidden)

    def forward(self, stage: Tensor) -> Tensor:
        summary: Tensor = self.mlp(stage.mean(dim=(2, 3)))
        return summary


class Attention(Summary):
    """The same with weighted means: each query looks where its key is alike, so that a small object is not averaged
    away. Queries of zero make all places alike: it begins as the mean."""

    def __init__(self, channels: int, width: int, hidden: int, queries: int) -> None:
        super().__init__(channels, width, hidden, queries)
        self.look = nn.Conv2d(channels, queries, 1, bias=False)
        nn.init.zeros_(self.look.weight)
        self.mlp = layers(queries * channels, width, hidden)

    def forward(self, stage: Tensor) -> Tensor:
        weights = self.look(stage).flatten(2).softmax(dim=2)  # [B, Q, H·W]
        summary: Tensor = self.mlp((weights @ stage.flatten(2).transpose(1, 2)).flatten(1))  # [B, Q·C_l] → [B, C]
        return summary


class Pool1d(Summary):
    """ẑ_l = Pool1d(z'_l) with z'_l the flattened tokens (Eq. 3): means of n − C + 1 neighbours, nothing to learn."""

    def __init__(self, channels: int, width: int, hidden: int, queries: int) -> None:
        super().__init__(channels, width, hidden, queries)
        self.width = width

    def forward(self, stage: Tensor) -> Tensor:
        flat = stage.flatten(2).transpose(1, 2).flatten(1)  # [B, H·W·C_l], token after token
        kernel = flat.shape[1] - self.width + 1
        if kernel < 1:
            raise ConfigError(
                f"neck.summary=pool1d: a stage of {flat.shape[1]} numbers cannot be pooled to {self.width}; "
                "take an earlier stage or another summary"
            )
        before = pad(
            flat.double().cumsum(dim=1), (1, 0)
        )  # Σ of all numbers before each: a window is a difference of two
        return ((before[:, kernel:] - before[:, :-kernel]) / kernel).to(flat.dtype)  # [B, C]

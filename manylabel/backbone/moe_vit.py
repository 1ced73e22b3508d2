"""A plain vision transformer for several tasks: what they share, and what each has of its own (AdaMV-MoE, Fig. 2).

    x = Patches_j(image) + position_j        of task j
    x = x + Attention(LN(x))                 in every block
    x = x + MLP(LN(x))                       in a dense block
    x = x + Σ R_j(LN(x))_i f_i(LN(x))        in a sparse one: k_j of E experts, chosen by the task's router

Attention, norms and experts are shared. With a stem (`stem.py`), Patches_j reads the maps of a pre-trained network instead
of pixels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from timm.layers import Attention, DropPath, Mlp, resample_abs_pos_embed
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from manylabel.backbone.stem import Stem
from manylabel.backbone.taps import FORMS, sharing_cost, turn_of
from manylabel.backbone.vit_size import VitSize, sparse_layers
from manylabel.config import ExpertsConfig
from manylabel.core.per_task import PerTask
from manylabel.core.trace import Trace
from manylabel.expert import MLPBank, Router, Routing, SparseExperts, importance_loss, load_loss, z_loss

SPREAD = 0.01  # how far experts that begin as the same MLP are apart, as a share of the spread of its weights


Routes = dict[int, Routing]  # what the routers decide in one pass, by the number of the layer


class Block(nn.Module):
    """One transformer layer, dense."""

    def __init__(self, size: VitSize, window: float, drop_path: float) -> None:
        super().__init__()
        self.window = window
        self.norm1 = nn.LayerNorm(size.width, eps=1e-6)
        self.attn = Attention(size.width, size.heads, qkv_bias=True)
        self.norm2 = nn.LayerNorm(size.width, eps=1e-6)
        self.mlp: nn.Module = Mlp(size.width, size.hidden)
        self.drop_path = DropPath(drop_path)

    def forward(self, x: Tensor, task: str, k: int, routes: Routes) -> Tensor:
        """Tokens on their grid; a sparse layer adds to `routes`. [B, h, w, D] → [B, h, w, D]"""
        x = x + self.drop_path(self.look(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))

    def look(self, x: Tensor) -> Tensor:
        """Attention inside windows, or over the whole map."""
        b, h, w, d = x.shape
        rows, columns = math.ceil(self.window * h), math.ceil(self.window * w)
        if (rows, columns) == (h, w):
            return self.attn(x.flatten(1, 2)).view_as(x)
        down, right = -h % rows, -w % columns
        padded = nn.functional.pad(x, (0, 0, 0, right, 0, down))
        tiles = (
            padded.unflatten(1, (-1, rows)).unflatten(3, (-1, columns)).transpose(2, 3)
        )  # [B, m, n, rows, columns, D]
        m, n = tiles.shape[1:3]
        # Padding is no place: keys of it are masked, so a window at the edge looks at what is there and nothing else.
        there = torch.ones(1, h, w, dtype=torch.bool, device=x.device)
        there = nn.functional.pad(there, (0, right, 0, down)).unflatten(1, (-1, rows)).unflatten(3, (-1, columns))
        mask = there.transpose(2, 3).flatten(3).flatten(1, 2)  # [1, m·n, P]
        mask = mask.expand(b, -1, -1).reshape(b * m * n, 1, 1, -1) if down or right else None
        y = self.attn(tiles.reshape(b * m * n, rows * columns, d), attn_mask=mask)
        y = y.view(b, m, n, rows, columns, d).transpose(2, 3).reshape(b, m * rows, n * columns, d)
        return y[:, :h, :w]


class SparseBlock(Block):
    """One transformer layer whose MLP is a choice of experts."""

    def __init__(
        self, size: VitSize, window: float, drop_path: float, number: int, experts: ExpertsConfig, tasks: Sequence[str]
    ) -> None:
        super().__init__(size, window, drop_path)
        self.number = number
        self.router = Router(
            size.width,
            experts.count,
            tasks,
            experts.router,
            noise=experts.noise,
            renormalise=experts.renormalise,
            layers=experts.router_layers,
        )
        bank = MLPBank(experts.count, size.width, experts.hidden or size.hidden)
        if experts.alike:
            bank.begin_alike(SPREAD)
        self.mlp = SparseExperts(bank, experts.capacity or None, experts.priority, experts.static)

    def forward(self, x: Tensor, task: str, k: int, routes: Routes) -> Tensor:
        x = x + self.drop_path(self.look(self.norm1(x)))
        z = self.norm2(x)
        routing = routes[self.number] = self.router(z, task, k)
        return x + self.drop_path(self.mlp(z, routing))


class TaskEmbedding(nn.Module):
    """A task's own patches and positions; positions are resampled where its images have another size.

    Of an image (3 channels), or of the maps of a stem, where a patch is one place.
    """

    def __init__(self, width: int, patch: int, grid: tuple[int, int], channels: int = 3) -> None:
        super().__init__()
        self.grid = grid
        self.patches = nn.Conv2d(channels, width, patch, patch)
        self.position = nn.Parameter(torch.empty(1, grid[0] * grid[1], width))
        nn.init.trunc_normal_(self.position, std=0.02)
        bound = 1 / math.sqrt(channels * patch**2)
        nn.init.trunc_normal_(self.patches.weight, std=bound)
        nn.init.zeros_(self.patches.bias)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] → [B, h, w, D]; what a patch does not fill is padded."""
        patch = self.patches.stride[0]
        x = nn.functional.pad(x, (0, -x.shape[-1] % patch, 0, -x.shape[-2] % patch))
        tokens = self.patches(x).permute(0, 2, 3, 1)
        grid = (tokens.shape[1], tokens.shape[2])
        position = self.position
        if grid != self.grid:
            position = resample_abs_pos_embed(position, list(grid), list(self.grid), num_prefix_tokens=0)
        return tokens + position.view(1, *grid, -1)


def stage_ends(layers: int) -> dict[str, int]:
    """stage1 … stage4: behind how many blocks each quarter of them ends."""
    return {f"stage{quarter}": math.ceil(layers * quarter / 4) for quarter in range(1, 5)}


class MoeViT(nn.Module):
    """images of a task → tokens on their grid; `k` experts of each token in the sparse layers."""

    def __init__(
        self,
        size: VitSize,
        patch: int,
        experts: ExpertsConfig,
        image_sizes: Mapping[str, int],
        drop_path: float = 0.0,
        stem: Stem | None = None,
    ) -> None:
        super().__init__()
        self.size, self.patch, self.stem, self.experts = size, patch, stem, experts
        tasks = list(image_sizes)
        grids = {task: math.ceil(side / patch) for task, side in image_sizes.items()}
        read = (patch, 3) if stem is None else (1, stem.channels)
        self.embed = PerTask({t: TaskEmbedding(size.width, read[0], (g, g), read[1]) for t, g in grids.items()})
        self.sparse = sparse_layers(experts.where, size.layers) if experts.sharing == "experts" else ()
        windows = size.windows or (1.0,) * size.layers
        self.blocks = nn.ModuleList()
        block: Block
        for i in range(size.layers):
            drop = drop_path * i / max(size.layers - 1, 1)
            sparse = i in self.sparse
            block = SparseBlock(size, windows[i], drop, i, experts, tasks) if sparse else Block(size, windows[i], drop)
            self.blocks.append(block)
        self.norm = nn.LayerNorm(size.width, eps=1e-6)
        self.recompute = False  # keep no activations of blocks for the backward pass: slower, in less memory
        for linear in (m for m in self.blocks.modules() if isinstance(m, nn.Linear)):
            nn.init.xavier_uniform_(linear.weight)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)

    def forward(
        self, images: Tensor, task: str, k: int = 1, trace: Trace | None = None, costs_from: int = 0
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """[B, 3, H, W] → [B, h, w, D]; in training with what the routers, or layers of the task's own, cost: those from
        block number `costs_from` on."""
        routes: Routes = {}

        def through(layer: nn.Module, x: Tensor) -> Tensor:
            with turn_of(task):  # also when a layer is computed again for the backward pass
                y: Tensor = layer(x, task, k, routes)
            return y

        x = self.embed[task](images if self.stem is None else self.stem(images))
        for layer in self.blocks:
            if self.recompute and self.training:
                x = checkpoint(through, layer, x, use_reentrant=False)
            else:
                x = through(layer, x)
        if trace is not None and trace.routes is not None:
            trace.routes.update(routes)
        counted = {number: routing for number, routing in routes.items() if number >= costs_from}
        return self.norm(x), self._costs(counted, task) if self.training else {}

    def _costs(self, routes: Routes, task: str) -> dict[str, Tensor]:
        """What routers, or layers of a task's own, cost beside the task: summed over layers, weighed."""
        e = self.experts
        costs: dict[str, Tensor] = {}
        kinds = (("importance", importance_loss, e.importance), ("load", load_loss, e.load), ("z", z_loss, e.z_loss))
        with torch.autocast(self.norm.weight.device.type, enabled=False):
            for name, cost, weight in kinds:
                if weight and routes:
                    costs[name] = weight * torch.stack([cost(routing) for routing in routes.values()]).sum()
            if e.sharing in FORMS:
                costs["own_layers"] = e.taps_penalty * sharing_cost(self.blocks, task)
        return costs

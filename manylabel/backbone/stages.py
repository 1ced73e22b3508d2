"""Any timm model's features as named stages, whatever shape its family gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch import Tensor, nn

from manylabel.error import ConfigError
from manylabel.features import FINAL, Features
from manylabel.suggest import closest


class StageReader:
    """Reads the stages of a timm model; `channels` says which there are: stage1, stage2, …, final."""

    def __init__(self, body: Any, name: str) -> None:
        self.body = body
        self.name = name
        self.channels: dict[str, int] = {
            f"stage{i + 1}": info["num_chs"] for i, info in enumerate(getattr(body, "feature_info", []))
        }
        self.channels[FINAL] = body.num_features

    def select(self, stages: Iterable[str]) -> tuple[str, ...]:
        """These stages and `final`, in the order of the model."""
        wanted = set(stages)
        for stage in wanted:
            if stage not in self.channels:
                raise ConfigError(f"{self.name} has no stage {stage!r}{closest(stage, self.channels)}")
        return tuple(name for name in self.channels if name == FINAL or name in wanted)

    def read(self, x: Tensor, stages: Sequence[str]) -> Features:
        """Features of normalised images [B, 3, H, W]."""
        size = (x.shape[-2], x.shape[-1])
        earlier = [name for name in stages if name != FINAL]
        if not earlier:
            return self._final(self.body.forward_features(x), {}, size)
        final, maps = self._with_stages(x, [int(name.removeprefix("stage")) - 1 for name in earlier])
        return self._final(final, dict(zip(earlier, maps, strict=True)), size)

    def _final(self, x: Tensor, stages: dict[str, Tensor], size: tuple[int, int]) -> Features:
        """timm's last features are a map, a map with channels last, or tokens behind class and register tokens."""
        if not isinstance(x, Tensor) or x.ndim not in (3, 4):
            raise ConfigError(f"{self.name} gives neither a map nor tokens; choose another backbone")
        if x.ndim == 4:
            stages[FINAL] = self._map(x, self.channels[FINAL])
            return Features(stages)
        extra = getattr(self.body, "num_prefix_tokens", 0)
        if not extra and round((x.shape[1] - 1) ** 0.5) ** 2 == x.shape[1] - 1:
            extra = 1  # a class token that the model does not declare
        grid = self._grid(x.shape[1] - extra, size)
        stages[FINAL] = x[:, extra:].transpose(1, 2).unflatten(2, grid)  # [B, C, H, W]
        return Features(stages, x[:, :extra] if extra else None)

    def _grid(self, tokens: int, size: tuple[int, int]) -> tuple[int, int]:
        """How the patch tokens of an image of this size lie: (rows, columns)."""
        embed: Any = getattr(self.body, "patch_embed", None)
        grid = embed.dynamic_feat_size(size) if hasattr(embed, "dynamic_feat_size") else (round(tokens**0.5),) * 2
        if grid[0] * grid[1] != tokens:
            raise ConfigError(f"{self.name} gives {tokens} tokens for {size[0]}×{size[1]} pixels, which fill no grid")
        return grid[0], grid[1]

    @staticmethod
    def _map(x: Tensor, channels: int) -> Tensor:
        """[B, C, H, W] whatever the order of a model's maps is."""
        if x.shape[1] != channels and x.shape[-1] == channels:
            return x.permute(0, 3, 1, 2)
        return x

    def _with_stages(self, x: Tensor, indices: list[int]) -> tuple[Tensor, list[Tensor]]:
        if hasattr(self.body, "forward_intermediates"):
            final, maps = self.body.forward_intermediates(x, indices=indices, output_fmt="NCHW")
            return final, maps
        return self._hooked(x, indices)

    def _hooked(self, x: Tensor, indices: list[int]) -> tuple[Tensor, list[Tensor]]:
        """For timm models without forward_intermediates: listen at the modules that feature_info names."""
        caught: dict[int, Tensor] = {}

        def listener(index: int) -> Callable[..., None]:
            def catch(_module: nn.Module, _inputs: Any, output: Any) -> None:
                caught[index] = output[0] if isinstance(output, (tuple, list)) else output

            return catch

        infos = list(self.body.feature_info)
        hooks = [self.body.get_submodule(infos[i]["module"]).register_forward_hook(listener(i)) for i in indices]
        try:
            final = self.body.forward_features(x)
        finally:
            for hook in hooks:
                hook.remove()
        missing = [f"stage{i + 1}" for i in indices if i not in caught or caught[i].ndim != 4]
        if missing:
            raise ConfigError(f"{self.name} does not give {', '.join(missing)} as a map; use the final stage")
        return final, [self._map(caught[i], infos[i]["num_chs"]) for i in indices]

"""Any timm model's features as named stages, whatever shape its family gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, nn

from manylabel.error import ConfigError
from manylabel.features import ENTRY, FINAL, Features, find_stage


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
        wanted = {find_stage(stage, self.channels, "stages", self.name) for stage in stages}
        return tuple(name for name in self.channels if name == FINAL or name in wanted)

    def read(self, x: Tensor, stages: Sequence[str]) -> Features:
        """Features of normalised images [B, 3, H, W]."""
        size = (x.shape[-2], x.shape[-1])
        earlier = [name for name in stages if name != FINAL]
        if not earlier:
            return self._with_final(self.body.forward_features(x), {}, size)
        if hasattr(self.body, "forward_intermediates"):
            indices = [int(name.removeprefix("stage")) - 1 for name in earlier]
            final, maps = self.body.forward_intermediates(x, indices=indices, output_fmt="NCHW", stop_early=False)
            return self._with_final(final, dict(zip(earlier, maps, strict=True)), size)
        with self._listening(earlier) as heard:
            final = self.body.forward_features(x)
        return self._with_final(final, self._maps(heard, earlier, size), size)

    # --- in two parts: up to a stage, and on from there ---------------------------------------------------------------

    def enter(self, x: Tensor, cut: str, stages: Sequence[str]) -> Features:
        """The first part: ENTRY, what the module after stage `cut` takes, and those of `stages` that come before it."""
        before = self.before(cut, stages)
        with self._listening([*before, cut], last=cut) as heard, suppress(_Enough):
            self.body.forward_features(x)
        if not isinstance(heard.get(cut), Tensor):
            raise ConfigError(
                f"{self.name} gives no tensor at {cut}, so it cannot be trained from there; choose another"
            )
        size = (x.shape[-2], x.shape[-1])
        return Features({**self._maps(heard, before, size), ENTRY: heard[cut]})

    def go_on(self, features: Features, cut: str, stages: Sequence[str], size: tuple[int, int]) -> Features:
        """The second part: all of `stages` from what `enter` gave of images of this size.

        A blank image runs through the first part, whose result is then exchanged: that works for every family, and
        costs one image for a whole batch.
        """
        entry = features.stages[ENTRY]
        before = self.before(cut, stages)
        behind = [name for name in stages if name not in (*before, cut, FINAL)]
        exchange = self.module(cut).register_forward_hook(lambda *_: entry)
        try:
            with self._listening(behind) as heard:
                final = self.body.forward_features(entry.new_zeros(1, 3, *size))
        finally:
            exchange.remove()
        heard[cut] = entry
        maps = {name: features.stages[name] for name in before}
        maps |= self._maps(heard, [name for name in stages if name in (cut, *behind)], size)
        return self._with_final(final, maps, size)

    def before(self, cut: str, stages: Sequence[str]) -> list[str]:
        """Those of `stages` that come before the stage `cut`."""
        order = list(self.channels)
        return [name for name in stages if order.index(name) < order.index(cut)]

    # --- whatever shape a family gives its features -------------------------------------------------------------------

    def _with_final(self, x: Tensor, stages: dict[str, Tensor], size: tuple[int, int]) -> Features:
        """timm's last features are a map, a map with channels last, or tokens behind class and register tokens."""
        if not isinstance(x, Tensor) or x.ndim not in (3, 4):
            raise ConfigError(f"{self.name} gives neither a map nor tokens; choose another backbone")
        stages[FINAL], prefix = self._map(x, self.channels[FINAL], size)
        return Features(stages, prefix)

    def _map(self, x: Tensor, channels: int, size: tuple[int, int]) -> tuple[Tensor, Tensor | None]:
        """[B, C, H, W] of features in any order, and the tokens [B, P, C] that stand for no place, if there are any."""
        if x.ndim == 4:
            last = x.shape[1] != channels and x.shape[-1] == channels
            return (x.permute(0, 3, 1, 2) if last else x), None
        extra = getattr(self.body, "num_prefix_tokens", 0)
        if not extra and round((x.shape[1] - 1) ** 0.5) ** 2 == x.shape[1] - 1:
            extra = 1  # a class token that the model does not declare
        grid = self._grid(x.shape[1] - extra, size)
        return x[:, extra:].transpose(1, 2).unflatten(2, grid), x[:, :extra] if extra else None

    def _maps(self, heard: Mapping[str, Tensor], names: Sequence[str], size: tuple[int, int]) -> dict[str, Tensor]:
        missing = [name for name in names if name not in heard or heard[name].ndim not in (3, 4)]
        if missing:
            raise ConfigError(f"{self.name} does not give {', '.join(missing)} as a map; use the final stage")
        return {name: self._map(heard[name], self.channels[name], size)[0] for name in names}

    def _grid(self, tokens: int, size: tuple[int, int]) -> tuple[int, int]:
        """How the patch tokens of an image of this size lie: (rows, columns)."""
        embed: Any = getattr(self.body, "patch_embed", None)
        grid = embed.dynamic_feat_size(size) if hasattr(embed, "dynamic_feat_size") else (round(tokens**0.5),) * 2
        if grid[0] * grid[1] != tokens:
            raise ConfigError(f"{self.name} gives {tokens} tokens for {size[0]}×{size[1]} pixels, which fill no grid")
        return grid[0], grid[1]

    # --- hooks --------------------------------------------------------------------------------------------------------

    def module(self, stage: str) -> nn.Module:
        """The module whose output is this stage, as timm's feature_info names it."""
        name = list(self.body.feature_info)[int(stage.removeprefix("stage")) - 1]["module"]
        try:
            module: nn.Module = self.body.get_submodule(name)
        except AttributeError as error:
            raise ConfigError(
                f"{self.name} has no module {name!r} to look into at {stage}; use the final stage"
            ) from error
        return module

    @contextmanager
    def _listening(self, stages: Sequence[str], last: str | None = None) -> Iterator[dict[str, Tensor]]:
        """Collects what the modules of these stages give; ends the pass behind the stage `last`."""
        heard: dict[str, Tensor] = {}

        def listener(stage: str) -> Callable[..., None]:
            def listen(_module: nn.Module, _inputs: Any, output: Any) -> None:
                heard[stage] = output[0] if isinstance(output, (tuple, list)) and stage != last else output
                if stage == last and not torch.compiler.is_exporting():  # an export leaves unused parts out by itself
                    raise _Enough

            return listen

        hooks = [self.module(stage).register_forward_hook(listener(stage)) for stage in stages]
        try:
            yield heard
        finally:
            for hook in hooks:
                hook.remove()


class _Enough(Exception):
    """The part that was wanted has run."""

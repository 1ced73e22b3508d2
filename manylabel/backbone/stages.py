"""Any timm model's features as named stages, whatever shape its family gives them.

What a family does not hand out is heard by ears: hooks that are put on its modules once, when stages are selected, and
that listen only during a pass which asks them to, in the thread that asks. So a pass changes nothing in the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from manylabel.backbone.stride import merged_stages, strides_of
from manylabel.core.trace import Trace
from manylabel.error import ConfigError
from manylabel.features import ENTRY, FINAL, Features, find_stage


@dataclass
class Listening:
    """One pass that asks the ears of a model."""

    reader: StageReader
    stages: frozenset[str]  # whose outputs are wanted
    heard: dict[str, Tensor] = field(default_factory=dict)
    last: str | None = None  # the pass ends behind this stage
    instead: Mapping[str, Tensor] = field(default_factory=dict)  # what a stage gives in place of its own
    leaf: str | None = None  # a graph begins at this stage's output

    @property
    def asks(self) -> bool:
        return bool(self.stages or self.instead or self.leaf)


PASS: ContextVar[Listening | None] = ContextVar("manylabel_pass", default=None)


class Ear:
    """A hook behind the module of a stage."""

    def __init__(self, reader: StageReader, stage: str) -> None:
        self.reader, self.stage = reader, stage

    def __call__(self, _module: nn.Module, _inputs: Any, output: Any) -> Any:
        now, stage = PASS.get(), self.stage
        if now is None or now.reader is not self.reader:
            return None
        if stage in now.instead:
            return now.instead[stage]
        several = isinstance(output, (tuple, list))
        if stage == now.leaf:
            now.heard[stage] = (output[0] if several else output).detach().contiguous().requires_grad_()
            begun = now.heard[stage].clone()  # what follows may work in place
            return type(output)([begun, *output[1:]]) if several else begun
        if stage in now.stages:
            now.heard[stage] = output[0] if several and stage != now.last else output
        if stage == now.last and not torch.compiler.is_exporting():  # an export leaves unused parts out by itself
            raise _Enough
        return None


class StageReader:
    """Reads the stages of a timm model; `channels` says which there are: stage1, (merged1,) stage2, …, final."""

    def __init__(self, body: Any, name: str) -> None:
        self.body = body
        self.name = name
        self.merged = merged_stages(body)
        self.strides = strides_of(body, self.merged)
        self.channels: dict[str, int] = {}
        for i, info in enumerate(getattr(body, "feature_info", [])):
            if f"merged{i}" in self.merged:
                self.channels[f"merged{i}"] = info["num_chs"]
            self.channels[f"stage{i + 1}"] = info["num_chs"]
        self.channels[FINAL] = body.num_features
        self.ears: set[str] = set()
        self.hands_out = hasattr(body, "forward_intermediates")

    def select(self, stages: Iterable[str], cut: str | None = None) -> tuple[str, ...]:
        """These stages and `final`, in the order of the model; they can be read from now on, also in two parts."""
        wanted = {find_stage(stage, self.channels, "stages", self.name) for stage in stages} - {FINAL}
        for stage in wanted:
            if cut is not None or not self._is_handed_out(stage):
                self.listen_at(stage)
        if cut is not None:
            self.listen_at(cut)
        return tuple(name for name in self.channels if name == FINAL or name in wanted)

    def _is_handed_out(self, stage: str) -> bool:
        return self.hands_out and stage not in self.merged

    def listen_at(self, stage: str) -> None:
        """Put an ear behind this stage, once."""
        if stage not in self.ears:
            self.module(stage).register_forward_hook(Ear(self, stage))
            self.ears.add(stage)

    def read(self, x: Tensor, stages: Sequence[str], trace: Trace | None = None, task: str | None = None) -> Features:
        """Features of normalised images [B, 3, H, W] of a task."""
        return self._read(x, stages, trace=trace, task=task)[0]

    def read_from(
        self, x: Tensor, stages: Sequence[str], leaf: str, task: str | None = None
    ) -> tuple[Features, Tensor]:
        """The same, and the output of the stage `leaf` as its family has it, at which a graph begins."""
        features, heard = self._read(x, stages, leaf, task=task)
        if leaf not in heard:
            raise ConfigError(f"{self.name} shows nothing at {leaf}; use another stage, or final")
        return features, heard[leaf]

    def _read(
        self,
        x: Tensor,
        stages: Sequence[str],
        leaf: str | None = None,
        trace: Trace | None = None,
        task: str | None = None,
    ) -> tuple[Features, dict[str, Tensor]]:
        size = (x.shape[-2], x.shape[-1])
        earlier = [name for name in stages if name != FINAL]
        costs: dict[str, Tensor] = {}
        handed = [name for name in earlier if self._is_handed_out(name)]
        others = [name for name in earlier if name not in handed]
        maps: dict[str, Tensor] = {}
        with self._listening(others, leaf=leaf) as heard:
            if handed:
                indices = [int(name.removeprefix("stage")) - 1 for name in handed]
                final, given = self.body.forward_intermediates(x, indices=indices, output_fmt="NCHW", stop_early=False)
                maps = dict(zip(handed, given, strict=True))
            else:
                final, costs = self._final(x, trace, task=task)
        maps |= self._maps(heard, others, size)
        return self._with_final(final, {name: maps[name] for name in earlier}, size, costs), heard

    def _final(
        self, x: Tensor, trace: Trace | None = None, since: str | None = None, task: str | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The final stage as its family has it, and what the network costs beside its task."""
        costs: dict[str, Tensor] = {}
        own: dict[str, Any] = {"task": task} if getattr(self.body, "per_task", False) else {}
        if getattr(self.body, "traced", False):
            own |= {"trace": trace, "costs": costs, "since": since}
        return self.body.forward_features(x, **own), costs

    # --- in two parts: up to a stage, and on from there ---------------------------------------------------------------

    def enter(self, x: Tensor, cut: str, stages: Sequence[str], task: str | None = None) -> Features:
        """The first part: ENTRY, what the module after stage `cut` takes, and those of `stages` that come before it."""
        before = self.before(cut, stages)
        with self._listening([*before, cut], last=cut) as heard, suppress(_Enough):
            self._final(x, task=task)
        if not isinstance(heard.get(cut), Tensor):
            raise ConfigError(
                f"{self.name} gives no tensor at {cut}, so it cannot be trained from there; choose another"
            )
        size = (x.shape[-2], x.shape[-1])
        return Features({**self._maps(heard, before, size), ENTRY: heard[cut]}, size=size)

    def go_on(
        self,
        features: Features,
        cut: str,
        stages: Sequence[str],
        size: tuple[int, int],
        trace: Trace | None = None,
        task: str | None = None,
    ) -> Features:
        """The second part: all of `stages` from what `enter` gave of images of this size.

        A blank image runs through the first part, whose result is then exchanged: that works for every family, and
        costs one image for a whole batch.
        """
        entry = features.stages[ENTRY]
        before = self.before(cut, stages)
        behind = [name for name in stages if name not in (*before, cut, FINAL)]
        with self._listening(behind, instead={cut: entry}) as heard:
            final, costs = self._final(entry.new_zeros(1, 3, *size), trace, since=cut, task=task)
        heard[cut] = entry
        maps = {name: features.stages[name] for name in before}
        maps |= self._maps(heard, [name for name in stages if name in (cut, *behind)], size)
        return self._with_final(final, maps, size, costs)

    def before(self, cut: str, stages: Sequence[str]) -> list[str]:
        """Those of `stages` that come before the stage `cut`."""
        order = list(self.channels)
        return [name for name in stages if order.index(name) < order.index(cut)]

    # --- whatever shape a family gives its features -------------------------------------------------------------------

    def _with_final(
        self, x: Tensor, stages: dict[str, Tensor], size: tuple[int, int], costs: Mapping[str, Tensor]
    ) -> Features:
        """timm's last features are a map, a map with channels last, or tokens behind class and register tokens."""
        if not isinstance(x, Tensor) or x.ndim not in (3, 4):
            raise ConfigError(f"{self.name} gives neither a map nor tokens; choose another backbone")
        stages[FINAL], prefix = self._map(x, self.channels[FINAL], size)
        return Features(stages, prefix, size, costs)

    def _map(self, x: Tensor, channels: int, size: tuple[int, int]) -> tuple[Tensor, Tensor | None]:
        """[B, C, H, W] of features in any order, and the tokens [B, P, C] that stand for no place, if there are any."""
        if x.ndim == 4:
            told = getattr(self.body, "channels_last", None)
            last = x.shape[1] != channels and x.shape[-1] == channels if told is None else told
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
        name = self.merged.get(stage) or list(self.body.feature_info)[int(stage.removeprefix("stage")) - 1]["module"]
        try:
            module: nn.Module = self.body.get_submodule(name)
        except AttributeError as error:
            raise ConfigError(
                f"{self.name} has no module {name!r} to look into at {stage}; use the final stage"
            ) from error
        return module

    @contextmanager
    def _listening(self, stages: Sequence[str], **how: Any) -> Iterator[dict[str, Tensor]]:
        """Collects what the modules of these stages give (see `Listening`)."""
        now = Listening(self, frozenset(stages), **how)
        if not now.asks:
            yield now.heard
            return
        token = PASS.set(now)
        try:
            yield now.heard
        finally:
            PASS.reset(token)


class _Enough(Exception):
    """The part that was wanted has run."""

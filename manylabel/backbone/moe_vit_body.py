"""The vision transformer with sparse experts (AdaMV-MoE) as a backbone, of one task or of several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from manylabel.backbone.body import BODIES
from manylabel.backbone.moe_vit import MoeViT, stage_ends
from manylabel.backbone.stem import Stem
from manylabel.backbone.taps import FORMS, is_unchanged, taps_layers, with_changes
from manylabel.backbone.vit_size import size_of
from manylabel.backbone.vit_weights import begin_with
from manylabel.config import BackboneConfig, ExpertsConfig, VitConfig, option
from manylabel.core.trace import Trace
from manylabel.error import ConfigError
from manylabel.expert import AdaptiveSelection
from manylabel.require import require

SIDE = 224
RANDOM = ("auto", "none")  # weights: nothing is bundled
PIXELS = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # mean and deviation of ImageNet's
AS_THEY_ARE = ((0.0,) * 3, (1.0,) * 3)  # a stem normalises by itself


@BODIES.register("moe_vit")
class MoeVitBody(nn.Module):
    """A vision transformer with sparse experts and a router for each task; stage1 … stage4 lie behind each quarter of its
    blocks."""

    traced = True
    per_task = True
    channels_last = True

    @dataclass(frozen=True)
    class Options(VitConfig):
        experts: ExpertsConfig = option(ExpertsConfig(), "what its sparse layers hold")
        k: int = option(1, "experts of a token, to begin with where train.adapt finds another number")

    def __init__(
        self, options: Options, *, config: BackboneConfig, load_weights: bool, tasks: Mapping[str, int | None]
    ) -> None:
        super().__init__()
        o, side = options, config.image_size or SIDE
        size = size_of(o)
        sides = {task: own or side for task, own in tasks.items()}
        stem = Stem(o.stem, o.patch, load_weights) if o.stem else None
        if stem is not None and config.weights not in RANDOM:
            raise ConfigError(
                "backbone.weights are of patches, and backbone.options.stem takes their place: set one of them"
            )
        self.experts = o.experts
        self.vit = MoeViT(size, o.patch, o.experts, sides, o.drop_path, stem)
        self.vit.recompute = o.recompute and config.freeze != "partial"
        given = config.weights not in RANDOM and load_weights
        found = begin_with(self.vit, config.weights) if given else None
        self.trained, self.trained_whole = config.weights not in RANDOM, config.freeze == "full"
        if o.experts.sharing in FORMS:
            with_changes(self.vit.blocks, tuple(tasks), FORMS[o.experts.sharing])
        self.tasks = tuple(tasks)
        self.selection = self._selection(o)
        mean, std = (found or PIXELS) if stem is None else AS_THEY_ARE
        self.num_features, self.stride = size.width, o.patch
        self.feature_info = [
            {"num_chs": size.width, "module": f"vit.blocks.{end - 1}"} for end in stage_ends(size.layers).values()
        ]
        self.pretrained_cfg = {"input_size": (3, side, side), "mean": mean, "std": std, "interpolation": "bicubic"}

    def _selection(self, o: Options) -> AdaptiveSelection:
        """How many experts each task uses now. A dense network is one expert for all."""
        if o.experts.sharing == "experts" and not self.vit.sparse:
            raise ConfigError(
                f"backbone.options.experts.where={o.experts.where} leaves none of {self.vit.size.layers} layers with "
                "experts; use more layers, experts.where=all, or experts.sharing=dense"
            )
        if not self.vit.sparse:
            return AdaptiveSelection(len(self.tasks), 1, 1)
        require(1 <= o.k <= o.experts.count, "backbone.options.k", o.k, f"from 1 to experts.count={o.experts.count}")
        return AdaptiveSelection(len(self.tasks), o.experts.count, 1, o.k)

    def forward_features(
        self,
        x: Tensor,
        task: str,
        trace: Trace | None = None,
        costs: dict[str, Tensor] | None = None,
        since: str | None = None,
    ) -> Tensor:
        first = 0 if since is None else stage_ends(len(self.vit.blocks))[since]
        tokens: Tensor
        tokens, own = self.vit(x, task, self.k(task), trace, first)
        if costs is not None:
            costs.update(own)
        return tokens

    def group_matcher(self, coarse: bool = False) -> dict[str, Any]:
        return {
            "stem": r"^vit\.(?:embed|stem)",
            "blocks": [(r"^vit\.blocks\.(\d+)", None), (r"^vit\.norm", (99999,))],
        }

    # --- how many experts a task uses -----------------------------------------------------------------------------------

    def k(self, task: str) -> int:
        """Experts of a token."""
        return self.selection.now[self.tasks.index(task)]

    @property
    def adapts(self) -> bool:
        return bool(self.vit.sparse)

    def adapt(self, patience: int, min_decrease: float, max_experts: int) -> None:
        """By which rule `observe` decides."""
        least = max(self.selection.now)
        require(
            max_experts == 0 or max_experts >= least,
            "train.adapt.max_experts",
            max_experts,
            f"0, or backbone.options.k={least} or more",
        )
        self.selection.patience, self.selection.min_decrease = patience, min_decrease
        self.selection.most = min(max_experts or self.experts.count, self.experts.count)

    def begin_phase(self, alone: bool) -> None:
        """`alone`: one task is trained before the others. What losses are compared with begins anew, as the optimiser."""
        self.selection.begin_anew()
        for layer in taps_layers(self.vit.blocks) if self.trained_whole else ():
            layer.begin_phase(alone)

    def observe(self, losses: Mapping[str, float], iterations: int, may_grow: bool) -> dict[str, int]:
        """Algorithm 1, for every task: its held-out loss after so many further steps → the change of its k."""
        given = torch.tensor([losses.get(task, torch.nan) for task in self.tasks])
        changes = self.selection.update(given, iterations, may_grow).tolist()
        return dict(zip(self.tasks, changes, strict=True))

    def common(self, parameter: str) -> bool:
        """Whether all tasks use it in the same way, as they do not use MLPs, which may be experts."""
        return ".mlp." not in parameter

    def active_share(self, parameter: str, task: str) -> float:
        """How much of a parameter a token of this task uses: k of E experts; nothing of a change that is not made."""
        if ".mlp.experts." in parameter:
            return self.k(task) / self.experts.count
        module, _, last = parameter.rpartition(".delta.")
        return 0.0 if last == task and is_unchanged(self.get_submodule(module), task) else 1.0

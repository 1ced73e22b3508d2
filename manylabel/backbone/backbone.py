"""The image encoder of a model: a body of any kind, its stages as maps, its preprocessing, and what of it is trained."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from timm.models import group_parameters
from torch import Tensor, nn

from manylabel import console
from manylabel.backbone.body import BODIES, brief, check_body
from manylabel.backbone.kinds import is_known, make_body, sized
from manylabel.backbone.quick import quicken
from manylabel.backbone.stages import StageReader
from manylabel.config import LABELS, BackboneConfig
from manylabel.core.trace import Trace
from manylabel.error import ConfigError, WeightsError
from manylabel.features import FINAL, Features, find_stage
from manylabel.preprocess import Preprocess
from manylabel.suggest import closest

NORMALISATION = {  # mean and standard deviation of pixels in 0…1
    "imagenet": (IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD),
    "unit": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
}
ONE_TASK: Mapping[str, int | None] = {LABELS: None}


class Backbone(nn.Module):
    """images [B, 3, H, W] (uint8, or float in 0..1) of a task → Features; normalises by itself.

    `tasks`: by name the side of their images, where it is another than the backbone's.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, config: BackboneConfig, load_weights: bool = True, tasks: Mapping[str, int | None] = ONE_TASK
    ) -> None:
        super().__init__()
        self.sides = dict(tasks)
        larger = sized(config)
        try:
            self._build(larger, load_weights)
        except (ConfigError, WeightsError, RuntimeError, AssertionError) as error:
            if larger == config or not is_known(config.name):
                raise
            self._build(config, load_weights)  # what is wrong in any size is said here
            console.warn(f"{config.name} does not take {larger.image_size} px ({brief(error)}): its own size is used")

    def _build(self, config: BackboneConfig, load_weights: bool) -> None:
        self.name = config.name
        self.config = config
        # Channels last is faster, but torch crashes in some backward passes of it on a CPU: only where there is none.
        backward = load_weights and config.freeze != "frozen"
        self.layout = torch.contiguous_format if backward else torch.channels_last
        self.body: Any = make_body(config, load_weights, self.sides).to(memory_format=self.layout)
        check_body(self.body, config.name)
        if load_weights and config.freeze != "full" and config.weights != "none" and not self.may_be_frozen:
            raise ConfigError(
                f"{config.name} has no trained weights, so what is frozen of it would be noise: give it weights (see "
                f"'manylabel backbones {config.name}'), train all of it (--full), or say --set backbone.weights=none"
            )
        facts = self.body.pretrained_cfg
        mean, std = NORMALISATION.get(config.normalise, (facts["mean"], facts["std"]))
        preprocess = Preprocess(
            size=config.image_size or int(facts["input_size"][-1]),
            mean=tuple(mean),
            std=tuple(std),
            interpolation="bicubic" if facts.get("interpolation") == "bicubic" else "bilinear",
            resize=config.resize,
            crop_share=float(facts.get("crop_pct") or 0.875),
        )
        self.register_buffer("mean", torch.empty(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.empty(1, 3, 1, 1), persistent=False)
        self.use(preprocess)
        self.reader = StageReader(self.body, self.name)
        self.channels = self.reader.channels
        self.cut = self._cut() if config.freeze == "partial" else None  # the stage behind which everything is trained
        self._read: frozenset[str] | None = None
        self._unused: set[str] = set()
        self.stages: tuple[str, ...] = (FINAL,)
        self.may_run = load_weights  # a bundle's settings may ask for far larger images than its weights are for
        if load_weights and not self._has_shapes_only:
            self._try_out()  # a bundle is tried with the weights it brings
        self.select([FINAL])

    @property
    def _has_shapes_only(self) -> bool:
        """On torch's device `meta`, where a network is counted and cannot run."""
        return any(p.is_meta for p in self.body.parameters())

    @property
    def may_be_frozen(self) -> bool:
        """Whether it has trained weights, or somebody said that it need not."""
        trained = getattr(self.body, "trained", self.name not in BODIES)
        return bool(trained) or self.config.weights == "none"

    def quicken(self) -> None:
        """Train as fast as a CPU can; not for a GPU, which has faster convolutions."""
        quicken(self.body)
        self.layout = torch.channels_last
        self.body.to(memory_format=self.layout)

    def laid_out(self, layout: torch.memory_format) -> Backbone:
        """The same network, weights shared, with images in this order of memory; convolutions follow them."""
        other = copy.copy(self)
        other.layout = layout
        return other

    def of_normalised(self) -> Backbone:
        """The same network, weights shared, for float images that are normalised already."""
        other = copy.copy(self)
        still = {"mean": torch.zeros_like(self.mean), "std": torch.ones_like(self.std)}
        other._buffers = {**self._buffers, **still}  # type: ignore[assignment]
        return other

    def use(self, preprocess: Preprocess) -> None:
        """Expect images prepared like this; a bundle brings its own."""
        self.preprocess = preprocess
        self.mean.copy_(torch.tensor(preprocess.mean).view(1, 3, 1, 1))
        self.std.copy_(torch.tensor(preprocess.std).view(1, 3, 1, 1))

    def select(self, stages: Iterable[str]) -> None:
        """Say which stages are read. forward() gives these, and `final`; what none of them depends on is not trained."""
        wanted = list(stages)
        self.stages, read = self.reader.select(wanted, self.cut), frozenset(wanted)
        if read != self._read:
            still = self.config.freeze == "frozen" or self._has_shapes_only or not self.may_run
            self._unused = set() if still else self._find_unused(read)
            self._still = self._freeze()
            self._read = read if self.may_run else None

    def prepared(self, task: str | None = None) -> Preprocess:
        """How the images of a task become the network's input."""
        side = self.sides.get(self.known(task))
        return self.preprocess if side is None else replace(self.preprocess, size=side)

    def known(self, task: str | None) -> str:
        """None = the first one."""
        if task is None:
            return next(iter(self.sides))
        if task not in self.sides:
            raise ConfigError(f"there is no task {task!r} among {', '.join(self.sides)}{closest(task, self.sides)}")
        return task

    def forward(self, images: Tensor, trace: Trace | None = None, task: str | None = None) -> Features:
        return self.reader.read(self._normal(images), self.stages, trace, self.known(task))

    def contiguous(self) -> Backbone:
        """A copy for gradients of maps: it asks for none of weights, and does not use channels last, in which some
        backward passes of torch crash on a CPU."""
        other = copy.deepcopy(self).eval().requires_grad_(False)
        other.layout = torch.contiguous_format
        other.body.to(memory_format=other.layout)
        return other

    def forward_from(
        self, images: Tensor, stages: Sequence[str], leaf: str, task: str | None = None
    ) -> tuple[Features, Tensor]:
        """Features of these stages (as the reader selects them), and the output of stage `leaf`, where a graph begins."""
        return self.reader.read_from(self._normal(images), stages, leaf, self.known(task))

    @property
    def before_cut(self) -> tuple[str, ...]:
        """Those of the selected stages that lie before the cut."""
        return () if self.cut is None else tuple(self.reader.before(self.cut, self.stages))

    def enter(self, images: Tensor, task: str | None = None) -> Features:
        """What stays the same while only the part behind `cut` is trained: ENTRY, and the stages before it."""
        assert self.cut is not None
        with torch.no_grad():
            return self.reader.enter(self._normal(images), self.cut, self.stages, self.known(task))

    def go_on(self, features: Features, trace: Trace | None = None, task: str | None = None) -> Features:
        """What forward() gives, from what enter() gave."""
        assert self.cut is not None
        side, task = self.prepared(task).size, self.known(task)
        return self.reader.go_on(features, self.cut, self.stages, (side, side), trace, task)

    def _normal(self, images: Tensor) -> Tensor:
        if images.dtype == torch.uint8:
            images = images.to(self.mean.dtype) / 255
        return ((images - self.mean) / self.std).contiguous(memory_format=self.layout)

    def _cut(self) -> str:
        stages = [name for name in self.channels if name.startswith("stage")]
        wanted = self.config.trained_after
        if not stages:
            raise ConfigError(f"{self.name} names no stages to train from; train all of it (--full) or none (--frozen)")
        if wanted is None:
            return stages[max(1, min(len(stages) - 1, round(0.75 * len(stages)))) - 1]
        return find_stage(wanted, stages, "backbone.trained_after", self.name)

    def _try_out(self) -> None:
        """Run a blank image of every task through, so that a size or model that cannot work is found now."""
        self.body.eval()
        for task in self.sides:
            side = self.prepared(task).size
            try:
                with torch.no_grad():
                    self.forward(torch.zeros(2, 3, side, side), task=task)
            except ConfigError:
                raise
            except Exception as error:
                raise ConfigError(f"{self.name} does not work at {side} px: {brief(error)}") from error

    # --- what is trained ------------------------------------------------------------------------------------------

    def _find_unused(self, read: frozenset[str]) -> set[str]:
        """The parameters that no gradient reaches: of a part before the cut, or behind what is read."""
        layout, self.layout = self.layout, torch.contiguous_format
        self.body.to(memory_format=self.layout).eval().requires_grad_(True)
        generator = torch.Generator().manual_seed(0)
        named = dict(self.body.named_parameters())
        unused = set(named)
        for task in self.sides:
            side = self.prepared(task).size
            images = torch.rand(2, 3, side, side, generator=generator)
            with torch.enable_grad():
                features = self.forward(images, task=task) if self.cut is None else self._cut_in_two(images, task)
                sums = [features.stages[s].sum() for s in read if features.stages[s].requires_grad]
                if not sums:
                    raise ConfigError(f"nothing of {self.name} that is trained is read: {', '.join(sorted(read))}")
                total = torch.stack(sums).sum()
                gradients = torch.autograd.grad(total, list(named.values()), allow_unused=True)
            unused -= {name for name, gradient in zip(named, gradients, strict=True) if gradient is not None}
        self.layout = layout
        self.body.to(memory_format=layout)
        return unused

    def _cut_in_two(self, images: Tensor, task: str) -> Features:
        """What go_on gives, after a look at whether it is what forward gives."""
        how = f"{self.name} cannot be cut at {self.cut}"
        instead = "train all of it (--full) or none (--frozen), or cut it elsewhere (--set backbone.trained_after=…)"
        try:
            parts, whole = self.go_on(self.enter(images, task), task=task), self.forward(images, task=task)
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(f"{how} ({brief(error)}); {instead}") from error
        for name, stage in whole.stages.items():
            other = parts.stages[name]
            if other.shape != stage.shape or (other - stage).abs().max() > 1e-3 * stage.abs().max():
                raise ConfigError(f"{how}: {name} would be another; {instead}")
        return parts

    def _freeze(self) -> list[nn.Module]:
        """Stop gradients where config.freeze says; returns the modules that also stay in evaluation mode."""
        for name, parameter in self.body.named_parameters():
            parameter.requires_grad_(self.config.freeze != "frozen" and name not in self._unused)
        still = self.config.batch_norm == "fixed" or (
            self.config.batch_norm == "auto" and self.config.weights != "none"
        )
        return [
            module
            for module in self.body.modules()
            if (isinstance(module, nn.modules.batchnorm._BatchNorm) and still)
            or ((own := list(module.parameters())) and not any(p.requires_grad for p in own))
        ]

    @property
    def stride(self) -> int:
        """Pixels of an image for each place of the final map."""
        told = getattr(self.body, "stride", None)
        if told is not None:
            return int(told)
        side, training = self.prepared().size, self.training
        self.eval()
        with torch.no_grad():
            places = self.forward(torch.zeros(1, 3, side, side, device=self.mean.device)).final.shape[-1]
        self.train(training)
        return round(side / places)

    def begin_phase(self, alone: bool) -> None:
        """A stretch of training begins, with an optimiser of its own; `alone`: of one task before the others."""
        if hasattr(self.body, "begin_phase"):
            self.body.begin_phase(alone)

    def observe(self, losses: Mapping[str, float], iterations: int, may_grow: bool) -> dict[str, int]:
        """Held-out losses of the tasks after so many further steps: what adapts to them does so now. Task → the change of
        how many experts it uses."""
        found: dict[str, int] = self.body.observe(losses, iterations, may_grow)
        return found

    @property
    def adapts(self) -> bool:
        """Whether tasks may use more or fewer experts of it."""
        return bool(getattr(self.body, "adapts", False))

    def layer_groups(self) -> dict[str, int]:
        """Parameter name (inside body) → depth of its layer group, 0 = closest to the image."""
        used = [name for name, _ in self.body.named_parameters() if name not in self._unused]
        if not hasattr(self.body, "group_matcher"):
            return dict.fromkeys(used, 0)  # this family does not say what its layers are: all are one group
        matched = group_parameters(self.body, self.body.group_matcher(coarse=True), reverse=True)
        depths = {depth: i for i, depth in enumerate(sorted({int(matched[name]) for name in used}))}
        return {name: depths[int(matched[name])] for name in used}

    @property
    def frozen(self) -> bool:
        return not any(p.requires_grad for p in self.body.parameters())

    def train(self, mode: bool = True) -> Backbone:
        """Frozen parts, and batch norms that are to keep their statistics, stay in evaluation mode."""
        super().train(mode)
        for module in self._still:
            module.eval()
        return self

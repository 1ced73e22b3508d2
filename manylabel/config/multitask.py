"""Settings of a model for several tasks: one vision transformer, what is shared in it, and every task's own part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from manylabel.config.option import Part, option
from manylabel.config.schema import AugmentConfig, DataConfig
from manylabel.require import require


@dataclass(frozen=True)
class VitConfig:
    """The vision transformer that all tasks share (Table 2 of the AdaMV-MoE paper has its sizes by name)."""

    size: Literal["small*", "small", "base", "uvit-base", "tiny", "own"] = option(
        "small*", "a size by name: layers, heads, width, hidden; own = the four settings below"
    )
    layers: int = option(0, "transformer layers; 0 = as the size has it")
    heads: int = option(0, "attention heads; 0 = as the size has it")
    width: int = option(0, "channels of a token; 0 = as the size has it")
    hidden: int = option(0, "hidden width of an MLP, so of one expert; 0 = as the size has it")
    patch: int = option(16, "side of a patch in pixels")
    windows: tuple[float, ...] = option(
        (), "side of every layer's attention windows as a share of the map's, 1 = global; empty = as the size has it"
    )
    drop_path: float = option(
        0.0, "share of images for which the last layer is skipped in training; less in earlier ones"
    )
    weights: str | None = option(
        None, "a timm ViT of the same width whose weights it begins with, or a .safetensors file"
    )
    stem: str | None = option(
        None, "a pre-trained backbone, kept frozen, whose maps take the place of patches, e.g. efficientnet_lite0"
    )

    recompute: bool = option(
        False, "compute every layer again in the backward pass instead of keeping it: less memory, a third more time"
    )

    def __post_init__(self) -> None:
        for name in ("layers", "heads", "width", "hidden"):
            require(getattr(self, name) >= 0, f"vit.{name}", getattr(self, name), "0 or more")
        require(self.layers <= 1000, "vit.layers", self.layers, "at most 1000")
        require(self.patch >= 1, "vit.patch", self.patch, "1 or more")
        require(all(0 < share <= 1 for share in self.windows), "vit.windows", self.windows, "shares above 0, at most 1")
        require(0 <= self.drop_path < 1, "vit.drop_path", self.drop_path, "at least 0 and below 1")
        require(
            self.stem is None or self.weights is None,
            "vit.stem",
            self.stem,
            "none beside vit.weights, which are of patches",
        )


@dataclass(frozen=True)
class ExpertsConfig:
    """What tasks share, and how: one dense network, sparse experts, or layers with a change for each task."""

    sharing: Literal["dense", "experts", "taps"] = option(
        "experts",
        "dense = all weights for all tasks; experts = sparse ones; taps = a learned choice of layers per task",
    )
    count: int = option(8, "E: experts of a layer")
    where: Literal["every_two", "early", "middle", "later", "all"] = option("every_two", "which layers have experts")
    router: Literal["task", "agnostic"] = option("task", "a router for every task, or one for all")
    alike: bool = option(
        False,
        "let the experts of a layer begin as nearly the same network, so that a token may change its expert early on",
    )
    noise: float = option(1.0, "noise of the router's logits in training, as a multiple of 1/E")
    renormalise: bool = option(False, "let the weights of the chosen experts add up to 1")
    capacity: float = option(1.05, "slots of an expert as a multiple of the even share; 0 = every token is served")
    static: bool = option(
        False,
        "compute every expert on every token: torch.compile of the transformer has no breaks then; E/k times the cost",
    )
    priority: bool = option(False, "the surest tokens get slots first, instead of the first ones")
    importance: float = option(0.005, "weight of the importance loss")
    load: float = option(0.005, "weight of the load loss")
    z_loss: float = option(0.0, "weight of the router's z-loss")
    taps_penalty: float = option(0.1, "with taps: cost of a layer that a task changes for itself")

    def __post_init__(self) -> None:
        require(self.count >= 1, "experts.count", self.count, "1 or more")
        for name in ("noise", "capacity", "importance", "load", "z_loss", "taps_penalty"):
            require(getattr(self, name) >= 0, f"experts.{name}", getattr(self, name), "0 or more")


SELECTION_PRESETS: dict[str, dict[str, int | float]] = {
    # how often the paper's looks is ours
    "paper": {"k": 1, "every": 200, "patience": 2000, "start": 0, "held_out": 0.01, "least": 0.0, "most": 0},
    "reference": {"k": 2, "every": 2000, "patience": 5000, "start": 40000, "held_out": 0.01, "least": 0.0, "most": 0},
}


@dataclass(frozen=True)
class SelectionConfig:
    """Adaptive expert selection: how many experts a task's tokens use (Algorithm 1)."""

    preset: Literal["own", "paper", "reference"] = option(
        "own", "paper or reference: begin with the paper's figures below, or those of its released code"
    )
    k: int = option(1, "experts of a token to begin with, or throughout where nothing adapts")
    adaptive: bool = option(True, "let every task find its own number by its held-out loss")
    every: int = option(2000, "steps between two looks at the held-out loss")
    patience: int = option(2000, "Δn: steps without a lower held-out loss after which a task may have one expert more")
    least: float = option(
        0.0,
        "a held-out loss that falls by less than this share in Δn steps stands still; 0 = only one that does not fall",
    )
    most: int = option(0, "experts of a token that a task may grow to; 0 = all that a layer has, as in the paper")
    start: int = option(0, "steps before the first look")
    held_out: float = option(0.01, "share of the training images whose loss is looked at")

    def __post_init__(self) -> None:
        for name in ("k", "every", "patience"):
            require(getattr(self, name) >= 1, f"selection.{name}", getattr(self, name), "1 or more")
        require(self.start >= 0, "selection.start", self.start, "0 or more")
        require(
            self.most == 0 or self.most >= self.k, "selection.most", self.most, f"0, or selection.k={self.k} or more"
        )
        require(0 <= self.least < 1, "selection.least", self.least, "at least 0 and below 1")
        require(0 < self.held_out < 1, "selection.held_out", self.held_out, "between 0 and 1")


@dataclass(frozen=True)
class TaskConfig:
    """One task: what is asked, of which images, and how much it counts."""

    kind: Literal["multi_label", "single_label", "detection"] = option(
        "multi_label", "labels of an image, the one label of it, or boxes (and masks, where the data has them)"
    )
    data: DataConfig = option(DataConfig(), "images and labels")
    image_size: int = option(224, "side of its images in pixels")
    batch_size: int = option(32, "its images in a step, of each process")
    weight: float = option(1.0, "weight of its loss")
    rate: float = option(1.0, "rate of its own parts (embeddings, router, head) as a multiple of optimiser.lr")
    head: Part = option(Part("linear"), "tokens to logits; not for detection")
    loss: Part = option(Part("bce"), "logits and labels to one number; not for detection")
    detector: Part = option(Part("cascade"), "tokens to boxes and masks; for detection only")
    augment: AugmentConfig = option(AugmentConfig(), "changes to its training images")

    def __post_init__(self) -> None:
        require(16 <= self.image_size <= 4096, "image_size", self.image_size, "16 to 4096 pixels")
        require(self.batch_size >= 1, "batch_size", self.batch_size, "1 or more")
        require(self.weight >= 0, "weight", self.weight, "0 or more")
        require(self.rate > 0, "rate", self.rate, "above 0")


@dataclass(frozen=True)
class StepsConfig:
    """The training loop, counted in steps: each takes one batch of every task."""

    steps: int = option(1000, "changes of the weights with all tasks")
    first: str | None = option(None, "a task that is trained alone before all of them are")
    first_steps: int = option(0, "steps of that task alone")
    judge_every: int = option(0, "steps between two judgements on the val parts; 0 = at the end only")
    ema: float = option(0.0, "decay of the averaged weights that are then used for everything; 0 = off")
    clip: float = option(1.0, "largest gradient norm; 0 = off")
    amp: Literal["no", "bf16"] = option("no", "mixed precision")
    seed: int = option(0, "the same seed on the same machine gives the same weights")
    checkpoint_minutes: float = option(5.0, "save when this much time has passed")

    def __post_init__(self) -> None:
        require(self.steps >= 1, "train.steps", self.steps, "1 or more")
        require(0 <= self.seed < 2**32, "train.seed", self.seed, "0 to 2³² − 1")
        for name in ("first_steps", "judge_every", "clip", "checkpoint_minutes"):
            require(getattr(self, name) >= 0, f"train.{name}", getattr(self, name), "0 or more")
        require(0 <= self.ema < 1, "train.ema", self.ema, "at least 0 and below 1")


@dataclass(frozen=True)
class MultiTaskConfig:
    """Everything a run with several tasks needs to be repeated."""

    tasks: dict[str, TaskConfig] = option({}, "the tasks by name")
    vit: VitConfig = option(VitConfig(), "the shared vision transformer")
    experts: ExpertsConfig = option(ExpertsConfig(), "what is shared in it")
    selection: SelectionConfig = option(SelectionConfig(), "how many experts a task uses")
    optimiser: Part = option(Part("adamw"), "how weights change")
    schedule: Part = option(Part("cosine"), "how the rate changes over time")
    train: StepsConfig = option(StepsConfig(), "the loop")

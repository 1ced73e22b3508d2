"""Every setting of a run, with its documentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from manylabel.config.option import Part, option
from manylabel.error import ConfigError
from manylabel.require import require


@dataclass(frozen=True)
class ScenesConfig:
    """The embedded data set (data.path = scenes)."""

    train: int = option(3000, "training images")
    val: int = option(1000, "validation images")
    size: int = option(256, "side of the drawn images in pixels")
    seed: int = option(0, "another seed gives other images")
    noise: float = option(0.0, "share of training labels that are flipped")
    unknown: float = option(0.0, "share of training labels that are hidden")

    def __post_init__(self) -> None:
        require(self.train >= 1, "data.scenes.train", self.train, "1 or more")
        require(self.val >= 1, "data.scenes.val", self.val, "1 or more")
        require(self.seed >= 0, "data.scenes.seed", self.seed, "0 or more")


@dataclass(frozen=True)
class PartsConfig:
    """Official parts of the data (train, val, test) that make up the part to train on and the part to judge on."""

    train: tuple[str, ...] = option((), "official parts to train on, e.g. train,val; none = as the data says")
    val: tuple[str, ...] = option((), "official parts to judge on while training, e.g. test")

    def __post_init__(self) -> None:
        for name, parts in (("train", self.train), ("val", self.val)):
            for part in parts:
                require(part in ("train", "val", "test"), f"data.parts.{name}", part, "train, val or test")
        require(bool(self.train) == bool(self.val), "data.parts", "one of its two", "both train and val, or neither")
        both = sorted({*self.train} & {*self.val})
        require(not both, "data.parts", ", ".join(both), "in train or in val, not in both")


@dataclass(frozen=True)
class DataConfig:
    """Which images and labels, and how they are read."""

    path: str = option("", "a label file, a folder that holds one, or 'scenes' for the embedded data")
    format: str = option("auto", "format of the data (see 'manylabel data formats'); auto looks at its content")
    labels: str | None = option(None, "file with the labels: a list, or parents, synonyms and descriptions")
    delimiter: str | None = option(None, "what separates labels in one cell; none = detected, and said")
    images: str | None = option(None, "folder of the images; none = beside the label file, or one folder inside it")
    missing: Literal["error", "drop"] = option("error", "what an image file that is not there does")
    blank: Literal["unknown", "absent"] = option("unknown", "what a blank cell of a wide table means")
    duplicates: Literal["error", "merge"] = option("error", "what a second row for the same image does")
    boxes: Literal["error", "clip"] = option("error", "what a box that reaches out of its image does")
    ignore_columns: tuple[str, ...] = option((), "columns that are neither labels nor anything else we need")
    allow_markup: bool = option(False, "accept label names that look like HTML or hold control characters")
    parts: PartsConfig = option(PartsConfig(), "which official parts are trained on and judged on")
    unlabelled: Literal["keep", "drop"] = option("keep", "what happens to images that show none of the labels")
    machine_labels: float | None = option(
        None, "of Open Images: labels that a machine made are present from this confidence on; none = they are not used"
    )
    split_file: str | None = option(None, "which image is in which part: a CSV made by 'manylabel data split'")
    fold: int | None = option(None, "with a split_file of folds: the one to judge on")
    validation_share: float = option(0.2, "share held out when the data has no split column")
    max_bad_share: float = option(0.01, "share of unreadable images above which a run stops")
    workers: int = option(2, "processes that decode images; 0 = in the main process")
    scenes: ScenesConfig = option(ScenesConfig(), "settings of the embedded data")

    def __post_init__(self) -> None:
        require(0 < self.validation_share < 1, "data.validation_share", self.validation_share, "between 0 and 1")
        require(0 <= self.max_bad_share <= 1, "data.max_bad_share", self.max_bad_share, "between 0 and 1")
        if self.parts.train and self.split_file:
            raise ConfigError("data.parts and data.split_file both say what is trained on; choose one")
        require(self.workers >= 0, "data.workers", self.workers, "0 or more")
        sure = self.machine_labels
        require(sure is None or 0 < sure <= 1, "data.machine_labels", sure, "none, or above 0 and at most 1")


@dataclass(frozen=True)
class ZeroShotConfig:
    """Labels that training never tells, judged all the same through their text vectors (see `text`)."""

    unseen: str = option(
        "", "unseen labels: names with commas, a .txt file with one in a line, or 'untold' = what training never tells"
    )
    in_training: Literal["error", "hide", "drop"] = option(
        "error",
        "training images that show an unseen label: an error, their unseen labels hidden, or the images left out",
    )


@dataclass(frozen=True)
class BackboneConfig:
    """The image encoder."""

    name: str = option("efficientnet_lite0", "a bundled backbone, any timm model, or moe_vit")
    weights: str = option(
        "auto",
        "auto, pip, hub, none (random), or a local .safetensors/.pth file; of moe_vit also the name of a timm ViT",
    )
    image_size: int | None = option(None, "side in pixels; none = what the weights were trained for")
    enlarge: float = option(
        1.0, "without image_size: so many times the side that the weights were trained for, in steps of 32 pixels"
    )
    resize: Literal["stretch", "crop", "pad"] = option("stretch", "how a photo becomes square")
    normalise: Literal["pretrained", "imagenet", "unit"] = option(
        "pretrained", "mean and deviation of colours: those of its weights, ImageNet's, or none (numbers from 0 to 1)"
    )
    freeze: Literal["frozen", "partial", "full"] = option("frozen", "what is trained: nothing, the last layers, or all")
    trained_after: str | None = option(
        None, "with freeze=partial: all behind this stage is trained; none = the last quarter of the stages"
    )
    batch_norm: Literal["auto", "fixed", "moving"] = option(
        "auto", "statistics of batch norms in trained layers; auto = fixed, but moving with random weights"
    )
    drop_path: float = option(
        0.0,
        "stochastic depth: share of images that skip the last block of a timm backbone in training, less in others",
    )
    options: Mapping = option({}, "of a backbone that is not timm's, e.g. moe_vit")  # type: ignore[type-arg]

    def __post_init__(self) -> None:
        size = self.image_size
        require(size is None or 16 <= size <= 4096, "backbone.image_size", size, "none, or 16 to 4096 pixels")
        require(0.25 <= self.enlarge <= 4, "backbone.enlarge", self.enlarge, "between 0.25 and 4")
        require(0 <= self.drop_path < 1, "backbone.drop_path", self.drop_path, "at least 0 and below 1")
        require(
            not self.drop_path or self.freeze == "full", "backbone.drop_path", self.drop_path, "0 unless freeze=full"
        )


@dataclass(frozen=True)
class AugmentConfig:
    """What happens to training images. With cached features that is done `train.views` times, once and for all."""

    flip: bool = option(False, "mirror left and right")
    random_crop: float = option(0.0, "smallest share of the area that a random crop keeps; 0 = off")
    multi_scale: bool = option(
        False, "crops whose sides are 1, 0.875, 0.75, 0.66 or 0.5 of the shorter one, at one of 13 places"
    )
    randaugment: int = option(0, "RandAugment magnitude (9 is usual); 0 = off")
    autoaugment: bool = option(False, "AutoAugment with the policy found for ImageNet")
    colour: float = option(0.0, "strength of brightness, contrast and saturation jitter; 0 = off")
    cutout: float = option(0.0, "side of one grey square as a share of the image; 0 = off")
    erasing: float = option(0.0, "probability of RandomErasing; 0 = off")
    mixup: float = option(0.0, "Beta parameter of MixUp; 0 = off")
    cutmix: float = option(0.0, "Beta parameter of CutMix; 0 = off")
    repeats: int = option(
        1,
        "repeated augmentation: so many varied copies of an image follow each other, in epochs of the same length",
    )

    def __post_init__(self) -> None:
        for name in ("random_crop", "cutout", "erasing", "colour"):
            value = getattr(self, name)
            require(0 <= value <= 1, f"augment.{name}", value, "between 0 and 1")
        require(
            not (self.multi_scale and self.random_crop), "augment.random_crop", self.random_crop, "0 with multi_scale"
        )
        require(0 <= self.randaugment <= 30, "augment.randaugment", self.randaugment, "0 to 30")
        require(1 <= self.repeats <= 100, "augment.repeats", self.repeats, "1 to 100")
        for name in ("mixup", "cutmix"):
            value = getattr(self, name)
            require(0 <= value < 1000, f"augment.{name}", value, "0 or more")


_AS_PUBLISHED = {"start": 0, "held_out": 0.01, "min_decrease": 0.0, "max_experts": 0, "to_the_end": True}
ADAPT_PRESETS: dict[str, dict[str, int | float]] = {
    # How often the paper looks is ours. Neither asks how many steps are left. (The code's 40000 is a first best step, which
    # its first look overwrites.)
    "paper": {**_AS_PUBLISHED, "every": 200, "patience": 2000},
    "reference": {**_AS_PUBLISHED, "every": 2000, "patience": 5000},
}
PRESET_K = {"paper": 1, "reference": 2}  # experts of a token to begin with: backbone.options.k


@dataclass(frozen=True)
class AdaptConfig:
    """Adaptive expert selection: how many experts a task's tokens use (AdaMV-MoE, Algorithm 1)."""

    enabled: bool = option(False, "let every task find its own number of experts by its held-out loss")
    preset: Literal["own", "paper", "reference"] = option(
        "own", "paper or reference: begin with the paper's figures below, or those of its released code"
    )
    every: int = option(2000, "steps between two looks at the held-out loss")
    patience: int = option(2000, "Δn: steps without a lower held-out loss after which a task may have one expert more")
    min_decrease: float = option(
        0.0,
        "a held-out loss that falls by less than this share in Δn steps stands still; 0 = only one that does not fall",
    )
    max_experts: int = option(
        0, "experts of a token that a task may grow to; 0 = all that a layer has, as in the paper"
    )
    start: int = option(0, "steps before the first look")
    to_the_end: bool = option(
        False,
        "let tasks grow in the last Δn steps, too, after which nobody can say what it brought, as the algorithm does",
    )
    held_out: float | None = option(
        None,
        "share of the training images that is held out, and whose loss is looked at; none = 0.01 for experts, and 0.1 for a "
        "head that adapts (head.adaptive), whose labels are rarer",
    )

    def __post_init__(self) -> None:
        for name in ("every", "patience"):
            require(getattr(self, name) >= 1, f"train.adapt.{name}", getattr(self, name), "1 or more")
        for name in ("start", "max_experts"):
            require(getattr(self, name) >= 0, f"train.adapt.{name}", getattr(self, name), "0 or more")
        require(0 <= self.min_decrease < 1, "train.adapt.min_decrease", self.min_decrease, "at least 0 and below 1")
        held_out = self.held_out
        require(held_out is None or 0 < held_out < 1, "train.adapt.held_out", held_out, "none, or between 0 and 1")


@dataclass(frozen=True)
class TrainConfig:
    """The training loop. A step takes a batch of every task and changes the weights once."""

    epochs: int = option(12, "passes over the training images (of the leading task, the first one)")
    steps: int = option(0, "changes of the weights, in place of epochs; 0 = as many as the epochs need")
    batch_size: int = option(64, "images in a step of one process, of tasks that name no number of their own")
    batch_of: Literal["process", "all"] = option(
        "process", "all = batch sizes, also of tasks, are those of all processes together, as papers give them"
    )
    accumulate: int = option(1, "batches whose gradients are added before the weights change")
    clip: float = option(0.0, "largest gradient norm; 0 = off")
    ema: float = option(0.0, "decay of the averaged weights that are then used for everything; 0 = off")
    head_first: int = option(0, "epochs of the head alone, on cached features, before the backbone is trained as well")
    first: str | None = option(None, "a task that is trained alone before all of them are")
    first_steps: int = option(0, "steps of that task alone")
    first_optimiser: Mapping = option({}, "options of the optimiser that are others while it is alone")  # type: ignore[type-arg]
    first_schedule: Mapping = option({}, "options of the schedule that are others while it is alone")  # type: ignore[type-arg]
    amp: Literal["no", "auto", "bf16", "fp16"] = option(
        "no", "mixed precision; auto = bf16 where a backbone is trained on a device that computes with it"
    )
    seed: int = option(0, "the same seed on the same machine gives the same weights")
    cache: Literal["auto", "on", "off"] = option("auto", "compute frozen features once; auto = when possible")
    views: int = option(0, "with cached features: so many augmented views of each training image beside the plain one")
    cache_dtype: Literal["float32", "float16", "bfloat16"] = option("float32", "how cached features are stored")
    extract_with: Literal["auto", "torch", "onnxruntime"] = option(
        "auto", "what computes cached features; auto = onnxruntime for many images on a CPU, if installed, else torch"
    )
    checkpoint_minutes: float = option(5.0, "also save in mid-epoch when this much time has passed")
    evaluate_every: int = option(
        0,
        "steps between two evaluations on the val images; 0 = after every epoch, and with train.steps at the end only",
    )
    keep: Literal["best", "last"] = option(
        "best", "which weights leave the run; best = on the val images, of several tasks by train.best_by"
    )
    best_by: str | None = option(
        None, "with several tasks: the task whose figure chooses the best weights, or mean; none = the last are kept"
    )
    adapt: AdaptConfig = option(AdaptConfig(), "how many experts a task uses")
    weigh_costs: bool = option(
        False,
        "multiply what the shared network costs (the balance of routers) by the task's weight, as AdaMV-MoE's released code "
        "does; its paper does not",
    )
    trackers: tuple[str, ...] = option((), "tensorboard, mlflow, wandb; metrics.jsonl is always written")

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "accumulate"):
            value = getattr(self, name)
            require(value >= 1, f"train.{name}", value, "1 or more")
        for name in ("steps", "head_first", "first_steps", "evaluate_every", "clip", "checkpoint_minutes"):
            require(getattr(self, name) >= 0, f"train.{name}", getattr(self, name), "0 or more")
        require(0 <= self.views <= 1000, "train.views", self.views, "0 to 1000")
        require(0 <= self.ema < 1, "train.ema", self.ema, "at least 0 and below 1 (0.9997 is usual for long runs)")
        require(0 <= self.seed < 2**32, "train.seed", self.seed, "0 to 2³² − 1")


@dataclass(frozen=True)
class TaskConfig:
    """One task: what is asked, of which images, and how it is learned."""

    kind: str = option(
        "multi_label",
        "multi_label (any number of labels in an image), single_label (exactly one of them) or detection (boxes, and masks "
        "where the data has them)",
    )
    data: DataConfig = option(DataConfig(), "images and labels")
    image_size: int | None = option(None, "side of its images in pixels; none = that of the backbone")
    batch_size: int | None = option(None, "its images in a step of one process; none = train.batch_size")
    neck: Part = option(Part("none"), "what happens to features between backbone and head")
    head: Part = option(Part("linear"), "features to logits; of detection a detector")
    text: Part = option(Part("none"), "names of labels to vectors, for heads that work with words")
    zero_shot: ZeroShotConfig = option(ZeroShotConfig(), "labels that training never tells")
    loss: Part = option(Part("bce"), "logits and labels to one number; a detector has its own")
    augment: AugmentConfig = option(AugmentConfig(), "changes to training images")
    weight: float = option(1.0, "weight of its loss beside those of other tasks")
    lr_scale: float = option(
        1.0, "rate of its own parts (embeddings, router, neck, head) as a multiple of optimiser.lr"
    )

    def __post_init__(self) -> None:
        size, batch = self.image_size, self.batch_size
        require(size is None or 16 <= size <= 4096, "image_size", size, "none, or 16 to 4096 pixels")
        require(batch is None or batch >= 1, "batch_size", batch, "none, or 1 or more")
        require(self.weight >= 0, "weight", self.weight, "0 or more")
        require(self.lr_scale > 0, "lr_scale", self.lr_scale, "above 0")


LABELS = "labels"  # the name of the task of a run that names none


@dataclass(frozen=True)
class Config:
    """Everything a run needs to be repeated. In files, a run with one task has its settings at the top (shorthand.py)."""

    tasks: dict[str, TaskConfig] = option({LABELS: TaskConfig()}, "the tasks by name")
    backbone: BackboneConfig = option(BackboneConfig(), "the image encoder that they share")
    optimiser: Part = option(Part("adamw"), "how weights change")
    schedule: Part = option(Part("one_cycle"), "how the rate changes over time")
    train: TrainConfig = option(TrainConfig(), "the loop")

    @property
    def only(self) -> TaskConfig:
        """The task of a run that has one."""
        (task,) = self.tasks.values()
        return task

    @property
    def lead(self) -> str:
        """The task whose epochs are counted."""
        return next(iter(self.tasks))

    def batch_size(self, task: str) -> int:
        return self.tasks[task].batch_size or self.train.batch_size

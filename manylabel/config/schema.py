"""Every setting of a run, with its documentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from manylabel.config.option import Part, option
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
    split_file: str | None = option(None, "which image is in which part: a CSV made by 'manylabel data split'")
    fold: int | None = option(None, "with a split_file of folds: the one to judge on")
    validation_share: float = option(0.2, "share held out when the data has no split column")
    max_bad_share: float = option(0.01, "share of unreadable images above which a run stops")
    workers: int = option(2, "processes that decode images; 0 = in the main process")
    scenes: ScenesConfig = option(ScenesConfig(), "settings of the embedded data")

    def __post_init__(self) -> None:
        require(0 < self.validation_share < 1, "data.validation_share", self.validation_share, "between 0 and 1")
        require(0 <= self.max_bad_share <= 1, "data.max_bad_share", self.max_bad_share, "between 0 and 1")
        require(self.workers >= 0, "data.workers", self.workers, "0 or more")


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
    weights: str = option("auto", "auto, pip, hub, none (random), or a local .safetensors/.pth file")
    image_size: int | None = option(None, "side in pixels; none = what the weights were trained for")
    enlarge: float = option(
        1.0, "without image_size: so many times the side that the weights were trained for, in steps of 32 pixels"
    )
    resize: Literal["stretch", "crop", "pad"] = option("stretch", "how a photo becomes square")
    freeze: Literal["frozen", "partial", "full"] = option("frozen", "what is trained: nothing, the last layers, or all")
    trained_after: str | None = option(
        None, "with freeze=partial: all behind this stage is trained; none = the last quarter of the stages"
    )
    batch_norm: Literal["auto", "fixed", "moving"] = option(
        "auto", "statistics of batch norms in trained layers; auto = fixed, but moving with random weights"
    )
    options: Mapping = option({}, "of a backbone that is not timm's, e.g. moe_vit")  # type: ignore[type-arg]

    def __post_init__(self) -> None:
        size = self.image_size
        require(size is None or 16 <= size <= 4096, "backbone.image_size", size, "none, or 16 to 4096 pixels")
        require(0.25 <= self.enlarge <= 4, "backbone.enlarge", self.enlarge, "between 0.25 and 4")


@dataclass(frozen=True)
class AugmentConfig:
    """What happens to training images. With cached features that is done `train.views` times, once and for all."""

    flip: bool = option(False, "mirror left and right")
    random_crop: float = option(0.0, "smallest share of the area that a random crop keeps; 0 = off")
    randaugment: int = option(0, "RandAugment magnitude (9 is usual); 0 = off")
    autoaugment: bool = option(False, "AutoAugment with the policy found for ImageNet")
    colour: float = option(0.0, "strength of brightness, contrast and saturation jitter; 0 = off")
    cutout: float = option(0.0, "side of one grey square as a share of the image; 0 = off")
    erasing: float = option(0.0, "probability of RandomErasing; 0 = off")
    mixup: float = option(0.0, "Beta parameter of MixUp; 0 = off")
    cutmix: float = option(0.0, "Beta parameter of CutMix; 0 = off")

    def __post_init__(self) -> None:
        for name in ("random_crop", "cutout", "erasing", "colour"):
            value = getattr(self, name)
            require(0 <= value <= 1, f"augment.{name}", value, "between 0 and 1")
        require(0 <= self.randaugment <= 30, "augment.randaugment", self.randaugment, "0 to 30")
        for name in ("mixup", "cutmix"):
            value = getattr(self, name)
            require(0 <= value < 1000, f"augment.{name}", value, "0 or more")


@dataclass(frozen=True)
class TrainConfig:
    """The training loop."""

    epochs: int = option(12, "passes over the training images")
    batch_size: int = option(64, "images in a step of one process")
    accumulate: int = option(1, "steps whose gradients are added before the weights change")
    clip: float = option(0.0, "largest gradient norm; 0 = off")
    ema: float = option(0.0, "decay of the averaged weights that are then used for everything; 0 = off")
    head_first: int = option(0, "epochs of the head alone, on cached features, before the backbone is trained as well")
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
    keep: Literal["best", "last"] = option("best", "which epoch's weights leave the run; best = on the validation part")
    trackers: tuple[str, ...] = option((), "tensorboard, mlflow, wandb; metrics.jsonl is always written")

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "accumulate"):
            value = getattr(self, name)
            require(value >= 1, f"train.{name}", value, "1 or more")
        require(self.head_first >= 0, "train.head_first", self.head_first, "0 or more")
        require(0 <= self.views <= 1000, "train.views", self.views, "0 to 1000")
        require(0 <= self.ema < 1, "train.ema", self.ema, "at least 0 and below 1 (0.9997 is usual for long runs)")
        require(0 <= self.seed < 2**32, "train.seed", self.seed, "0 to 2³² − 1")
        require(self.clip >= 0, "train.clip", self.clip, "0 or more")
        require(self.checkpoint_minutes >= 0, "train.checkpoint_minutes", self.checkpoint_minutes, "0 or more")


# What trains tasks of a kind unless somebody says otherwise, where that is not Config.loss.
OWN_LOSS = {"single_label": "cross_entropy"}  # the labels compete


@dataclass(frozen=True)
class Config:
    """Everything a run needs to be repeated."""

    task: Literal["multi_label", "single_label"] = option(
        "multi_label", "any number of labels in an image, or exactly one of them"
    )
    data: DataConfig = option(DataConfig(), "images and labels")
    backbone: BackboneConfig = option(BackboneConfig(), "the image encoder")
    neck: Part = option(Part("none"), "what happens to features between backbone and head")
    head: Part = option(Part("linear"), "features to logits")
    text: Part = option(Part("none"), "names of labels to vectors, for heads that work with words")
    zero_shot: ZeroShotConfig = option(ZeroShotConfig(), "labels that training never tells")
    loss: Part = option(Part("bce"), "logits and labels to one number")
    optimiser: Part = option(Part("adamw"), "how weights change")
    schedule: Part = option(Part("one_cycle"), "how the rate changes over time")
    augment: AugmentConfig = option(AugmentConfig(), "changes to training images")
    train: TrainConfig = option(TrainConfig(), "the loop")

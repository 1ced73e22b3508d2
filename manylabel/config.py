"""Settings: frozen dataclasses, read from strict YAML and `--set` overrides, written out whole with every run.

The help text of each field is its documentation. An unknown key is an error that names the closest one.
Parts that can be exchanged (head, loss, …) are a registry name with options: `head: {name: linear, dropout: 0.1}`
or just `head: linear`. Their options are checked by the registry that owns them.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from manylabel.error import ConfigError
from manylabel.require import require
from manylabel.suggest import closest

C = TypeVar("C")


def option(default: Any, text: str) -> Any:
    """A dataclass field with its documentation."""
    if isinstance(default, (list, dict, set)) or is_dataclass(default) or isinstance(default, Part):
        return field(default_factory=lambda: default, metadata={"help": text})
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Part:
    """A registry name with its options."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        return {"name": self.name, **self.options}


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
class BackboneConfig:
    """The image encoder."""

    name: str = option("efficientnet_lite0", "a bundled backbone or any timm model")
    weights: str = option("auto", "auto, pip, hub, none (random), or a local .safetensors/.pth file")
    image_size: int | None = option(None, "side in pixels; none = what the weights were trained for")
    resize: Literal["stretch", "crop", "pad"] = option("stretch", "how a photo becomes square")
    freeze: Literal["frozen", "partial", "full"] = option("frozen", "what is trained: nothing, the last groups, or all")
    trainable_groups: int = option(2, "with freeze=partial: how many of the last layer groups are trained")

    def __post_init__(self) -> None:
        size = self.image_size
        require(size is None or 16 <= size <= 4096, "backbone.image_size", size, "none, or 16 to 4096 pixels")


@dataclass(frozen=True)
class AugmentConfig:
    """What happens to training images; anything but 'nothing' needs pixels, so it rules out the feature cache."""

    flip: bool = option(False, "mirror left and right")
    random_crop: float = option(0.0, "smallest share of the area that a random crop keeps; 0 = off")
    randaugment: int = option(0, "RandAugment magnitude (9 is usual); 0 = off")
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
    amp: Literal["no", "bf16", "fp16"] = option("no", "mixed precision")
    seed: int = option(0, "the same seed on the same machine gives the same weights")
    cache: Literal["auto", "on", "off"] = option("auto", "compute frozen features once; auto = when possible")
    cache_dtype: Literal["float32", "float16"] = option("float32", "how cached features are stored")
    checkpoint_minutes: float = option(5.0, "also save in mid-epoch when this much time has passed")
    keep: Literal["best", "last"] = option("best", "which epoch's weights leave the run; best = validation mAP")
    trackers: tuple[str, ...] = option((), "tensorboard, mlflow, wandb; metrics.jsonl is always written")

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "accumulate"):
            value = getattr(self, name)
            require(value >= 1, f"train.{name}", value, "1 or more")
        require(0 <= self.ema < 1, "train.ema", self.ema, "at least 0 and below 1 (0.9997 is usual for long runs)")
        require(self.seed >= 0, "train.seed", self.seed, "0 or more")
        require(self.clip >= 0, "train.clip", self.clip, "0 or more")
        require(self.checkpoint_minutes >= 0, "train.checkpoint_minutes", self.checkpoint_minutes, "0 or more")


@dataclass(frozen=True)
class Config:
    """Everything a run needs to be repeated."""

    data: DataConfig = option(DataConfig(), "images and labels")
    backbone: BackboneConfig = option(BackboneConfig(), "the image encoder")
    neck: Part = option(Part("none"), "what happens to features between backbone and head")
    head: Part = option(Part("linear"), "features to logits")
    loss: Part = option(Part("bce"), "logits and labels to one number")
    optimiser: Part = option(Part("adamw"), "how weights change")
    schedule: Part = option(Part("one_cycle"), "how the rate changes over time")
    augment: AugmentConfig = option(AugmentConfig(), "changes to training images")
    train: TrainConfig = option(TrainConfig(), "the loop")


def parse(cls: type[C], values: Mapping[str, Any], where: str = "") -> C:
    """A dataclass from plain values; wrong keys and types are errors that say where."""
    hints = get_type_hints(cls)
    known = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
    made: dict[str, Any] = {}
    for key, value in values.items():
        path = f"{where}.{key}" if where else str(key)
        if key not in known:
            raise ConfigError(f"there is no setting {path!r}{closest(str(key), known)}")
        made[str(key)] = _convert(hints[str(key)], value, path)
    missing = [n for n, f in known.items() if n not in made and f.default is MISSING and f.default_factory is MISSING]
    if missing:
        raise ConfigError(f"{where or cls.__name__} needs {', '.join(missing)}")
    return cls(**made)


def _convert(hint: Any, value: Any, where: str) -> Any:
    """`value` as the type `hint` asks for, or an error that names the field."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Part:
        return _part(value, where)
    if is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} takes settings of its own (a mapping), not {value!r}")
        return parse(hint, value, where)  # type: ignore[arg-type]
    if origin is Literal:
        if isinstance(value, bool):  # YAML reads on, off, yes and no as booleans
            value = next((a for a in arguments if a in (("on", "yes") if value else ("off", "no"))), value)
        if value not in arguments:
            raise ConfigError(f"{where} cannot be {value!r}{closest(str(value), arguments)}")
        return value
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _convert(next(a for a in arguments if a is not type(None)), value, where)
    if origin is tuple:
        items = value.split(",") if isinstance(value, str) else value if isinstance(value, (list, tuple)) else [value]
        items = [item.strip() if isinstance(item, str) else item for item in items]
        return tuple(_convert(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(items))
    if hint is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if hint is float and isinstance(value, str):  # YAML reads 1e-3 (no dot) as text
        try:
            return float(value)
        except ValueError:
            pass
    if hint is str and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if hint in (Any, Mapping) or (isinstance(value, hint) and not (hint is int and isinstance(value, bool))):
        return value
    raise ConfigError(f"{where} must be {hint.__name__}, not {value!r}")


def _part(value: Any, where: str) -> Part:
    if isinstance(value, Part):
        return value
    if isinstance(value, str):
        return Part(value)
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return Part(value["name"], {k: v for k, v in value.items() if k != "name"})
    raise ConfigError(f"{where} must be a name, or a mapping with a 'name', not {value!r}")


def plain(config: Any) -> dict[str, Any]:
    """The config as nested dicts of YAML values."""
    if isinstance(config, Part):
        return config.plain()
    return {
        f.name: plain(v) if is_dataclass(v := getattr(config, f.name)) else list(v) if isinstance(v, tuple) else v
        for f in fields(config)
    }


def dump(config: Config) -> str:
    return yaml.safe_dump(plain(config), sort_keys=False, allow_unicode=True)


def load_yaml(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold settings (key: value), not a {type(values).__name__}")
    return values


def recipe_folder() -> Path:
    """Where the recipes are: inside the installed package, or beside it in a source tree."""
    inside = Path(__file__).parent / "recipes"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "recipes"


def recipe_names() -> list[str]:
    return sorted(path.stem for path in recipe_folder().glob("*.yaml"))


def load_recipe(name: str) -> dict[str, Any]:
    """A recipe by name, or by the path of a YAML file."""
    if name.endswith((".yaml", ".yml")):
        return load_yaml(Path(name))
    path = recipe_folder() / f"{name}.yaml"
    if name not in recipe_names():
        raise ConfigError(f"there is no recipe {name!r}{closest(name, recipe_names())}")
    return load_yaml(path)


def override(values: dict[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """`values` with each 'a.b=c' applied. Another name for a part drops the old part's options, whatever the order."""
    pairs = [_setting(setting) for setting in settings]
    names_first = sorted(pairs, key=lambda pair: pair[0][-1] != "name")
    merged = _copy(values)
    for keys, value in names_first:
        nested: dict[str, Any] = {keys[-1]: value}
        for key in reversed(keys[:-1]):
            nested = {key: nested}
        merged = merge(merged, nested)
    return merged


def _setting(text: str) -> tuple[list[str], Any]:
    """(['a', 'b'], value) of 'a.b=value'; text for a text field, YAML for everything else."""
    key, equals, value = text.partition("=")
    keys = key.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError(f"--set {text!r} is not of the form section.key=value, e.g. --set train.epochs=20")
    if _is_text(keys):
        return keys, None if value in ("", "null", "none") and keys[-1] != "weights" else value
    try:
        return keys, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {text!r}: the value is not valid YAML") from error


def _is_text(keys: list[str]) -> bool:
    """Whether the field is text: there a delimiter like | or , must not be read as YAML."""
    hint: Any = Config
    for key in keys:
        hint = get_type_hints(hint).get(key) if is_dataclass(hint) and hint is not Part else None
    return hint is str or (get_origin(hint) in (Union, types.UnionType) and str in get_args(hint))


def _copy(values: dict[str, Any]) -> dict[str, Any]:
    return {k: _copy(v) if isinstance(v, dict) else v for k, v in values.items()}


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Config values with others laid on top, section by section; a part with another name replaces the old one whole."""
    merged = _copy(dict(base))
    defaults = Config()
    for key, value in over.items():
        default = getattr(defaults, key, None)
        if isinstance(default, Part):
            old, new = _named(merged.get(key, {})), _named(value)
            renamed = isinstance(new, dict) and "name" in new and new["name"] != old.get("name", default.name)
            merged[key] = new if renamed or not isinstance(new, dict) else {**old, **new}
        else:
            merged[key] = _laid_over(merged.get(key), value)
    return merged


def _laid_over(old: Any, new: Any) -> Any:
    if not (isinstance(old, dict) and isinstance(new, Mapping)):
        return new
    return {**old, **{key: _laid_over(old.get(key), value) for key, value in new.items()}}


def _named(part: Any) -> Any:
    """A part as a dict, however it was written."""
    return {"name": part} if isinstance(part, str) else part


def make_config(recipe: str | None = None, settings: Iterable[str] = (), **sections: Any) -> Config:
    """A config from a recipe, then sections (dicts, or names of parts), then --set overrides; later ones win."""
    values = override(merge(load_recipe(recipe) if recipe else {}, sections), settings)
    defaults = Config()
    for key, value in values.items():  # 'head.dropout=0.1' alone means the default head
        default = getattr(defaults, key, None)
        if isinstance(default, Part) and isinstance(value, dict):
            value.setdefault("name", default.name)
    return parse(Config, values)


__all__ = ["Config", "Part", "dump", "make_config", "option", "override", "parse", "plain"]

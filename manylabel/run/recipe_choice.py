"""Which recipe a run begins with: the one that was asked for, the one of a way to transfer, or the one that suits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manylabel import console
from manylabel.config import Config, TaskConfig, load_recipe, make_config, merge, names_tasks
from manylabel.error import ConfigError
from manylabel.head import HEADS
from manylabel.suggest import closest
from manylabel.task import kind_of

DEFAULT = "laptop"
TRANSFER = {  # how much of the backbone is trained, and what a run of that kind begins with
    "lp": "linear-probe",
    "rm": "rm-laptop",
    "partial": "laptop",
    "ft": "fine-tune",
}


def choose_recipe(
    recipe: str | Mapping[str, Any] | None, transfer: str | None, settings: list[str], given: Mapping[str, Any]
) -> Mapping[str, Any] | str | None:
    """A recipe's name or content; None = the defaults of every part."""
    if recipe is not None and transfer is not None:
        raise ConfigError(f"a recipe ({recipe}) says how to transfer by itself; leave --transfer or --recipe out")
    if recipe is not None:
        return recipe
    if names_tasks({}, settings, given):
        if transfer is not None:
            raise ConfigError(
                f"--transfer {transfer} is for a run whose task has no name; beside tasks say what is trained with --set "
                "backbone.freeze=…"
            )
        return None
    asked = make_config(None, settings, **given)
    if transfer is not None:
        return _for_task(asked, _transferred(transfer, asked, _names("head", settings, given)))
    if _names("head", settings, given):
        return _for_task(asked, _suited_to_head(asked))
    if _names("neck", settings, given) or _freezes(settings, given):
        return None
    console.say(f"settings: recipe {DEFAULT} (choose another with --recipe, or how to transfer with --transfer)")
    return _for_task(asked, load_recipe(DEFAULT))


def _transferred(transfer: str, asked: Config, names_head: bool) -> dict[str, Any]:
    """A way to transfer, with any head: the head's own settings, where it has some, and the backbone and neck of this."""
    if transfer not in TRANSFER:
        raise ConfigError(f"--transfer: {transfer!r} is none of {', '.join(TRANSFER)}{closest(transfer, TRANSFER)}")
    values = load_recipe(TRANSFER[transfer])
    if not names_head:
        return values
    own = HEADS.get(asked.only.head.name).recipe
    if transfer == "lp" and asked.only.head.name != "linear":
        raise ConfigError(f"lp is a linear head on a frozen backbone; for {asked.only.head.name} on one use --frozen")
    if transfer == "rm" and own is not None:
        return merge(load_recipe(own), {part: values[part] for part in ("backbone", "neck")})
    same = values["head"] if isinstance(values["head"], dict) else {"name": values["head"]}
    return values if same["name"] == asked.only.head.name else {**values, "head": asked.only.head.name}


def _suited_to_head(asked: Config) -> dict[str, Any] | None:
    """For heads that have a recipe of their own, on frozen backbones with a cache."""
    if asked.only.head.name not in HEADS or asked.backbone.freeze != "frozen" or asked.train.cache == "off":
        return None
    recipe: str | None = HEADS.get(asked.only.head.name).recipe
    if recipe is None:
        return None
    console.say(f"settings that suit {asked.only.head.name}: recipe {recipe} (choose another with --recipe)")
    return load_recipe(recipe)


def _for_task(asked: Config, values: dict[str, Any] | None) -> dict[str, Any] | None:
    """Recipes' losses are for many labels, so a task with a loss of its own goes without."""
    if values is None or kind_of(asked.only).defaults.loss == TaskConfig().loss.name:
        return values
    return {key: value for key, value in values.items() if key != "loss"}


def _names(part: str, settings: list[str], given: Mapping[str, Any]) -> bool:
    """Whether another part is named, not only an option of it."""
    named = given.get(part)
    said = named is not None and (not isinstance(named, Mapping) or "name" in named)
    return said or any(setting.partition("=")[0].strip() in (part, f"{part}.name") for setting in settings)


def _freezes(settings: list[str], given: Mapping[str, Any]) -> bool:
    backbone = given.get("backbone")
    said = isinstance(backbone, Mapping) and "freeze" in backbone
    return said or any(setting.startswith("backbone.freeze") for setting in settings)

"""Backbones by name: the kinds that are registered, and every model of timm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import timm

from manylabel.backbone.body import BODIES
from manylabel.backbone.bundled import BUNDLED
from manylabel.backbone.timm import is_timm, timm_body, usual_size
from manylabel.config import BackboneConfig, Part, plain
from manylabel.error import ConfigError
from manylabel.suggest import closest

USUAL = 224  # pixels, where a kind does not say what it was made for


def is_known(name: str) -> bool:
    return name in BODIES or is_timm(name)


def check_known(name: str) -> None:
    if not is_known(name):
        known = [*BODIES.names(), *BUNDLED, *timm.list_models()]
        raise ConfigError(f"there is no backbone {name!r}{closest(name, known)}")


def resolved(config: BackboneConfig) -> BackboneConfig:
    """With every option of a registered kind written out; an unknown name or option is an error."""
    if config.name in BODIES:
        given = {name: None if value == "none" else value for name, value in config.options.items()}
        return replace(config, options=plain(BODIES.options(Part(config.name, given))))
    if config.options:
        check_known(config.name)
        raise ConfigError(
            f"backbone.options are for {', '.join(BODIES.names())}; {config.name} takes none of {', '.join(config.options)}"
        )
    return config


def sized(config: BackboneConfig) -> BackboneConfig:
    """With `enlarge`, the size in pixels that it means for these weights."""
    if config.enlarge == 1 or config.image_size is not None:
        return config
    usual = USUAL if config.name in BODIES else usual_size(config.name)
    return replace(config, image_size=max(32, 32 * round(config.enlarge * usual / 32)))


def make_body(config: BackboneConfig, load_weights: bool, tasks: Mapping[str, int | None]) -> Any:
    """`tasks`: by name the side of their images, where it is another than the backbone's."""
    if config.name in BODIES:
        if config.drop_path:
            raise ConfigError(f"backbone.drop_path is for timm's models; use backbone.options for {config.name}")
        own = {"tasks": tasks} if getattr(BODIES.get(config.name), "per_task", False) else {}
        return BODIES.build(Part(config.name, config.options), config=config, load_weights=load_weights, **own)
    check_known(config.name)
    return timm_body(config, load_weights)

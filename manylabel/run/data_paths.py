"""The paths in the settings of a run: absolute in its own folder, bare names in what leaves it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from manylabel.config import Config, DataConfig, Part
from manylabel.zero_shot import is_file_name


def absolute(data: DataConfig) -> DataConfig:
    """With paths that hold from any folder."""
    return _each_path(data, os.path.abspath)


def anonymous(data: DataConfig) -> DataConfig:
    """With names only, for a bundle says nothing about the machine it was made on."""
    return _each_path(data, os.path.basename)


def with_absolute_paths(config: Config) -> Config:
    """All sections with paths that hold from any folder."""
    return replace(_other_paths(config, os.path.abspath), data=absolute(config.data))


def without_paths(config: Config) -> Config:
    """All sections with names only."""
    return replace(_other_paths(config, os.path.basename), data=anonymous(config.data))


def _other_paths(config: Config, change: Callable[[str], str]) -> Config:
    unseen = config.zero_shot.unseen
    zero_shot = replace(config.zero_shot, unseen=change(unseen)) if is_file_name(unseen) else config.zero_shot
    return replace(config, text=_each_text_path(config.text, change), zero_shot=zero_shot)


def _each_text_path(text: Part, change: Callable[[str], str]) -> Part:
    paths = {key: change(text.options[key]) for key in ("path", "labels") if text.options.get(key)}
    return Part(text.name, {**text.options, **paths})


def _each_path(data: DataConfig, change: Callable[[str], str]) -> DataConfig:
    def changed(path: str | None) -> str | None:
        return change(path) if path else path

    return replace(
        data,
        path=data.path if data.path in ("", "scenes") else change(data.path),
        images=changed(data.images),
        labels=changed(data.labels),
        split_file=changed(data.split_file),
    )

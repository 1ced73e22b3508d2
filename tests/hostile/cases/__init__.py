"""All cases, by category."""

from __future__ import annotations

from hostile.case import Case
from hostile.cases import (
    arrays,
    bundles,
    cache,
    ending,
    environment,
    folders,
    image_files,
    label_files,
    labels,
    links,
    outputs,
    own_files,
    settings,
    strangers_files,
    trained_photos,
)

MODULES = (
    trained_photos,
    arrays,
    outputs,
    own_files,
    folders,
    links,
    cache,
    ending,
    bundles,
    strangers_files,
    image_files,
    label_files,
    labels,
    settings,
    environment,
)


def all_cases() -> list[Case]:
    return [case for module in MODULES for group in module.groups() for case in group]

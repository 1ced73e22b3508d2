"""Commands that list what there is to choose from."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

import typer

from manylabel.error import ManylabelError
from manylabel.runtime.terminal import echo
from manylabel.suggest import closest


def heads() -> None:
    """List the heads with their options."""
    from manylabel.head import HEADS
    from manylabel.printing import print_registry

    print_registry(HEADS)


def losses() -> None:
    """List the losses with their options."""
    from manylabel.loss import LOSSES
    from manylabel.printing import print_registry

    print_registry(LOSSES)


def detectors() -> None:
    """List what finds boxes and masks in a recipe with several tasks, with its options.

    \b
    manylabel train voc12/ --recipe adamv-moe-voc --set tasks.objects.head.stages=1
    """
    from manylabel.detect import DETECTORS
    from manylabel.printing import print_registry

    print_registry(DETECTORS)


def texts() -> None:
    """List where text vectors of labels can come from, with their options."""
    from manylabel.printing import print_registry
    from manylabel.text import EMBEDDERS

    print_registry(EMBEDDERS)


def backbones(
    pattern: Annotated[str, typer.Argument(help="e.g. 'vit*'; default: those with weights by pip")] = "",
) -> None:
    """List backbones: those whose weights come by pip, kinds of our own, or timm's that match a pattern."""
    from manylabel.backbone import BODIES, BUNDLED
    from manylabel.config.listing import settings_of

    if not pattern:
        for name, facts in BUNDLED.items():
            echo(f"{name:32} weights by pip (timm's {facts.timm_name})")
        for name, what in BODIES.summary().items():
            echo(f"{name:32} {what}")
        echo("and any timm model, e.g.: manylabel backbones 'convnext*'")
        return
    if pattern in BODIES:
        echo(f"{pattern}: {BODIES.summary()[pattern]}\n")
        for key, default, text in settings_of(BODIES.get(pattern).Options(), "backbone.options."):
            echo(f"    {key} = {default}: {text}")
        return
    import timm

    found = timm.list_models(pattern if "*" in pattern else f"*{pattern}*")
    if not found:
        raise ManylabelError(f"no timm model matches {pattern!r}{closest(pattern, timm.list_models())}")
    echo("\n".join(found))


def recipes() -> None:
    """List the recipes."""
    from manylabel.config import recipe_folder, recipe_names

    for name in recipe_names():
        first = (recipe_folder() / f"{name}.yaml").read_text(encoding="utf-8").splitlines()[0]
        echo(f"{name:28} {first.lstrip('# ')}")


def settings(
    part: Annotated[str, typer.Argument(help="only keys that hold this, e.g. 'experts' or 'data.'")] = "",
) -> None:
    """List every setting that --set and recipes take, with its default; recipes change some.

    \b
    manylabel settings train.
    manylabel settings selection
    """
    found = False
    for title, listed in listed_settings().items():
        chosen = [row for row in listed if part in row[0]]
        if chosen:
            echo(f"{title}:")
            width = max(len(f"{key} = {default}") for key, default, _ in chosen)
            for key, default, text in chosen:
                echo(f"    {f'{key} = {default}':{width}}  {text}")
            echo("")
            found = True
    if not found:
        every = [key for listed in listed_settings().values() for key, _, _ in listed]
        raise ManylabelError(f"no setting holds {part!r}{closest(part, every)}")
    echo("options of a head, loss, detector or text go beside its name (head.dim=256): manylabel heads, losses, …")


def listed_settings() -> dict[str, list[tuple[str, str, str]]]:
    """(key, default, meaning) of every setting, by what it is for."""
    from manylabel.backbone import BODIES
    from manylabel.config.listing import settings_of, settings_of_one_task, settings_of_several_tasks, written
    from manylabel.neck import NECKS
    from manylabel.training.optimise import OPTIMISERS, SCHEDULES

    found = {"one question": settings_of_one_task(), "recipes with several tasks": settings_of_several_tasks()}
    for registry in (OPTIMISERS, SCHEDULES, NECKS):
        for name in registry.summary():
            options = fields(registry.get(name).Options)
            rows = [(f"{registry.section}.{o.name}", written(o.default), o.metadata.get("help", "")) for o in options]
            found[f"{registry.section}.name={name}"] = rows
    for name in BODIES.names():
        found[f"backbone.name={name}"] = settings_of(BODIES.get(name).Options(), "backbone.options.")
    return found

"""What a run's folder holds. Only these files are ever replaced or removed, and only where the folder is a run of ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from manylabel.data.walk import is_among_images
from manylabel.error import ConfigError
from manylabel.storage.atomic import write_json, write_text
from manylabel.storage.lock import check_nobody_says_so, only_one
from manylabel.storage.output import check_is_folder, wrote

MARK = "run.json"  # it says "manylabel", and is the first file that a run writes
CHECKPOINTS = ("step-*.safetensors", "step-*.json", "best.safetensors", "best.json")
HOLDS: dict[str, tuple[str, ...]] = {  # folder → files; of one task, or of several
    ".": (
        MARK,
        "config.yaml",
        "metrics.jsonl",
        "results.json",
        "details.json",
        "scores.npz",
        "trained_images.safetensors",
        "report.html",
        "split.csv",
        "bad_images.csv",
    ),
    "checkpoints": CHECKPOINTS,
    "head_first": ("metrics.jsonl", "bad_images.csv"),
    "head_first/checkpoints": CHECKPOINTS,
    "bundle": (
        "weights.safetensors",
        "labels.json",
        "tasks.json",
        "preprocess.json",
        "config.yaml",
        "README.md",
        "checksums.json",
    ),
    "tasks/*": ("split.csv", "bad_images.csv"),
    "routing": ("step-*.npz", "patches-*.png"),
    "figures": ("[0-9][0-9]-*.png",),
}


def is_run(folder: Path) -> bool:
    """Whether this folder carries the mark of a run."""
    try:
        facts = json.loads((folder / MARK).read_bytes()[:1_000_000])
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(facts, dict) and isinstance(facts.get("manylabel"), str)


def owned(folder: Path) -> Iterator[Path]:
    """What is there under the names of a run's files."""
    for inside, names in HOLDS.items():
        for place in [folder] if inside == "." else sorted(folder.glob(inside)):
            for name in names:
                yield from sorted(path for path in place.glob(name) if path.is_symlink() or path.is_file())


def check_folder(folder: Path, data: Iterable[str | None], overwrite: bool, resume: bool = False) -> None:
    """Never write over another run unasked, nor over what is no run's, nor among the images; `data` are all its paths."""
    check_is_folder(folder)
    if resume:
        return
    for path in (Path(each).resolve() for each in data if each and each != "scenes"):
        _refuse_data(folder, path)
    if not is_run(folder):
        found = next(owned(folder), None)
        if found is not None:
            raise ConfigError(
                f"{folder} holds {found.relative_to(folder)}, and is not a run of manylabel's (no {MARK} that says so); "
                "choose another --out"
            )
        return
    if not overwrite:
        check_nobody_says_so(folder)
        raise ConfigError(
            f"{folder} already holds a run; --resume goes on with it, --overwrite replaces it, or choose another --out"
        )
    for place in {folder / "tasks", *(place for name in HOLDS if name != "." for place in folder.glob(name))}:
        if place.is_symlink():
            raise ConfigError(
                f"{place} is a link, and what it leads to may be another's; remove it, or choose another --out"
            )


def _refuse_data(folder: Path, data: Path) -> None:
    """Not the data's own folder, nor one in it that holds images."""
    if folder.resolve() in (data, data.parent):
        raise ConfigError(f"{folder} is the folder of the data; choose another --out")
    if not is_run(folder) and is_among_images(folder, data):
        raise ConfigError(f"{folder} is a folder of images in the data; choose another --out")


@contextmanager
def claimed(folder: Path, check: Callable[[], None], here: bool) -> Iterator[None]:
    """No other run works in this folder meanwhile. `here`: of several processes only the main one claims it."""
    with only_one(folder) if here else nullcontext():
        if here:
            check()  # once more: another run may have ended in it just now
        yield


def begin_run(folder: Path, facts: dict[str, Any], config: str, resume: bool) -> None:
    """In place of an older run, if there is one and it does not go on: the mark, then the settings."""
    if not resume:
        remove_run(folder)
    write_json(folder / MARK, facts)
    write_text(folder / "config.yaml", config)


def remove_run(folder: Path) -> None:
    """Remove what an earlier run left; called only when its successor is sure to begin."""
    if not is_run(folder):
        return
    for path in owned(folder):
        if path.name == MARK or (path.parent.name == "figures" and not wrote(path)):
            continue
        path.unlink(missing_ok=True)
    (folder / MARK).unlink(missing_ok=True)  # last: a removal that is cut short can be begun again
    for name in sorted(HOLDS, key=len, reverse=True):
        for place in folder.glob(name) if name != "." else ():
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()

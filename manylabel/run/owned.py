"""What a run's folder holds. Only these files are ever replaced or removed, and only where the folder is a run of ours.

What only a program writes (weights, arrays, checkpoints) is known by its exact name. What a person may have written or
edited (settings, tables, results, pages, a model card) must in addition be as the run wrote it: by a mark, a receipt, or the
checksums of the bundle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from manylabel.data.walk import is_among_images
from manylabel.error import ConfigError, ManylabelError
from manylabel.storage.atomic import sha256, write_json
from manylabel.storage.json_text import read_object
from manylabel.storage.lock import check_nobody_says_so, only_one
from manylabel.storage.output import check_is_folder, wrote
from manylabel.storage.plain_file import MB, open_plain
from manylabel.storage.receipt import receipt_of, write_ours

MARK = "run.json"  # it says "manylabel", and is the first file that a run writes
SIGNED = (
    "receipts"  # in it: this run leaves receipts; earlier versions did not, and their files are known by name alone
)
ROW = b'{"epoch"'  # of a history, in metrics.jsonl
Proof = Callable[[Path], bool]


def _by_name(path: Path) -> bool:
    return True


def _is_history(path: Path) -> bool:
    """Whether it begins as a history does, which a kill may have cut off early."""
    with open_plain(path) as file:
        return ROW.startswith(file.read(len(ROW)))


def _is_signed(path: Path) -> bool:
    """Whether it is as the bundle's checksums say, which are written last."""
    sums = path.with_name("checksums.json")
    if not sums.exists():
        return path.with_name("weights.safetensors").exists()
    said = read_object(sums).get("sha256")
    return isinstance(said, dict) and said.get(path.name) == sha256(path)


CHECKPOINTS: dict[str, Proof] = {r"step-\d{9}\.(safetensors|json)": _by_name, r"best\.(safetensors|json)": _by_name}
TABLES: dict[str, Proof] = {r"split\.csv": wrote, r"bad_images\.csv": wrote}
HISTORY: dict[str, Proof] = {r"metrics\.jsonl": _is_history}
HOLDS: dict[str, dict[str, Proof]] = {  # folder → names of files; of one task, or of several
    ".": {
        r"run\.json": _by_name,
        r"config\.yaml": wrote,
        r"results\.json": wrote,
        r"details\.json": wrote,
        r"report\.html": wrote,
        r"scores\.npz": _by_name,
        r"trained_images\.safetensors": _by_name,
        **HISTORY,
        **TABLES,
    },
    "checkpoints": CHECKPOINTS,
    "head_first": {**HISTORY, **TABLES},
    "head_first/checkpoints": CHECKPOINTS,
    "bundle": {
        r"weights\.safetensors": _by_name,
        r"(labels|tasks|preprocess|checksums)\.json": _by_name,
        r"config\.yaml": _by_name,
        r"README\.md": _is_signed,
    },
    "bundle/tasks": {},
    "bundle/tasks/*": {r"(labels|preprocess)\.json": _by_name},
    "tasks": {},
    "tasks/*": {
        r"results\.json": wrote,
        r"details\.json": wrote,
        r"report\.html": wrote,
        r"scores\.npz": _by_name,
        **TABLES,
    },
    "routing": {r"step-\d{9}\.npz": _by_name, r"patches-.+-\d+\.png": wrote},
    "figures": {r"\d\d-.+\.png": wrote},
}
ONLY_READ = ("config.yaml", "metrics.jsonl")  # by a run that goes on, which writes all others anew


def is_run(folder: Path) -> bool:
    """Whether this folder carries the mark of a run."""
    return isinstance(_mark(folder).get("manylabel"), str)


def _mark(folder: Path) -> dict[str, Any]:
    try:
        return read_object(folder / MARK, ConfigError, most=MB)
    except ConfigError:
        return {}


def owned(folder: Path) -> Iterator[Path]:
    """What is there under the names of a run's files, with their receipts."""
    for path, _ in _named(folder):
        yield path
        if receipt_of(path).exists():
            yield receipt_of(path)


def _named(folder: Path) -> Iterator[tuple[Path, Proof]]:
    for inside, names in HOLDS.items():
        for place in [folder] if inside == "." else sorted(folder.glob(inside)):
            there = sorted(place.iterdir()) if place.is_dir() else []
            there = [path for path in there if path.is_symlink() or path.is_file()]
            for name, proof in names.items():
                yield from ((path, proof) for path in there if re.fullmatch(name, path.name))


def _edited(folder: Path) -> list[Path]:
    """What has such a name and is not as the run wrote it; a link makes way, and what it leads to stays."""
    if not _mark(folder).get(SIGNED):
        return []
    return [path for path, proof in _named(folder) if not path.is_symlink() and not _holds(proof, path)]


def _holds(proof: Proof, path: Path) -> bool:
    try:
        return proof(path)
    except (ManylabelError, OSError):
        return False


def check_folder(folder: Path, data: Iterable[str | None], overwrite: bool, resume: bool = False) -> None:
    """Never write over another run unasked, nor over what is no run's, nor among the images; `data` are all its paths."""
    check_is_folder(folder)
    if not resume:
        for path in (Path(each).resolve() for each in data if each and each != "scenes"):
            _refuse_data(folder, path)
    if not is_run(folder):
        found = next(owned(folder), None)
        if found is not None or resume:
            what = f"holds {found.relative_to(folder)}, and " if found else ""
            raise ConfigError(
                f"{folder} {what}is not a run of manylabel's (no {MARK} that says so); choose another --out"
            )
        return
    check_nobody_says_so(folder)
    if resume:
        _refuse_edited(folder, [path for path in _edited(folder) if path.name not in ONLY_READ])
        return
    if not overwrite:
        raise ConfigError(
            f"{folder} already holds a run; --resume goes on with it, --overwrite replaces it, or choose another --out"
        )
    for place in {folder / "tasks", *(place for name in HOLDS if name != "." for place in folder.glob(name))}:
        if place.is_symlink():
            raise ConfigError(
                f"{place} is a link, and what it leads to may be another's; remove it, or choose another --out"
            )
    _refuse_edited(folder, _edited(folder))


def _refuse_edited(folder: Path, edited: list[Path]) -> None:
    if edited:
        raise ConfigError(
            f"{folder} holds {edited[0].relative_to(folder)}, which is not as its run wrote it; move it away, or choose "
            "another --out"
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
    signed = not resume or bool(_mark(folder).get(SIGNED))
    if not resume:
        remove_run(folder)
    write_json(folder / MARK, {**facts, SIGNED: signed})
    if not resume:  # else they are read from there
        write_ours(folder / "config.yaml", config)


def remove_run(folder: Path) -> None:
    """Remove what an earlier run left; called only when its successor is sure to begin."""
    if not is_run(folder):
        return
    edited = _edited(folder)
    for path, proof in list(_named(folder)):
        unmarked = path.parent.name == "figures" and not _holds(proof, path)
        if path.name != MARK and path not in edited and not unmarked:
            path.unlink(missing_ok=True)
            receipt_of(path).unlink(missing_ok=True)
    (folder / MARK).unlink(missing_ok=True)  # last: a removal that is cut short can be begun again
    for name in sorted(HOLDS, key=len, reverse=True):
        for place in folder.glob(name) if name != "." else ():
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()

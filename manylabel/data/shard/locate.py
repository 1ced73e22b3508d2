"""Which files a path means: one shard, a folder of them, or a pattern such as 'shards/{000000..000099}.tar'."""

from __future__ import annotations

import glob
import itertools
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path

from manylabel.data.table import SPLITS
from manylabel.error import DataError

FOLDERS = {*SPLITS, "data", "default", "shards"}  # inside a folder of shards, these may hold more of them
COMPRESSED = (".tar.gz", ".tgz", ".tar.zst", ".tzst", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")
MOST_SHARDS = 1_000_000
BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Shard:
    """A file that holds many images."""

    path: Path
    name: str  # its path below the folder of all shards, without the suffix: what the keys of its images begin with


def is_pattern(path: Path) -> bool:
    """Whether this path stands for several; one that exists means itself."""
    return any(sign in str(path) for sign in "{*?") and not path.exists()


def find_shards(path: Path, suffix: str) -> list[Shard]:
    """The shards that a path means, sorted by name; none is an error."""
    if path.is_dir():
        root, paths = path, shards_inside(path, suffix)
    elif is_pattern(path):
        paths = _matching(str(path))
        root = Path(os.path.commonpath([found.parent for found in paths]))
    else:
        root, paths = path.parent, [path]
    if not paths:
        raise DataError(f"there is no {suffix} file in {path}")
    shards = [Shard(found, found.relative_to(root).with_suffix("").as_posix()) for found in paths]
    shards.sort(key=lambda shard: shard.name)
    for first, second in itertools.pairwise(shards):
        if first.name == second.name:
            raise DataError(f"{first.path} and {second.path} would give the same names; rename one of them")
    return shards


def shards_inside(folder: Path, suffix: str) -> list[Path]:
    """Directly in a folder, and in those of its folders that are named after a split."""
    found: list[Path] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.name.lower().endswith(suffix) and entry.is_file():
                    found.append(Path(entry.path))
                elif entry.name.lower() in FOLDERS and entry.is_dir(follow_symlinks=False):
                    found += shards_inside(Path(entry.path), suffix)
    except OSError as error:
        raise DataError(f"cannot read the folder {folder}: {error.strerror}") from error
    return sorted(found)


def refuse_compressed(path: Path) -> None:
    """Inside a compressed tar nothing can be found without reading all that is before it."""
    if path.is_dir():
        names = sorted(entry.name for entry in path.iterdir() if entry.name.lower().endswith(COMPRESSED))
        if not names or shards_inside(path, ".tar"):
            return
        path = path / names[0]
    if path.name.lower().endswith(COMPRESSED):
        raise DataError(
            f"{path} is compressed, so that single images cannot be read from it; decompress the shards to .tar first "
            "(JPEG images hardly get larger)"
        )


def _matching(pattern: str) -> list[Path]:
    paths: list[Path] = []
    for text in expand_braces(pattern):
        if "*" in text or "?" in text:
            found = sorted(map(Path, glob.glob(text)))
            if not found:
                raise DataError(f"no file matches {text}")
            paths += found
        else:
            paths.append(Path(text))
    missing = [path for path in paths if not path.is_file()]
    if missing:
        more = f" ({len(missing)} of the {len(paths)} files of {pattern} are missing)" if len(paths) > 1 else ""
        raise DataError(f"{missing[0]} does not exist{more}; mend the pattern or fetch the rest")
    return paths


def expand_braces(text: str) -> list[str]:
    """'{00..02}' and '{a,b}' written out, in order."""
    pieces = BRACES.split(text)
    if any("{" in piece or "}" in piece for piece in pieces):
        raise DataError(f"{text}: braces inside braces, or one that is not closed; write e.g. shards/{{000..099}}.tar")
    choices = [[piece] if i % 2 == 0 else _choices(piece, text) for i, piece in enumerate(pieces)]
    if math.prod(map(len, choices)) > MOST_SHARDS:
        raise DataError(f"{text} means more than {MOST_SHARDS} files; mend the pattern")
    return ["".join(parts) for parts in itertools.product(*choices)]


def _choices(inside: str, text: str) -> list[str]:
    run = re.fullmatch(r"(\d{1,18})\.\.(\d{1,18})", inside)
    if run is None:
        return inside.split(",")
    first, last = int(run[1]), int(run[2])
    if not 0 <= last - first < MOST_SHARDS:
        raise DataError(f"{text}: {{{inside}}} does not count up, or too far; write e.g. {{000..099}}")
    return [f"{number:0{len(run[1])}d}" for number in range(first, last + 1)]

"""ImageNet's folders bear ids such as n01440764; a file beside them tells what they mean."""

from __future__ import annotations

import re
from pathlib import Path

from manylabel.data.read.text_file import read_json, text_lines
from manylabel.error import DataError

SYNSET = re.compile(r"n\d{8}")
WORDS = ("LOC_synset_mapping.txt", "synset_words.txt")  # n01440764 tench, Tinca tinca
INDEX = "imagenet_class_index.json"  # {"0": ["n01440764", "tench"], …}


def find_synset_file(folder: Path) -> Path | None:
    """In this folder, or beside it."""
    places = (folder, folder.resolve().parent)
    return next((place / name for place in places for name in (*WORDS, INDEX) if (place / name).is_file()), None)


def read_synsets(path: Path) -> dict[str, str]:
    """id → its first name."""
    pairs = _from_index(path) if path.suffix == ".json" else _from_words(path)
    return {identity: names.partition(",")[0].strip() for identity, names in pairs.items()}


def _from_words(path: Path) -> dict[str, str]:
    pairs = {}
    for number, line in enumerate(text_lines(path), 1):
        identity, _, names = line.strip().partition(" ")
        if identity and (not SYNSET.fullmatch(identity) or not names.partition(",")[0].strip()):
            raise DataError(f"{path}, row {number}: expected an id and names such as 'n01440764 tench, Tinca tinca'")
        if identity:
            pairs[identity] = names
    return pairs


def _from_index(path: Path) -> dict[str, str]:
    values = read_json(path)
    pairs = {}
    for number, entry in values.items() if isinstance(values, dict) else [("", None)]:
        if not isinstance(entry, list) or len(entry) != 2 or not all(isinstance(cell, str) and cell for cell in entry):
            raise DataError(f'{path}, class {number!r}: expected entries such as "0": ["n01440764", "tench"]')
        pairs[entry[0]] = entry[1].replace("_", " ")
    return pairs

"""COCO's 'categories': which labels there are."""

from __future__ import annotations

import json
import mmap
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from manylabel.data.read.text_file import json_items, json_kind
from manylabel.error import DataError

LONGEST_TAIL = 16 << 20  # bytes from the word 'categories' to the end of the file that are read at once


def identity_of(entry: Mapping[str, object], key: str, where: str) -> Any:
    """A number or a text that identifies something."""
    value = entry.get(key)
    if not isinstance(value, (int, float, str)):
        raise DataError(f"{where}: {key!r} is {'missing' if value is None else 'no number'}; fill it in")
    return value


def read_categories(path: Path, notes: list[str]) -> dict[Any, str]:
    """id → name in the order of the ids."""
    if json_kind(path) != "object":
        raise DataError(f"{path} must hold a JSON object with 'images', 'annotations' and 'categories'")
    found: dict[Any, str] = {}
    above: dict[Any, Any] = {}
    for number, entry in enumerate(_entries(path), 1):
        where = f"{path.name}, categories, entry {number}"
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"].strip():
            raise DataError(f"{where}: not an object with 'id' and a 'name' that is a text")
        identity = identity_of(entry, "id", where)
        if identity in found:
            raise DataError(f"{where}: another category has the id {identity!r}, too; give each its own")
        found[identity] = entry["name"].strip()
        above[identity] = entry.get("supercategory")
    if not found:
        raise DataError(
            f"{path} has no 'categories', so it tells no labels; if it is a file of captions, use instances_*.json"
        )
    for root in _mere_groups(path, found, above):
        notes.append(f"category {found.pop(root)!r} of {path.name} only groups the others and is no label")
    names = Counter(found.values())
    if twice := next((name for name, count in names.items() if count > 1), None):
        ids = [identity for identity, name in found.items() if name == twice]
        raise DataError(f"{path.name}, categories {ids[0]!r} and {ids[1]!r}: both are called {twice!r}; rename one")
    return dict(sorted(found.items(), key=lambda item: (isinstance(item[0], str), item[0])))


def _entries(path: Path) -> Iterable[Any]:
    """The entries of 'categories'. Official files have them last: then hundreds of megabytes need not be parsed."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            start = data.rfind(b'"categories"')
            if start >= 0 and len(data) - start <= LONGEST_TAIL:
                # if this were inside of another value, the end of the file would close more than we open
                found = json.loads(b"{" + data[start:])["categories"]
                return found if isinstance(found, list) else []
    except (OSError, ValueError, KeyError, RecursionError):
        pass
    return json_items(path, "categories.item")


def _mere_groups(path: Path, names: dict[Any, str], above: dict[Any, Any]) -> list[Any]:
    """Roboflow puts a category above all others that no annotation ever has; its name may even be that of another."""
    roots = [i for i in names if above[i] == "none" and any(above[j] == names[i] for j in names if j != i)]
    if not roots:
        return []
    used = {str(entry.get("category_id")) for entry in json_items(path, "annotations.item") if isinstance(entry, dict)}
    return [i for i in roots if str(i) not in used]

"""The optional file about the labels themselves (data.labels): a list, or parents, synonyms and descriptions.

labels.txt     one name a line; their order is the order of the labels
labels.yaml    dog: {parents: [animal], synonyms: [puppy], description: a tame dog}
labels.json    the same as JSON
labels.csv     columns label, parents, synonyms, description; several names in a cell are separated by |
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manylabel.data.read.text_file import parse_json, read_text
from manylabel.error import DataError
from manylabel.hierarchy import Hierarchy, LabelFacts
from manylabel.storage.yaml_text import MOST_OF_LABELS, parse_yaml
from manylabel.suggest import closest

FIELDS = ("parents", "synonyms", "description")


def read_label_file(path: Path) -> Hierarchy:
    """The labels in this file and what it says about them; data may then hold no other label."""
    text = read_text(path)
    kind = path.suffix.lower()
    if kind in (".yaml", ".yml", ".json"):
        facts = _from_mapping(path, text)
    elif kind in (".csv", ".tsv"):
        facts = _from_sheet(path, text, "\t" if kind == ".tsv" else ",")
    else:
        facts = {}
        for line, name in enumerate(text.splitlines(), 1):
            if name.strip():
                _add(facts, name.strip(), LabelFacts(), f"{path.name}, line {line}")
    if not facts:
        raise DataError(f"{path} names no label; write one a line, or see docs/data.md for parents and synonyms")
    return Hierarchy(facts, str(path.name))


def _add(facts: dict[str, LabelFacts], name: str, entry: LabelFacts, where: str) -> None:
    if name in facts:
        raise DataError(f"{where}: label {name!r} stands twice; delete one")
    facts[name] = entry


def _from_mapping(path: Path, text: str) -> dict[str, LabelFacts]:
    values = parse_json(text, str(path), rows=True) if path.suffix.lower() == ".json" else _yaml(text, path)
    if not isinstance(values, (list, dict)):
        raise DataError(f"{path}: write a list of labels, or 'label: {{parents: [...]}}' for each")
    facts: dict[str, LabelFacts] = {}
    for name, entry in values.items() if isinstance(values, dict) else ((name, None) for name in values):
        where = f"{path.name}, label {name!r:.60}"
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            raise DataError(f"{where}: is no text; write it in quotes (yes, no, on and off need them)")
        if entry is not None and not isinstance(entry, Mapping):
            raise DataError(f"{where}: write 'parents', 'synonyms' and 'description' below it, not {entry!r:.60}")
        _add(facts, str(name), _facts(dict(entry or {}), where), where)
    return facts


def _yaml(text: str, path: Path) -> Any:
    return parse_yaml(text, str(path), most=MOST_OF_LABELS, references=False)


def _facts(entry: dict[str, Any], where: str) -> LabelFacts:
    for key in entry:
        if key not in FIELDS:
            raise DataError(f"{where}: {key!r} is none of {', '.join(FIELDS)}{closest(str(key), FIELDS)}")
    lists = {}
    for key in ("parents", "synonyms"):
        value = entry.get(key) or []
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise DataError(f"{where}: {key} must be a list of names, not {value!r:.60}")
        lists[key] = tuple(names)
    description = entry.get("description") or ""
    if not isinstance(description, str):
        raise DataError(f"{where}: description must be a text, not {description!r:.60}")
    return LabelFacts(lists["parents"], lists["synonyms"], description)


def _from_sheet(path: Path, text: str, separator: str) -> dict[str, LabelFacts]:
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, restkey="", restval="")
    header = [name.strip().lower() for name in rows.fieldnames or []]
    if "label" not in header:
        raise DataError(f"{path}, row 1: no column 'label'; the columns are label, parents, synonyms, description")
    rows.fieldnames = header
    facts: dict[str, LabelFacts] = {}
    for row in rows:
        where = f"{path.name}, row {rows.line_num}"
        if "" in row:
            raise DataError(f"{where}: more cells than the header has; put cells with a {separator!r} in double quotes")
        name = row.pop("label").strip()
        if not name:
            raise DataError(f"{where}: the label is blank; fill it in or delete the row")
        entry: dict[str, list[str] | str] = {
            key: _names(cell) if key != "description" else cell for key, cell in row.items()
        }
        _add(facts, name, _facts(entry, where), where)
    return facts


def _names(cell: str) -> list[str]:
    return [name.strip() for name in cell.split("|") if name.strip()]

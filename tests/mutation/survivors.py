"""The list of mutants that no test notices, and why that is right."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml
from mutation.mutants import Mutant

LIST = Path(__file__).with_name("survivors.yaml")
KEYS = ("file", "in", "was", "now")

Key = tuple[str, ...]


def explained(path: Path = LIST) -> dict[Key, str]:
    """Why each listed mutant is equivalent or harmless. No line numbers: they change with every line above."""
    reasons: dict[Key, str] = {}
    for number, entry in enumerate(yaml.safe_load(path.read_text(encoding="utf-8")) or [], start=1):
        if set(entry) != {*KEYS, "why"} or not str(entry["why"]).strip():
            raise SystemExit(
                f"{path.name}, entry {number}: it needs {', '.join(KEYS)} and why, and has {sorted(entry)}"
            )
        key = tuple("\n".join(" ".join(line.split()) for line in str(entry[name]).splitlines()) for name in KEYS)
        if key in reasons:
            raise SystemExit(f"{path.name}, entry {number} is there twice")
        reasons[key] = str(entry["why"])
    return reasons


def key_of(mutant: Mutant) -> Key:
    return mutant.file, mutant.where, mutant.was, mutant.now


def outdated(listed: Iterable[Key], mutants: Iterable[Mutant]) -> list[Key]:
    """Entries that are no mutant of the code as it is now."""
    there = {key_of(mutant) for mutant in mutants}
    return [key for key in listed if key not in there]


def entry(mutant: Mutant) -> str:
    """For the list, but for the reason."""
    fields = dict(zip(KEYS, key_of(mutant), strict=True))
    text: str = yaml.safe_dump([fields | {"why": ""}], sort_keys=False, allow_unicode=True, width=1000)
    return text

"""Readable names for ids such as Open Images' MIDs and ImageNet's synsets, where several ids may bear one name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from manylabel.labels import label_key


def distinct_names(names: Mapping[str, str]) -> dict[str, str]:
    """id → name; a name that several ids share gets the id behind it in brackets, so that each stays one label."""
    times = Counter(map(label_key, names.values()))
    return {
        identity: name if times[label_key(name)] == 1 else f"{name} ({identity})" for identity, name in names.items()
    }


def shared_names(names: Mapping[str, str], distinct: Mapping[str, str]) -> list[str]:
    """The names that distinct_names() had to make longer, for a note."""
    return sorted({name for identity, name in names.items() if distinct[identity] != name})

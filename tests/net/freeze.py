"""Write what is frozen of the surface and of the real samples anew (`make freeze` does this, and the tables besides)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from net.surface import freeze
from net.tables import SHARED_FACTS, facts, pixels_of_masks

from manylabel import load_data

SHARED = Path(__file__).parents[3] / "shared" / "data"


def freeze_shared() -> None:
    """Where the samples are; elsewhere the file stays as it is."""
    found = {}
    for folder in sorted(SHARED.iterdir()) if SHARED.is_dir() else ():
        table = load_data(folder)
        found[folder.name] = facts(table, str(SHARED))
        if table.objects is not None:
            found[folder.name]["pixels"] = pixels_of_masks(table.subset(table.rows("val")))
    if found:
        SHARED_FACTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    freeze()
    freeze_shared()

"""What must be as it was for a run to go on, or at least to go on to the same bits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import torch

from manylabel.config import LABELS
from manylabel.data.table import Table
from manylabel.error import CheckpointError


def circumstances(tables: Mapping[str, Table], processes: int) -> dict[str, Any]:
    """`tables`: of every task."""
    digests = {name: _digest(table) for name, table in tables.items()}
    of_all = hashlib.sha256("\0".join(f"{name} {one}" for name, one in digests.items()).encode()).hexdigest()
    return {
        "data": of_all if len(digests) > 1 or LABELS not in digests else digests[LABELS],
        "processes": processes,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def _digest(table: Table) -> str:
    digest = hashlib.sha256("\0".join([*map(str, table.keys), *table.labels]).encode())
    digest.update(table.matrix.tobytes())
    digest.update("\0".join(map(str, table.split if table.split is not None else [])).encode())
    return digest.hexdigest()


def compare(before: dict[str, Any], now: dict[str, Any], say: Callable[[str], None]) -> None:
    """Stop where a run cannot go on; say what will keep it from the same bits."""
    if now["data"] != before["data"]:
        raise CheckpointError("the images, labels or splits have changed since this run began; start a new one")
    if now["processes"] != before["processes"]:
        raise CheckpointError(f"this run was started with {before['processes']} processes; resume it with as many")
    for name in ("threads", "torch"):
        if now[name] != before[name]:
            say(f"{name}: {before[name]} before, {now[name]} now; the result will not be the same to the last bit")

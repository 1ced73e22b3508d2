"""How much memory something needs at its peak, beyond what is there before it."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_megabytes(run: Callable[[], object]) -> float | None:
    """Resident memory at its peak while `run` works, less what was resident before; None where the system cannot tell."""
    gc.collect()
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # give back what earlier work left, or it would hide this one's
        CLEAR.write_text("5")  # forget the peak so far
        before = _kilobytes("VmRSS")
        run()
        return (_kilobytes("VmHWM") - before) / 1024
    except OSError:
        run()
        return None


def _kilobytes(name: str) -> int:
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise OSError(f"no {name} in {STATUS}")

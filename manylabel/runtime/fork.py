"""Models in a child process made by fork, which is how multiprocessing starts one on Linux before Python 3.14.

Only the thread that forks lives on in the child. OpenMP, on which torch computes, does not notice: it waits for ever for
threads that the parent had. On one thread it waits for nobody; so that is what a child begins with. Whoever wants more in
the child starts it with the method `spawn` or `forkserver`; torch.set_num_threads(2) in a forked one would hang again.
"""

from __future__ import annotations

import os
import sys
from functools import cache

IMPORTED_IN = os.getpid()  # the package imports this at once: whoever finds another number was forked since


@cache
def one_thread_in_children() -> None:
    """Every child that this process forks from now on computes on one thread, and so does this one if it is a child;
    called where a model is made ready."""
    if os.getpid() != IMPORTED_IN:
        _one_thread()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_one_thread)


def _one_thread() -> None:
    torch = sys.modules.get("torch")  # without it, as where an exported file predicts, nothing computes on OpenMP
    if torch is not None:
        torch.set_num_threads(1)

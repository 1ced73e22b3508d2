"""Things that are costly to make and large to keep: open files, decoded blocks."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """What was asked for last, up to a total weight (one thing at least); each process has its own."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._weight = 0

    def get(self, key: K, make: Callable[[], V], weigh: Callable[[V], int] = lambda _: 1) -> V:
        if self._process != os.getpid():  # after a fork: the parent's lock may be held, its files are not ours to close
            self._start()
        with self._lock:
            if key not in self._kept:
                value = make()
                self._kept[key] = value, weigh(value)
                self._weight += self._kept[key][1]
                while self._weight > self.most and len(self._kept) > 1:
                    self._weight -= self._kept.popitem(last=False)[1][1]
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def __getstate__(self) -> dict[str, int]:
        return {"most": self.most}

    def __setstate__(self, state: dict[str, int]) -> None:
        self.most = state["most"]
        self._start()

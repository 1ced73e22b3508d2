"""All images of a table looked at once: in several processes, with a journal, so that nothing is done twice."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

import numpy as np

from manylabel.data.audit.image import FACTS, digest, inspect_image
from manylabel.data.audit.journal import Journal
from manylabel.data.source import ImageSource
from manylabel.data.table import Table
from manylabel.error import DataError

CHUNK = 64
IN_FLIGHT = 4  # chunks per process that are waiting or done, so that memory stays flat

Found = tuple[np.ndarray, dict[int, str]]  # facts of a chunk's images, and why some of them cannot be read


@dataclass(frozen=True)
class Inspection:
    """What is known about each image of a table, row by row."""

    facts: np.ndarray  # [n] of FACTS; width 0 = unreadable
    unreadable: dict[int, str]  # row → reason

    @property
    def readable(self) -> np.ndarray:
        """[n] bool"""
        return self.facts["width"] > 0


def inspect_table(
    table: Table, workers: int = 2, advance: Callable[[int], None] = lambda _: None, *, journal: bool = True
) -> Inspection:
    """Look at every image of the table, or recall it from an earlier check when the image has not changed since.

    Unreadable images are always tried again: what was wrong may have been mended without changing the file.
    """
    notes = Journal(table) if journal else None
    facts = np.zeros(len(table), FACTS)
    unreadable: dict[int, str] = {}
    todo = _unknown_rows(table, facts, notes, advance)
    for rows, (found, reasons) in _work(table.source, table.keys, todo, workers):
        good = [i for i in range(len(rows)) if i not in reasons]
        for name in FACTS.names or ():
            if name not in ("key", "stamp"):
                facts[name][rows[good]] = found[name][good]
        unreadable.update({int(rows[i]): reason for i, reason in reasons.items()})
        if notes is not None:
            notes.add(facts[rows[good]])
        advance(len(rows))
    if notes is not None:
        notes.finish()
    return Inspection(facts, dict(sorted(unreadable.items())))


def _unknown_rows(
    table: Table, facts: np.ndarray, notes: Journal | None, advance: Callable[[int], None]
) -> Iterator[np.ndarray]:
    """Chunks of row numbers that must be looked at; fills in the others. Stamps are taken before an image is read."""
    waiting: list[int] = []
    for row, key in enumerate(table.keys.tolist()):
        facts["key"][row] = digest(key.encode("utf-8", "surrogatepass"))
        stamp = digest(f"{key}|{table.source.stamp(key)}".encode("utf-8", "surrogatepass"))
        known = None if notes is None else notes.get(stamp)
        if known is not None and (known["key"] == facts["key"][row]).all():
            facts[row] = known
            advance(1)
            continue
        facts["stamp"][row] = stamp
        waiting.append(row)
        if len(waiting) == CHUNK:
            yield np.array(waiting)
            waiting = []
    if waiting:
        yield np.array(waiting)


def _work(
    source: ImageSource, keys: np.ndarray, todo: Iterator[np.ndarray], workers: int
) -> Iterator[tuple[np.ndarray, Found]]:
    if workers < 2 or len(keys) <= CHUNK:
        for rows in todo:
            yield rows, _inspect_chunk(source, keys[rows].tolist())
        return
    processes = min(workers, os.cpu_count() or 1)
    pool = ProcessPoolExecutor(processes, initializer=_begin, initargs=(source,))
    running: deque[tuple[np.ndarray, Future[Found]]] = deque()
    try:
        for rows in todo:
            running.append((rows, pool.submit(_inspect_here, keys[rows].tolist())))
            if len(running) >= IN_FLIGHT * processes:
                done, future = running.popleft()
                yield done, future.result()
        for done, future in running:
            yield done, future.result()
    except BrokenProcessPool as error:
        raise DataError(
            "a process that decoded images was ended from outside, perhaps for want of memory; run the check again "
            "(it goes on where it stopped) with fewer processes: --set data.workers=1"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_SOURCE: ImageSource | None = None  # of a worker process: handed over once, for it may hold an index of millions


def _begin(source: ImageSource) -> None:
    global _SOURCE
    _SOURCE = source
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the main process, which then ends these
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A main process that is killed cannot tell; without this its workers would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _inspect_here(keys: list[str]) -> Found:
    assert _SOURCE is not None
    return _inspect_chunk(_SOURCE, keys)


def _inspect_chunk(source: ImageSource, keys: list[str]) -> Found:
    facts = np.zeros(len(keys), FACTS)
    reasons = {}
    for i, key in enumerate(keys):
        if reason := inspect_image(source, key, facts[i]):  # a row of a structured array is a view
            reasons[i] = reason
    return facts, reasons

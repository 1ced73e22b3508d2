"""Single photographs, several at a time, each decoded once before it is kept."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

from manylabel.console import counting
from manylabel.data.decode import decode
from manylabel.data.fetch.archives import Way
from manylabel.data.fetch.catalogue import IMAGE_BUCKET, Archive
from manylabel.data.fetch.connection import Unreachable
from manylabel.data.fetch.download import download
from manylabel.data.fetch.manifest import ARCHIVES
from manylabel.data.fetch.part import NoRoom
from manylabel.error import DataError, DecodeError

WORKERS = 8  # the time goes into waiting for the server
TRIES = 4  # there are other images
USUAL = 320_000  # bytes of an image, for the estimate (about 0.3 MB on average)
MOST = 25_000_000  # no image of theirs comes near twice this


class Photos:
    """The photographs of one split in OUT/SPLIT/ID.jpg; what cannot be had or read is in `failed` with the reason."""

    def __init__(self, out: Path, split: str, way: Way) -> None:
        self.folder = out / split
        self.failed: dict[str, str] = {}
        self._way = replace(way, patience=replace(way.patience, tries=min(TRIES, way.patience.tries)))
        self._split = split
        self._parts = out / ARCHIVES / split
        self._stop = threading.Event()

    def path(self, image: str) -> Path:
        return self.folder / f"{image}.jpg"

    def choose(self, ranked: Mapping[str, list[str]], count: int) -> dict[str, list[str]]:
        """For each label its first `count` images that can be had; those that cannot are replaced by the next ones."""
        while True:
            chosen = {label: [i for i in images if i not in self.failed][:count] for label, images in ranked.items()}
            todo = {i for images in chosen.values() for i in images if not self.path(i).exists()}
            if not todo:
                return chosen
            self._bring(sorted(todo))

    def _bring(self, images: Iterable[str]) -> None:
        images = list(images)
        self.folder.mkdir(parents=True, exist_ok=True)
        with counting(f"{self._split} images", len(images)) as advance, ThreadPoolExecutor(WORKERS, "fetch") as pool:
            try:
                jobs = {pool.submit(self._one, image): image for image in images}
                for job in as_completed(jobs):
                    problem = job.result()
                    if problem:
                        self.failed[jobs[job]] = problem
                        self._way.say(f"{self._split} image {jobs[job]} is left out: {problem}")
                    advance(1)
            except BaseException:  # Ctrl-C too: those under way stop at their next bytes, the others never begin
                self._stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _one(self, image: str) -> str:
        """'' when it is there and can be read, otherwise why not."""
        archive = Archive(f"{IMAGE_BUCKET}/{self._split}/{image}.jpg", MOST, exact=False)
        arrived = self._parts / archive.name
        way = self._way
        try:
            download(
                archive, arrived, mirror=way.mirror, patience=way.patience, say=way.say, advance=self._stop_if_asked
            )
            decode(arrived)
        except (Unreachable, NoRoom):
            raise  # another image would fare no better
        except (DataError, DecodeError) as error:
            arrived.unlink(missing_ok=True)
            return str(error)
        arrived.replace(self.path(image))
        return ""

    def _stop_if_asked(self, count: int) -> None:
        if self._stop.is_set():
            raise Unreachable("stopped")

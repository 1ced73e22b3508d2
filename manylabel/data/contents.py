"""What is in the images of a table, as one digest for each, so that features are never taken for those of other images.

<cache folder>/contents/<source>.digests    pairs: digest of an image's stamp, digest of its content

The rule: an image is known by all of its bytes. They are read once, and again only when the stamp of the image is
another one (data/file_stamp.py). So a folder that was moved, copied or touched is read again, and its features are
still found; and an image that was replaced is noticed, also by one of the same size and time.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from manylabel.cache_folder import cache_folder
from manylabel.data.source import ImageSource
from manylabel.error import DecodeError
from manylabel.stop import StopRequest
from manylabel.storage.atomic import write_bytes
from manylabel.storage.own_file import make_way, read_own

MARK = b"manylabel digests 1\n"
SIZE = 16  # bytes of a digest
SAVE_EVERY = 1 << 30  # bytes read between two notes of progress
KEPT = 200_000  # images that are remembered at least, and three times as many as were asked for


def contents(
    source: ImageSource,
    keys: Sequence[str],
    stop: StopRequest | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> list[bytes]:
    """A digest of what is in each image."""
    look = getattr(source, "content", None)
    if look is None:  # drawn, not read: the stamp says all
        return [_digest(source.stamp(key)) for key in keys]
    place = _place(source)
    known, seen = _recall(place), {}
    found, read = [], 0
    try:
        for key in keys:
            stamp = _digest(source.stamp(key))
            content = known.get(stamp)
            if content is None:
                content, size = _look(look, key)
                read += size
            if content is not None:
                seen[stamp] = content
            found.append(content or _digest(f"{key}|unreadable"))
            advance(1)
            if stop is not None:
                stop.stop_if_asked("stopped while looking at the images; what was read is remembered")
            if read > SAVE_EVERY:
                _remember(place, known, seen)
                read = 0
    finally:
        if not seen.keys() <= known.keys():
            _remember(place, known, seen)
    return found


def _look(look: Callable[[str], tuple[bytes, int]], key: str) -> tuple[bytes | None, int]:
    try:
        return look(key)
    except (OSError, DecodeError):  # who decodes it says why; an image that can be read one day is another one
        return None, 0


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=SIZE).digest()


def _place(source: ImageSource) -> Path:
    root = f"{type(source).__name__}|{os.path.realpath(getattr(source, 'root', ''))}"
    return cache_folder() / "contents" / f"{_digest(root).hex()}.digests"


def _recall(place: Path) -> dict[bytes, bytes]:
    """What was kept; nothing when it is damaged."""
    try:
        data = read_own(place)
    except OSError:
        return {}
    head, pairs = data[: len(MARK) + 4], data[len(MARK) + 4 :]
    if head != MARK + zlib.crc32(pairs).to_bytes(4, "little"):
        return {}
    both = [pairs[at : at + SIZE] for at in range(0, len(pairs), SIZE)]
    return dict(zip(both[::2], both[1::2], strict=False))


def _remember(place: Path, known: dict[bytes, bytes], seen: dict[bytes, bytes]) -> None:
    """With what another process has added meanwhile; of too many those go that were not asked for longest."""
    others = {stamp: content for stamp, content in (known | _recall(place)).items() if stamp not in seen}
    pairs = [*others.items(), *seen.items()][-max(KEPT, 3 * len(seen)) :]
    data = b"".join(stamp + content for stamp, content in pairs)
    with suppress(OSError):  # it only saves time
        place.parent.mkdir(parents=True, exist_ok=True)
        make_way(place)
        write_bytes(place, MARK + zlib.crc32(data).to_bytes(4, "little") + data)

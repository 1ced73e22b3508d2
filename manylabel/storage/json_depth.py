"""How deep JSON is nested, and how long its numbers are, before a parser follows it there."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, BinaryIO

DEEPEST = 100  # levels of JSON
DIGITS = 2000  # of a number in one block; Python reads 4,300 of them, and ijson crashes where it refuses
LONG_NUMBER = re.compile(rb"\d{%d}" % DIGITS)
BLOCK = 1 << 16


@cache
def steps() -> Any:
    """By how much each byte changes the level."""
    import numpy as np  # only here: --help reads no JSON, and is quick

    change = np.zeros(256, np.int32)
    change[list(b"[{")], change[list(b"]}")] = 1, -1
    return change


class ShallowJson:
    """A stream of JSON that ends in an error where it is nested deeper than any file of ours or of labels (a parser keeps
    the path to where it is, so that 200 kB of brackets would take gigabytes), or where a number has thousands of digits."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.depth = 0
        self.in_text = False
        self.escaped = False

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self._look(data)
        return data

    def _look(self, data: bytes) -> None:
        if self.escaped:
            data = b"_" + data[1:]
        plain = data.replace(b"\\\\", b"__")
        self.escaped = plain.endswith(b"\\")
        import numpy as np

        plain = plain.replace(b'\\"', b"__")
        signs = np.frombuffer(plain, np.uint8)
        quotes = np.cumsum(signs == ord('"')) + self.in_text
        depth = self.depth + np.cumsum(np.where(quotes % 2 == 0, steps()[signs], 0))
        if len(depth):
            if depth.max() > DEEPEST:
                raise ValueError(f"nested more than {DEEPEST} deep")
            self.depth = int(depth[-1])
            self.in_text = bool(quotes[-1] % 2)
        some = signs[:: DIGITS // 2]
        digit = (some >= ord("0")) & (some <= ord("9"))
        long = LONG_NUMBER.finditer(plain) if (digit[:-1] & digit[1:]).any() else ()  # without these there is none
        if any(quotes[found.start()] % 2 == 0 for found in long):
            raise ValueError(f"a number of more than {DIGITS} digits")


def check_depth(data: bytes) -> None:
    """ValueError where this JSON is nested too deep."""
    if data.count(b"[") + data.count(b"{") <= DEEPEST:
        return
    import io

    stream = ShallowJson(io.BytesIO(data))
    while stream.read(BLOCK):
        pass

"""Text of strangers as a terminal may have it: labels, file names and messages are shown and command nothing."""

from __future__ import annotations

import re

# control characters (C0 but for the end of a line and the tabulator, DEL, C1), line separators, what turns the
# direction of writing, invisible tags, and bytes of a file name that are no UTF-8 (lone surrogates)
HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f"
)
UNPRINTABLE = re.compile(f"[{HIDDEN}]")
NOT_IN_A_LINE = re.compile(f"[{HIDDEN}\t\n]")


def printable(text: str) -> str:
    """With \\x1b and the like in place of what a terminal would obey; several lines stay several lines."""
    return UNPRINTABLE.sub(_escaped, text)


def in_one_line(name: str) -> str:
    """The same for a name inside a sentence, which must not begin a line of its own."""
    return NOT_IN_A_LINE.sub(_escaped, name)


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape", "backslashreplace").decode("ascii")

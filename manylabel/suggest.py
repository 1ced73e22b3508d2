"""The end of an error about a wrong name: what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST = 100  # characters that are compared: a text of a megabyte would take minutes


def closest(name: str, choices: Iterable[str]) -> str:
    """'; did you mean …?', or the choices when nothing is near."""
    choices = [str(choice) for choice in choices]
    folded = {choice.casefold(): choice for choice in choices}
    near = difflib.get_close_matches(name[:LONGEST].casefold(), folded, n=3, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(repr(folded[match]) for match in near)}?"
    if len(choices) <= 20:
        return f"; there is {', '.join(choices) or 'nothing to choose from'}"
    return f"; there are {len(choices)}, for example {', '.join(choices[:5])}"

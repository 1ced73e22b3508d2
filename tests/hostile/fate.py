"""How a case can end."""

from __future__ import annotations

SURVIVED = "survived"
# The worst first: of several problems of one run this one names the case.
FATES = (
    "broken case",  # an error of the trial itself, never of the product
    "lost",  # something of the user's has changed, vanished, or has another mode
    "killed",  # ended by a signal
    "hang",
    "memory",
    "slow",
    "traceback",
    "wrong code",
    "wrong answer",
    "left over",  # something is there that nobody asked for
    "bad output",  # no UTF-8, raw control characters, JSON that is none, a refusal without a reason
)


class Fate(Exception):
    """The case did not survive."""

    def __init__(self, kind: str, reason: str) -> None:
        assert kind in FATES, kind
        super().__init__(f"{kind}: {reason}")
        self.kind, self.reason = kind, reason


def worst(found: list[Fate]) -> Fate | None:
    """The worst of several, with what else there was in its reason."""
    if not found:
        return None
    found = sorted(found, key=lambda fate: FATES.index(fate.kind))
    also = "".join(f"; {fate}" for fate in found[1:])
    return Fate(found[0].kind, found[0].reason + also)

"""Label names that are probably one label written twice: case, spacing, accents, plural, spelling."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

SPACING = "case, spacing, punctuation or accents"
PLURAL = "singular and plural"
SPELLING = "spelling"
ONE_FAULT, TWO_FAULTS = 5, 9  # letters from which one or two wrong ones are a slip, not another word
LONGEST_FOR_ONE, LONGEST_FOR_TWO = 64, 24  # longer names are sentences, and have too many ways to be misspelt
MUCH_RARER = 0.1
MOST_ALIKE = 50  # names in one group whose pairs are all listed

IRREGULAR = {
    "men": "man", "women": "woman", "people": "person", "persons": "person", "children": "child", "mice": "mouse",
    "geese": "goose", "feet": "foot", "teeth": "tooth", "leaves": "leaf", "knives": "knife", "wolves": "wolf",
    "shelves": "shelf", "loaves": "loaf", "halves": "half", "calves": "calf", "scarves": "scarf", "oxen": "ox",
    "wives": "wife", "lives": "life", "thieves": "thief", "potatoes": "potato", "tomatoes": "tomato",
}  # fmt: skip


def similar_names(
    names: Sequence[str], support: np.ndarray, together: Callable[[int, int], int]
) -> list[dict[str, Any]]:
    """Pairs with the reason; `together(a, b)` says how many images have both."""
    words = [_words(name) for name in names]
    found: dict[tuple[int, int], str] = {}
    for reason, keys in (
        (SPACING, ["".join(parts) for parts in words]),
        (PLURAL, ["".join([*parts[:-1], _singular(parts[-1])]) if parts else "" for parts in words]),
    ):
        for pair in _equal(keys):
            found.setdefault(pair, reason)
    for a, b in sorted(_misspelt(words) - found.keys()):
        # Somebody gave both labels to one image: then they mean different things to them.
        if _is_slip(words[a], words[b], *sorted((int(support[a]), int(support[b])))) and not together(a, b):
            found[a, b] = SPELLING
    return [{"label": a, "other": b, "why": why} for (a, b), why in sorted(found.items())]


def _words(name: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", name).casefold()
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return re.findall(r"[^\W_]+", unicodedata.normalize("NFC", plain))


def _singular(word: str) -> str:
    if word in IRREGULAR:
        return IRREGULAR[word]
    if len(word) < 4 or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ses", "xes", "zes", "ches", "shes")):
        # One cannot tell 'buses' from 'houses' by rule; both meet here, because 'house' loses its e as well.
        return word[:-2]
    if word.endswith("s"):
        word = word[:-1]
    return word[:-1] if word.endswith(("se", "xe", "ze", "che", "she")) else word


def _equal(keys: Iterable[str]) -> set[tuple[int, int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for i, key in enumerate(keys):
        if key:  # a name of signs only, like '+' and '++', has none
            groups[key].append(i)
    return {pair for group in groups.values() for pair in combinations(group[:MOST_ALIKE], 2)}


def _misspelt(words: list[list[str]]) -> set[tuple[int, int]]:
    """Pairs that become equal when up to two letters are taken out of each: none with two faults or fewer is missed.

    Names with different digits are different things, so digits are part of what must be equal.
    """
    codes, owners = [], []
    for i, parts in enumerate(words):
        name = "".join(parts)
        letters, digits = re.sub(r"\d", "", name), re.sub(r"\D", "", name)
        if not ONE_FAULT <= len(letters) <= LONGEST_FOR_ONE:
            continue
        for shorter in _shortened(letters, 2 if TWO_FAULTS <= len(letters) <= LONGEST_FOR_TWO else 1):
            codes.append(hash((shorter, digits)))  # two texts with one code are told apart later
            owners.append(i)
    code, owner = np.array(codes, np.int64), np.array(owners, np.int64)
    order = np.lexsort((owner, code))
    code, owner = code[order], owner[order]
    same = np.flatnonzero(code[1:] == code[:-1])  # most codes stand alone
    groups: dict[int, set[int]] = defaultdict(set)
    for place in same.tolist():
        groups[int(code[place])].update((int(owner[place]), int(owner[place + 1])))
    return {pair for group in groups.values() for pair in combinations(sorted(group)[:MOST_ALIKE], 2)}


def _shortened(name: str, faults: int) -> set[str]:
    made = {name}
    latest = made
    for _ in range(faults):
        latest = {text[:i] + text[i + 1 :] for text in latest for i in range(len(text))}
        made = made | latest
    return made


def _is_slip(a: list[str], b: list[str], rarer: int, commoner: int) -> bool:
    """Whether one name is the other one mistyped: each word that differs is long enough for it to be a slip."""
    differing = (
        [(x, y) for x, y in zip(a, b, strict=True) if x != y] if len(a) == len(b) else [("".join(a), "".join(b))]
    )
    return all(_word_slips(x, y, rarer, commoner) for x, y in differing)


def _word_slips(x: str, y: str, rarer: int, commoner: int) -> bool:
    length = min(len(x), len(y))
    if x[0] != y[0] or re.sub(r"\D", "", x) != re.sub(r"\D", "", y):  # the first letter is rarely mistyped
        return False
    limit = 2 if length >= TWO_FAULTS else 1 if length >= ONE_FAULT else 0
    if _singular(x) == _singular(y):
        return True
    if distance(x, y) > limit:
        return False
    # Short words with one letter exchanged ('horse', 'house') are both words; a mistyped one is rare.
    exchanged = len(x) == len(y) and sum(p != q for p, q in zip(x, y, strict=True)) == 1
    return length >= TWO_FAULTS or not exchanged or rarer <= MUCH_RARER * commoner


def distance(a: str, b: str) -> int:
    """Letters to insert, take out, exchange, or swap with the next one, to make one word of the other."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        latest = [i]
        for j, y in enumerate(b, start=1):
            best = min(row[j] + 1, latest[j - 1] + 1, row[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                best = min(best, before[j - 2] + 1)
            latest.append(best)
        before, row = row, latest
    return row[-1]

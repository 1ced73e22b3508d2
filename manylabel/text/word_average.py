"""Vectors of words to vectors of labels: a label of several words is the mean of them."""

from __future__ import annotations

import difflib
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from manylabel.error import DataError
from manylabel.text.base import Embedder

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def spellings(text: str) -> list[str]:
    """How a word list may write it, the likeliest first."""
    forms = [text, text.lower(), *(re.sub(r"[\s_-]+", mark, text.strip().lower()) for mark in "_-")]
    return list(dict.fromkeys(form for form in forms if form))


def words_of(label: str) -> list[str]:
    """'traffic light' → traffic, light; 'T-shirt (red)' → T, shirt, red"""
    return WORD.findall(label)


class WordAverage(Embedder):
    """An embedder that knows single words. The label as a whole is looked for first ('hot-dog', 'new_york')."""

    @abstractmethod
    def find(self, words: Iterable[str]) -> Mapping[str, np.ndarray]:
        """Vectors of those words that there are, exactly as written."""

    @abstractmethod
    def vocabulary(self) -> Iterable[str]:
        """All words."""

    def _vectors(self, labels: Sequence[str]) -> np.ndarray:
        wanted = {form for label in labels for part in (label, *words_of(label)) for form in spellings(part)}
        known = self.find(wanted)
        rows: list[np.ndarray] = []
        missing: dict[str, list[str]] = {}
        for label in labels:
            whole = _first(known, label)
            parts = [(word, _first(known, word)) for word in words_of(label)]
            found = [vector for _, vector in parts if vector is not None]
            unknown = [word for word, vector in parts if vector is None]
            if whole is None and not found:
                missing[label] = unknown
            elif whole is None and unknown:
                self.notes.append(f"label {label!r}: no vector for {', '.join(unknown)}; the other words speak for it")
            rows.append(whole if whole is not None else np.mean(found, axis=0) if found else np.zeros(0))
        if missing:
            raise DataError(self._message(missing))
        return np.stack(rows)

    def _message(self, missing: Mapping[str, Sequence[str]]) -> str:
        lines = [f"{len(missing)} labels have no word vector in {self.source}:"]
        wanted = [words[0] if words else label for label, words in list(missing.items())[:5]]
        near = nearest_words(wanted, self.vocabulary())
        for (label, _), word in zip(missing.items(), wanted, strict=False):
            choices = ", ".join(near[word]) or "nothing is spelled like it"
            lines.append(f"  {label!r}: nearest words: {choices}")
        if len(missing) > len(wanted):
            lines.append(f"  and {len(missing) - len(wanted)} more: {', '.join(list(missing)[len(wanted) :][:20])}")
        lines.append(
            "write them with words that it has; a model that is trained with --set text.name=minilm reads any text"
        )
        return "\n".join(lines)


def nearest_words(words: Sequence[str], vocabulary: Iterable[str], most: int = 3) -> dict[str, list[str]]:
    """The most similarly spelled words for each, among those with the same first letter and about the same length."""
    candidates: dict[str, list[str]] = {word: [] for word in words}
    for entry in vocabulary:
        for word in words:
            if entry[:1] == word[:1].lower() and abs(len(entry) - len(word)) <= 2:
                candidates[word].append(entry)
    return {word: difflib.get_close_matches(word.lower(), found, n=most) for word, found in candidates.items()}


def _first(known: Mapping[str, np.ndarray], text: str) -> np.ndarray | None:
    return next((known[form] for form in spellings(text) if form in known), None)

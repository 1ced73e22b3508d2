"""Samples of tar shards: files that share a name up to its first dot, and what those beside the image say about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from manylabel.data.finder import escapes
from manylabel.data.read.class_names import named
from manylabel.data.read.columns import FILE_COLUMNS, LABEL_COLUMNS, OBJECT_COLUMNS, plain_name
from manylabel.data.shard.tar_index import TarIndex
from manylabel.data.shard.tar_source import TarSource
from manylabel.data.walk import is_image_name
from manylabel.error import DataError, DecodeError
from manylabel.storage.json_text import parse_json

LABEL_KINDS = ("json", "labels.txt", "cls", "txt")  # the first that holds labels gives them
PEEK = 100  # samples looked at to find out which
LARGEST_LABELS = 16 << 20  # bytes of a label file


def base_and_end(name: str) -> tuple[str, str]:
    """'a/b' and 'mask.png' of 'a/b.mask.png'."""
    folder, slash, file = name.rpartition("/")
    base, _, end = file.partition(".")
    return folder + slash + base, end.lower()


@dataclass(frozen=True)
class Sample:
    """Files of one shard that belong together: number of each by what stands behind the first dot."""

    index: TarIndex
    base: str
    files: dict[str, int]

    @property
    def where(self) -> str:
        return f"{self.index.path.name}, sample {self.base!r}"

    @property
    def is_last_of_cut_shard(self) -> bool:
        """Then what is missing may have been behind the cut."""
        return bool(self.index.flaw) and len(self.index) - 1 in self.files.values()

    def image(self) -> str | None:
        """The end of the image's name; 'jpg' comes before 'mask.png'."""
        found = [end for end in self.files if is_image_name(f"x.{end}")]
        plain = [end for end in found if "." not in end] or found
        if len(plain) > 1:
            names = " and ".join(f"{self.base}.{end}" for end in plain[:3])
            raise DataError(
                f"{self.where}: {names} are one sample, for they share a name up to its first dot; "
                "pack one image in a sample, and no dots in names"
            )
        return plain[0] if plain else None


@dataclass(frozen=True)
class TarSamples:
    """All shards of a data set, and how their labels are written."""

    source: TarSource
    splits: dict[str, str | None]
    classes: tuple[str, ...] | None

    def samples(self) -> Iterator[tuple[str, Sample]]:
        """(shard, sample) of every sample with an image, in the order of the shards."""
        for shard, index in self.source.shards.items():
            found: dict[str, Sample] = {}
            for number, name in enumerate(index.all_names()):
                if escapes(name):
                    raise DataError(
                        f"{index.path}: member {name!r} leads out of its folder; pack it under a plain name"
                    )
                base, end = base_and_end(name)
                if end:
                    sample = found.get(base) or found.setdefault(base, Sample(index, base, {}))
                    if end in sample.files:
                        raise DataError(f"{index.path}: member {name!r} is in it twice but for upper and lower case")
                    sample.files[end] = number
            yield from ((shard, sample) for sample in found.values() if sample.image())

    def kind(self) -> str:
        """Which files hold the labels; '' where there are none."""
        seen = [sample for _, sample in islice(self.samples(), PEEK)]
        beside = [self.content(sample, "json") or {} for sample in seen if "json" in sample.files]
        if any(map(_has_labels, beside)):
            return "json"
        captions = any("caption" in row for row in beside)  # then the texts are those, not names of labels
        kinds = [kind for kind in (*LABEL_KINDS[1:], "json") if kind != "txt" or not captions]
        return next((kind for kind in kinds if any(kind in sample.files for sample in seen)), "")

    def rows(self, kind: str) -> Iterator[tuple[str, Sample, dict[str, Any]]]:
        """(shard, sample, row); a sample that lost its labels where its shard was cut off is passed over."""
        for shard, sample in self.samples():
            if kind not in sample.files:
                if sample.is_last_of_cut_shard:
                    continue
                raise DataError(f"{sample.where} has no .{kind} as others have; add one, or take the image out")
            row = self.content(sample, "json") if "json" in sample.files else {}
            labels = self.content(sample, kind) if kind != "json" else {}
            if row is None or labels is None:
                continue
            row = {key: value for key, value in (row | labels).items() if plain_name(key) not in FILE_COLUMNS}
            self._tidy(row, sample.where)
            row[FILE_COLUMNS[0]] = f"{shard}/{sample.index.name(sample.files[str(sample.image())])}"
            yield shard, sample, row

    def _tidy(self, row: dict[str, Any], where: str) -> None:
        """Labels under one name, however each sample calls them, and names for numbers of classes."""
        called = [key for key in row if plain_name(key) in LABEL_COLUMNS]
        if len(called) == 1:
            row[LABEL_COLUMNS[0]] = row.pop(called[0])
            called = [LABEL_COLUMNS[0]]
        if self.classes:
            row |= {key: named(row[key], self.classes, f"{where}, field {key!r}") for key in called}

    def content(self, sample: Sample, kind: str) -> dict[str, Any] | None:
        """What a label file says, as fields; None where it is cut off."""
        where = f"{sample.index.path.name}, member {sample.base}.{kind}"
        number = sample.files[kind]
        if sample.index.is_cut(number):
            return None
        if sample.index.sizes[number] > LARGEST_LABELS:
            raise DataError(
                f"{where}: {sample.index.sizes[number] / 1e6:.0f} MB are too much for the labels of an image"
            )
        try:
            text = self.source.member(sample.index, number).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise DataError(f"{where}: not UTF-8 text; save it with UTF-8 encoding") from None
        except DecodeError as error:
            raise DataError(f"{where}: {error}") from None
        return _fields(text, where) if kind == "json" else {LABEL_COLUMNS[0]: _listed(text, kind)}


def _has_labels(row: dict[str, Any]) -> bool:
    return any(plain_name(key) in LABEL_COLUMNS + OBJECT_COLUMNS for key in row)


def _fields(text: str, where: str) -> dict[str, Any]:
    value = parse_json(text, where, rows=True, advice="pack it again", nan=True)
    if isinstance(value, list):
        return {LABEL_COLUMNS[0]: value}
    if not isinstance(value, dict):
        raise DataError(f'{where}: {text.strip()[:40]!r} is no object; write {{"labels": ["a", "b"]}}')
    return value


def _listed(text: str, kind: str) -> str | int | list[int] | list[str]:
    """Names or numbers; a text of one line keeps its delimiters."""
    text = text.strip()
    if kind == "cls" and re.fullmatch(r"\d{1,9}([\s,]+\d{1,9})*", text):
        numbers = [int(number) for number in re.split(r"[\s,]+", text)]
        return numbers if len(numbers) > 1 else numbers[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines if len(lines) > 1 else text

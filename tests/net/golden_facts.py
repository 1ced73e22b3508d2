"""What a run did, as flat facts that can be compared exactly: {where: value}."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

Facts = dict[str, Any]
UNEQUAL = {"created", "seconds"}  # keys whose values are never the same twice
LONG = 120  # characters: above it the digest stands for a text
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
STEP = re.compile(r"step-\d{9}")  # names that say where a run was stopped


def leaves(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Every plain value in nested ones with its path; long texts (pictures) as digests."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            if key not in UNEQUAL:
                yield from leaves(item, f"{where}/{key}")
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from leaves(item, f"{where}/{number}")
    elif isinstance(value, str) and len(value) > LONG:
        yield where, f"text {_digest(value.encode())}"
    else:
        yield where, value


def run_facts(run: Path) -> tuple[Facts, dict[str, str]]:
    """Facts of a run's folder, and for information the names that its tensors had: {fact: names}."""
    facts: Facts = {}
    for path in sorted(run.rglob("*")):
        if path.is_file():
            facts[f"files/{STEP.sub('step-N', path.relative_to(run).as_posix())}"] = "there"
    for path in [*(run / name for name in ("results.json", "details.json")), *sorted((run / "bundle").glob("*.json"))]:
        if path.is_file() and path.name != "checksums.json":  # sums say nothing beside what they are of
            facts |= leaves(json.loads(path.read_text(encoding="utf-8")), path.relative_to(run).as_posix())
    for number, line in enumerate((run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()):
        facts |= leaves(json.loads(line), f"metrics.jsonl/{number}")
    facts |= _scores(run / "scores.npz") if (run / "scores.npz").is_file() else {}
    facts |= page_facts(run / "report.html")
    weights, names = weight_facts(run / "bundle" / "weights.safetensors")
    return {**facts, **weights}, names


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _scores(path: Path) -> Facts:
    with np.load(path, allow_pickle=False) as stored:
        return {
            f"scores.npz/{name}": f"{stored[name].dtype} {list(stored[name].shape)} {_digest(stored[name].tobytes())}"
            for name in sorted(stored.files)
        }


def weight_facts(path: Path) -> tuple[Facts, dict[str, str]]:
    """How often a tensor with this shape, type and content is in the file, by whatever name."""
    counts: Counter[str] = Counter()
    names: dict[str, str] = {}
    for name, (kind, shape, content) in sorted(tensors(path).items()):
        fact = f"weights/{kind} {shape} {_digest(content)}"
        counts[fact] += 1
        names[fact] = f"{names[fact]}, {name}" if fact in names else name
    return dict(counts), names


def tensors(path: Path) -> dict[str, tuple[str, list[int], bytes]]:
    """{name: (type, shape, bytes)} of a safetensors file: a length, a JSON header, then the bytes of all tensors."""
    stored = path.read_bytes()
    length = int.from_bytes(stored[:8], "little")
    header, body = json.loads(stored[8 : 8 + length]), stored[8 + length :]
    return {
        name: (facts["dtype"], facts["shape"], body[slice(*facts["data_offsets"])])
        for name, facts in header.items()
        if name != "__metadata__"
    }


# --- the page -----------------------------------------------------------------------------------------------------


class _Page(HTMLParser):
    """Visible words, headings, pictures, and the data that scripts draw from."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.headings: list[str] = []
        self.data = ""
        self.pictures = 0
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.pictures += 1
        elif tag in ("script", "style", "time", "title") or re.fullmatch("h[1-6]", tag):
            self.inside.append("data" if tag == "script" and ("type", "application/json") in attrs else tag)
            if re.fullmatch("h[1-6]", tag):
                self.headings.append(f"{tag} ")

    def handle_endtag(self, tag: str) -> None:
        if self.inside and (self.inside[-1] == tag or (tag == "script" and self.inside[-1] == "data")):
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        here = self.inside[-1] if self.inside else ""
        if here == "data":
            self.data += data
        elif here not in ("script", "style", "time", "title"):
            self.words.append(data)
            if here:
                self.headings[-1] += data


def page_facts(path: Path) -> Facts:
    """The data in the page, and how often each heading and each number is to be read in it."""
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    made = re.compile(r"\d{4}-\d\d-\d\dT[\d:+]+")  # when the page was made
    text = made.sub("", " ".join(" ".join(page.words).split()))
    facts: Facts = {"report.html/pictures": page.pictures}
    facts |= {f"report.html/heading/{name}": n for name, n in Counter(map(_plain, page.headings)).items()}
    facts |= {f"report.html/number/{name}": n for name, n in Counter(NUMBER.findall(text)).items()}
    if page.data:
        facts |= leaves(json.loads(page.data), "report.html/data")
    return facts


def _plain(text: str) -> str:
    return " ".join(text.split())

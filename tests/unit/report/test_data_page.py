"""The page about data: self-contained, every word of the data stays a word, parts without findings are left out."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from data_findings import PICTURE, findings
from headless import HOSTILE

from manylabel.error import DataError
from manylabel.report import write_data_page

NAMES = [f"label {i}" for i in range(len(HOSTILE))]


class Parsed(HTMLParser):
    """Elements with their attributes, and the text of the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def shape(self) -> list[tuple[str, list[str]]]:
        return [(tag, sorted(attributes)) for tag, attributes in self.found]


def page(values: dict[str, Any], folder: Path) -> str:
    path = write_data_page(values, folder / "check.html")
    assert path == folder / "check.html"
    return path.read_text(encoding="utf-8")


def test_what_is_found_is_said(tmp_path: Path) -> None:
    said = " ".join(" ".join(Parsed(page(findings(NAMES), tmp_path)).words).split())
    for words in (
        "Not trainable as it is", "no image is in label 0", "look at label 1", "1 exact and 1 near copies", "97 %",
        "the same images", "3 of 64 bits differ", "The first 100 of 250 pairs", "The first 40 of 60 groups",
        "counted on 900 images", "damaged label 1", "Nearly one colour: 2", "and 3 more", "0.50 · 1.33 · 12.00",
        "label 0 500 × 480 50 × 48", "label 1 640 × 427 427 × 640 turned", "The first 2 of 130 images",
        "Of 30 only width and height are swapped", "Images that look alike, but have different labels",
        "near 2 images differ in label 0 , label 1",
    ):  # fmt: skip
        assert words in said, words


def test_nothing_is_fetched_and_only_our_script_and_style_run(tmp_path: Path) -> None:
    text = page(findings(NAMES), tmp_path)
    parsed = Parsed(text)
    for tag, attributes in parsed.found:
        for key in ("src", "href", "action", "srcset", "data"):
            value = attributes.get(key)
            assert value is None or value.startswith(("data:", "#")), (tag, value)
        assert "style" not in attributes
    assert "url(" not in text
    assert "@import" not in text
    policy = next(a["content"] or "" for tag, a in parsed.found if tag == "meta" and "http-equiv" in a)
    script = re.findall(r"<script>(.*?)</script>", text, re.S)
    style = re.findall(r"<style>(.*?)</style>", text, re.S)
    assert len(script) == len(style) == 1
    for kind, body in (("script", script[0]), ("style", style[0])):
        assert f"{kind}-src 'sha256-{b64encode(sha256(body.encode()).digest()).decode()}'" in policy


def test_hostile_words_add_no_element_and_no_attribute(tmp_path: Path) -> None:
    plain = Parsed(page(findings(NAMES), tmp_path)).shape
    for word in HOSTILE:
        names = [word, *[name for name in HOSTILE if name != word]]
        text = page(findings(names), tmp_path)
        assert Parsed(text).shape == plain
        embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
        assert embedded
        assert json.loads(embedded.group(1))["labels"]["name"] == names
        assert not re.search("[<>&\u2028\u2029]", embedded.group(1))


def test_only_real_pictures_are_shown(tmp_path: Path) -> None:
    values = findings(NAMES)
    values["pictures"] = {NAMES[0]: PICTURE, NAMES[1]: "https://example.org/x.png"}
    shown = [a for tag, a in Parsed(page(values, tmp_path)).found if tag == "img"]
    assert {a["src"] for a in shown} == {PICTURE}
    assert {a["alt"] for a in shown} == {NAMES[0]}
    del values["pictures"]
    assert "<img" not in page(values, tmp_path)


def test_parts_without_findings_are_left_out(tmp_path: Path) -> None:
    values = findings(NAMES)
    values |= {"trainable": True, "problems": [], "warnings": [], "similar_names": [], "unreadable": {}, "splits": {}}
    values["suspicious"] = {"kinds": {}, "images": []}
    values["duplicates"] |= {"group_count": 0, "groups": []}
    values["leaks"] = {"count": 0, "images": {}, "pairs": []}
    values["contradictions"] = {"count": 0, "exact": 0, "near": 0, "groups": []}
    values["wrong_sizes"] = {"count": 0, "turned": 0, "images": []}
    values["cooccurrence"] |= {"names": [], "counts": [], "pairs": [], "implied": [], "identical": [], "exclusive": []}
    values["image_sizes"] |= {"most_frequent": [], "formats": {}}
    values["support_by_split"], values["known_share"], values["unknown_share"] = {}, {}, 0.0
    parsed = Parsed(page(values, tmp_path))
    anchors = [a["href"] for tag, a in parsed.found if tag == "a"]
    assert anchors == ["#summary", "#labels"]
    assert "Nothing to object to." in " ".join(parsed.words)
    identifiers = {a.get("id") for _, a in parsed.found}
    assert not identifiers & {
        "names",
        "sizes",
        "wrong-sizes",
        "leaks",
        "contradictions",
        "duplicates",
        "suspicious",
        "unreadable",
    }


def test_every_link_has_its_section(tmp_path: Path) -> None:
    parsed = Parsed(page(findings(NAMES), tmp_path))
    identifiers = [a["id"] for _, a in parsed.found if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    links = [str(a["href"])[1:] for tag, a in parsed.found if tag == "a"]
    assert len(links) == 11
    assert set(links) <= set(identifiers)


def test_names_that_are_no_unicode_can_be_written(tmp_path: Path) -> None:
    text = page(findings(["bad \udcff name", *NAMES[1:]]), tmp_path)
    assert "bad ? name" in text


def test_findings_of_something_else_are_an_error(tmp_path: Path) -> None:
    values = findings(NAMES)
    del values["leaks"], values["support"]
    with pytest.raises(DataError, match="lack support, leaks; check the data again"):
        write_data_page(values, tmp_path / "check.html")
    assert not (tmp_path / "check.html").exists()

"""The report page: what is in it, what can never get into it, and what it says about files that are not right."""

from __future__ import annotations

import copy
import json
import math
import re
import subprocess
import sys
import time
from base64 import b64decode, b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manylabel.compact import compact
from manylabel.error import DataError
from manylabel.report import curve, report_from_files, wording, write_report

SIX = {"CP": 70.1, "CR": 55.2, "CF1": 61.8, "OP": 78.3, "OR": 60.4, "OF1": 68.2}
PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
HOSTILE = [
    "<script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "</script><svg onload=window.hacked=1>",
    "' onmouseover='window.hacked=1",
    "<!--<script>",
    "{{ 7*7 }}{% raw %}",
    "a & b &lt;i&gt;",
    "line\u2028and\u2029paragraph",
    "שלום كلب",
    "\u202egnp.evil",
    "🐶🇬🇧",
    "x" * 1000,
]


def results(names: list[str]) -> dict[str, Any]:
    labels = [
        {
            "name": name,
            "ap": 90.0 - 60 * i / len(names),
            "ap_interpolated": 91.0 - 60 * i / len(names),
            "support": 10 + 3 * i,
            "known": 1000,
            "threshold": 0.4,
            "precision": 71.0,
            "recall": 64.0,
            "f1": 67.3,
        }
        for i, name in enumerate(names)
    ]
    return {
        "schema": 1,
        "title": "linear on efficientnet_lite0",
        "created": "2026-11-16T10:00:00+00:00",
        "data": {"name": "scenes", "split": "val", "images": 1000, "bad_images": 2},
        "model": {
            "backbone": "efficientnet_lite0",
            "head": "linear",
            "image_size": 224,
            "parameters": 3_400_000,
            "trainable_parameters": 35_000,
            "loss": "bce",
            "freeze": "frozen",
        },
        "mAP": 61.24,
        "mAP_interpolated": 61.91,
        **SIX,
        "top3": {**SIX, "CP": 74.9},
        "at_thresholds": {**SIX, "CF1": 64.7},
        "f1_at": {"3": {"precision": 51.2, "recall": 66.1, "f1": 57.7}},
        "calibration_error": 1.83,
        "label_calibration_error": 2.24,
        "labels_scored": 78,
        "labels_total": 80,
        "definitions": {"mAP": "not interpolated: mean precision at the positives"},
        "notes": ["thresholds were fitted on these images"],
        "labels": labels,
    }


def details(names: list[str]) -> dict[str, Any]:
    shape = {"recall": [0.25, 0.5, 1.0], "precision": [1.0, 0.8, 0.4]}
    guesses = [
        {"label": names[-1], "score": 0.97, "present": False},
        {"label": names[0], "score": 0.2, "present": None},
    ]
    mistake = {"file": "a.jpg", "thumbnail": PIXEL, "label": names[0], "present": names[:2], "top": guesses}
    return {
        "curves": [shape for _ in names],
        "calibration": {"edges": [0, 0.5, 1], "score": [0.1, None], "observed": [0.2, None], "count": [9, 0]},
        "cooccurrence": {"names": names[:3], "counts": [[9, 3, 0], [3, 8, 1], [0, 1, 0]][: len(names[:3])]},
        "experts": {
            "experts": ["shared 1", "own 1"],
            "gates": names,
            "layers": [[[0.2, 0.8] for _ in names], [[0.999, 0.001] for _ in names]],
            "allowed": [1 for _ in names],
            "entropies": [[0.7 for _ in names], [0.01 for _ in names]],
            "summaries": [
                {"state": "mixed", "label_entropy": 0.7, "divergence": 0.1, "similarity": None},
                {"state": "collapsed", "label_entropy": 0.01, "divergence": 0.0, "similarity": -0.02},
            ],
        },
        "history": [{"epoch": 1, "loss": 0.21, "mAP": 40.1, "rate": 0.001, "seconds": 1.2}],
        "mistakes": [
            {**mistake, "kind": "missed", "score": 0.021},
            {**mistake, "kind": "false alarm", "score": 0.9996, "label": names[-1]},
        ],
    }


NAMES = ["dog", "cat", "person", "tree"]


def page(given: dict[str, Any], more: dict[str, Any], folder: Path) -> str:
    return write_report(given, more, folder / "report.html").read_text(encoding="utf-8")


class Tags(HTMLParser):
    """Every element with its attributes, and the text of the scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.script: list[str] = []
        self.words: list[str] = []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self.script.append("")
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.script[-1] += data
        elif self.inside != "style":
            self.words.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.found)


def embedded(text: str) -> dict[str, Any]:
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert block
    return json.loads(block.group(1))


def test_headline_figures_notes_and_definitions_stand_in_the_page(tmp_path: Path) -> None:
    text = page(results(NAMES), details(NAMES), tmp_path)
    words = " ".join(" ".join(Tags(text).words).split())  # no-break spaces too become plain ones
    headlines = ["mAP 61.2 %", "CF1 61.8 %", "OF1 68.2 %", "Calibration error 1.8 %", "78 of 80", "Images 1,000"]
    header = ["linear on efficientnet_lite0", "16 November 2026, 10:00 UTC", "2 unreadable", "3.4 M, 35 k trained"]
    others = ["Interpolated: 61.9 %", "74.9", "64.7", "57.7", "thresholds were fitted on these images"]
    for expected in [*headlines, *header, *others, "not interpolated: mean precision at the positives"]:
        assert expected in words, expected


def test_mistakes_are_captioned_with_label_and_score(tmp_path: Path) -> None:
    text = page(results(NAMES), details(NAMES), tmp_path)
    words = " ".join(" ".join(Tags(text).words).split())  # no-break spaces too become plain ones
    assert "missed dog 2 %" in words
    assert "false alarm tree > 99.9 %" in words  # 0.9996 is not a certainty
    assert [a["src"] for tag, a in Tags(text).found if tag == "img"] == [PIXEL, PIXEL]


def test_maps_stand_beside_the_photos(tmp_path: Path) -> None:
    more = details(NAMES)
    other = PIXEL.replace("data:image/png", "data:image/jpeg") if "png" in PIXEL else PIXEL
    more["mistakes"][0]["overlay"] = other
    more["mistakes"][1]["overlay"] = "https://example.org/a.jpg"
    more["hits"] = [{**more["mistakes"][0], "kind": "hit", "label": "cat", "score": 0.97}]
    more["explained"] = "The second picture: <b>where</b> it looked."
    tags = Tags(page(results(NAMES), more, tmp_path))
    pictures = [a["alt"] for tag, a in tags.found if tag == "img"]
    looked = "where the model looked for "
    assert pictures == ["a.jpg", f"{looked}dog", "a.jpg", "a.jpg", f"{looked}cat"]
    words = " ".join(" ".join(tags.words).split())
    assert "hit cat 97 %" in words
    assert words.count("The second picture: <b>where</b> it looked.") == 2
    with pytest.raises(DataError, match="must be 'hit'"):
        page(results(NAMES), {"hits": [{"kind": "missed"}]}, tmp_path)


def test_page_refers_to_nothing_outside_itself(tmp_path: Path) -> None:
    text = page(results(NAMES), details(NAMES), tmp_path)
    assert "://" not in text
    assert "@import" not in text
    assert "url(" not in text
    for tag, attributes in Tags(text).found:
        for key in ("src", "href", "action", "srcset", "data"):
            value = attributes.get(key)
            assert value is None or value.startswith(("data:", "#")), (tag, value)


def test_policy_allows_exactly_the_script_and_style_of_the_page(tmp_path: Path) -> None:
    text = page(results(NAMES), details(NAMES), tmp_path)
    parsed = Tags(text)
    policy = next(a["content"] for tag, a in parsed.found if tag == "meta" and "http-equiv" in a)
    style = re.search(r"<style>(.*?)</style>", text, re.S)
    assert style
    for kind, body in (("script", parsed.script[1]), ("style", style.group(1))):
        digest = b64encode(sha256(body.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in (policy or "")
    assert (policy or "").startswith("default-src 'none'; img-src data:;")
    assert " style=" not in text.split("<script", 1)[0]  # the policy would ignore such an attribute


def test_scripts_never_make_markup_from_text() -> None:
    folder = Path(write_report.__code__.co_filename).parent / "script"
    for path in folder.glob("*.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(", path.read_text()
        )


def test_hostile_words_add_no_element_and_no_attribute(tmp_path: Path) -> None:
    plain_names = [f"label {i}" for i in range(len(HOSTILE))]
    plain = Tags(page(results(plain_names), details(plain_names), tmp_path))
    for word in HOSTILE:
        names = [word, *[name for name in HOSTILE if name != word]]
        given, more = results(names), details(names)
        given["title"] = given["notes"][0] = given["definitions"]["mAP"] = word
        given["data"].update(name=word, split=word)
        given["model"].update(backbone=word, head=word, loss=word, freeze=word)
        given["created"] = word
        more["mistakes"][0]["file"] = word
        text = page(given, more, tmp_path)
        parsed = Tags(text)
        shape = [(tag, sorted(attributes)) for tag, attributes in parsed.found]
        assert shape == [(tag, sorted(attributes)) for tag, attributes in plain.found]
        assert embedded(text)["labels"]["name"] == names
        assert not re.search("[<>&\u2028\u2029]", parsed.script[0])


def test_words_that_cannot_be_encoded_do_not_stop_the_page(tmp_path: Path) -> None:
    given = results(["broken \ud800", "cat"])
    assert embedded(page(given, {}, tmp_path))["labels"]["name"] == ["broken ?", "cat"]


@pytest.mark.parametrize(
    "picture", ["https://example.org/a.jpg", "javascript:alert(1)", "data:image/svg+xml;base64,AAAA", "a.jpg", None, 3]
)
def test_only_embedded_pictures_are_shown(picture: Any, tmp_path: Path) -> None:
    more = details(NAMES)
    for mistake in more["mistakes"]:
        mistake["thumbnail"] = picture
    text = page(results(NAMES), more, tmp_path)
    assert Tags(text).count("img") == 0
    assert text.count("no picture") == 2


def test_undefined_figures_are_a_dash_with_a_reason(tmp_path: Path) -> None:
    given = results(NAMES)
    given["mAP"], given["CF1"], given["label_calibration_error"] = None, math.nan, None
    given["labels"][1].update(ap=None, precision=math.nan, f1=None)
    text = page(given, {}, tmp_path)
    reasons = [a["title"] for tag, a in Tags(text).found if tag == "abbr" and a.get("class") == "none"]
    assert len(reasons) == 4  # mAP, CF1 as a card and in the table, calibration per label
    assert all(reason and "undefined" in reason for reason in reasons)
    columns = embedded(text)["labels"]
    assert (columns["ap"][1], columns["precision"][1], columns["f1"][1]) == (None, None, None)


def test_sections_without_details_disappear(tmp_path: Path) -> None:
    everything = ["labels", "curves", "spread", "calibration", "history", "experts", "cooccurrence", "mistakes"]

    def shown(more: dict[str, Any]) -> list[str]:
        found = Tags(page(results(NAMES), more, tmp_path)).found
        ids = [a.get("id") for _, a in found]
        links = [str(a["href"])[1:] for tag, a in found if tag == "a"]
        assert links == ["summary", *[name for name in everything if name in ids]]
        return links[1:]

    assert shown(details(NAMES)) == everything
    assert shown({}) == ["labels", "spread"]
    for name in ("curves", "calibration", "history", "experts", "cooccurrence", "mistakes"):
        assert shown({**details(NAMES), name: None}) == [section for section in everything if section != name]
    assert shown({**details(NAMES), "curves": [None] * 4, "history": []}) == [
        "labels",
        "spread",
        *everything[3:4],
        *everything[5:],
    ]
    no_label_scored = results(NAMES)
    for label in no_label_scored["labels"]:
        label.update(ap=None, support=0)
    assert 'id="spread"' not in page(no_label_scored, {}, tmp_path)


def test_only_the_most_frequent_labels_are_drawn_together(tmp_path: Path) -> None:
    counts = np.ones((50, 50), int)
    np.fill_diagonal(counts, np.arange(50) + 10)
    more = {"cooccurrence": {"names": [f"n{i}" for i in range(50)], "counts": counts.tolist()}}
    drawn = embedded(page(results(NAMES), more, tmp_path))["cooccurrence"]
    assert drawn["names"] == [f"n{i}" for i in range(10, 50)]
    assert np.diag(drawn["counts"]).tolist() == list(range(20, 60))


TOP = ("schema", "title", "created", "data", "model", "mAP", *SIX, "calibration_error", "labels_scored", "labels_total")
REQUIRED: list[tuple[Any, ...]] = [
    *[(key,) for key in (*TOP, "labels")],
    *[("data", "name"), ("data", "images"), ("model", "backbone"), ("model", "head")],
    *[("top3", "CP"), ("at_thresholds", "OF1"), ("f1_at", "3", "f1"), ("labels", 1, "name"), ("labels", 1, "ap")],
]


@pytest.mark.parametrize("path", REQUIRED, ids=lambda path: ".".join(map(str, path)))
def test_a_missing_key_is_named(path: tuple[Any, ...], tmp_path: Path) -> None:
    given = copy.deepcopy(results(NAMES))
    place: Any = given
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]
    with pytest.raises(DataError, match=rf"lacks the key '{path[-1]}'; evaluate the model again"):
        write_report(given, {}, tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def changed(values: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**values, **changes}


@pytest.mark.parametrize(
    ("given", "more", "says"),
    [
        (changed(results(NAMES), schema=2), {}, "results.schema is 2, this version reads 1"),
        (changed(results(NAMES), mAP="61"), {}, "results.mAP must be a number or null"),
        (changed(results(NAMES), mAP=True), {}, "results.mAP must be a number or null"),
        (changed(results(NAMES), mAP=101.0), {}, "results.mAP is 101, which is not between 0 and 100"),
        (changed(results(NAMES), OF1=-1), {}, "results.OF1 is -1"),
        (changed(results(NAMES), labels={}), {}, "results.labels must be a list"),
        (changed(results(NAMES), labels=[3]), {}, r"results.labels\[0\] must be an object"),
        (changed(results(NAMES), title=7), {}, "results.title must be text"),
        (results(NAMES), [], "details must be an object"),
        (results(NAMES), {"curves": [None]}, "details.curves has 1 entries for 4 labels"),
        (
            results(NAMES),
            {"curves": [None, {"recall": [0.1], "precision": [50.0]}, None, None]},
            r"details.curves\[1\].precision\[0\] is 50, which is not between 0 and 1",
        ),
        (
            results(NAMES),
            {"curves": [{"recall": [0.1], "precision": [0.1, 0.2]}] * 4},
            r"details.curves\[0\] has 2 precisions but 1 recalls",
        ),
        (
            results(NAMES),
            {"calibration": {"edges": [0, 1], "score": [0.5, 0.6], "observed": [0.5], "count": [1]}},
            "details.calibration needs 2 edges, 1 scores",
        ),
        (results(NAMES), {"cooccurrence": {"names": ["a"], "counts": [[1, 2]]}}, "must be 1 rows of 1 numbers"),
        (
            results(NAMES),
            {"experts": {"experts": ["a"], "gates": ["b"], "layers": [[[0.5, 0.5]]]}},
            "must be 1 rows of 1 numbers",
        ),
        (
            results(NAMES),
            {"experts": {"experts": ["a"], "gates": ["b"], "layers": [[[0.5]]], "entropies": [[0.5, 0.5]]}},
            "details.experts.entropies has 2 entries for 1 gates",
        ),
        (
            results(NAMES),
            {"experts": {"experts": ["a"], "gates": ["b"], "layers": [[[0.5]]], "summaries": [{"state": "mixed"}]}},
            "details.experts.summaries lacks the key 'label_entropy'",
        ),
        (results(NAMES), {"history": [{"loss": 1}]}, r"details.history\[0\] lacks the key 'epoch'"),
        (results(NAMES), {"mistakes": [{"kind": "odd"}]}, "must be 'missed' or 'false alarm'"),
        (results(NAMES), {"mistakes": [{"kind": "missed", "score": 0.1}]}, "lacks the key 'file'"),
    ],
)
def test_a_wrong_value_is_named(given: Any, more: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=says):
        write_report(given, more, tmp_path / "report.html")


def test_files_become_a_page_beside_them_or_where_asked(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps(results(NAMES)), encoding="utf-8")
    assert report_from_files(tmp_path) == tmp_path / "report.html"
    assert "curves-chart" not in (tmp_path / "report.html").read_text().split("<script", 1)[0]
    (tmp_path / "details.json").write_text(json.dumps(details(NAMES)), encoding="utf-8")
    out = report_from_files(tmp_path, tmp_path / "new" / "folder" / "r.html")
    assert "curves-chart" in out.read_text().split("<script", 1)[0]
    assert [path.name for path in out.parent.iterdir()] == ["r.html"]


def test_what_gates_do_is_said_in_words(tmp_path: Path) -> None:
    words = Tags(page(results(NAMES), details(NAMES), tmp_path)).words
    said = " ".join(" ".join(words).split())
    assert "Layer 1: mixed gates." in said
    assert "Layer 2: collapsed gates. Most labels give nearly all weight to the same expert." in said
    assert "cosine between experts -0.02" in said
    before = {**details(NAMES)["experts"]}
    del before["entropies"], before["summaries"]
    assert "mixed gates" not in page(results(NAMES), {**details(NAMES), "experts": before}, tmp_path)


@pytest.mark.parametrize("name", ["results.json", "details.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe{}", b"[" * 100_000])
def test_a_broken_file_is_named_and_the_old_page_stays(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps(results(NAMES)), encoding="utf-8")
    before = report_from_files(tmp_path).read_bytes()
    (tmp_path / name).write_bytes(content)
    with pytest.raises(
        DataError, match=rf"{name}.*(no valid JSON|not UTF-8 text|must hold a JSON object).*evaluate the model again"
    ):
        report_from_files(tmp_path)
    assert (tmp_path / "report.html").read_bytes() == before


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no .*results\.json; a finished run has one"):
        report_from_files(tmp_path)


def test_an_error_in_a_file_names_the_folder(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=rf"{re.escape(str(tmp_path))}: results lacks the key 'schema'"):
        report_from_files(tmp_path)


def test_packed_curves_keep_their_points_ordered_by_recall() -> None:
    points = [(1.0, 0.25), (0.0, 1.0), (0.5, 0.6789)]
    shares = np.frombuffer(b64decode(curve.pack(points)), "<u2").reshape(2, 3) / 65535
    np.testing.assert_allclose(shares, [[0.0, 0.5, 1.0], [1.0, 0.6789, 0.25]], atol=1e-5)


def test_mean_curve_is_the_mean_of_straight_lines_and_ignores_labels_without_a_curve() -> None:
    falling, level = [(0.0, 1.0), (1.0, 0.0)], [(0.5, 0.4)]
    mean = dict(curve.mean([falling, None, level]))
    assert len(mean) == 101
    for recall, precision in mean.items():
        assert precision == pytest.approx(((1 - recall) + 0.4) / 2)
    assert curve.mean([None]) == []


def test_numbers_in_words() -> None:
    shares = [wording.share(x).replace("\u00a0", " ") for x in (0, 0.0004, 0.004, 0.02, 0.93, 0.995, 0.9996, 1)]
    assert shares == ["0 %", "< 0.1 %", "0.4 %", "2 %", "93 %", "99.5 %", "> 99.9 %", "100 %"]
    assert [compact(n).replace("\u00a0", " ") for n in (12, 35_000, 3_400_000, 2.5e9)] == [
        "12", "35 k", "3.4 M", "2.5 G",
    ]  # fmt: skip
    assert wording.date("not a date") == "not a date"


def test_numpy_numbers_are_numbers(tmp_path: Path) -> None:
    given = results(NAMES)
    given["mAP"], given["labels"][0]["support"], given["labels"][0]["ap"] = (
        np.float32(50),
        np.int64(7),
        np.float32(33.5),
    )
    columns = embedded(page(given, {}, tmp_path))["labels"]
    assert (columns["support"][0], columns["ap"][0]) == (7, 33.5)


def test_ten_thousand_labels_stay_a_page_one_can_send(tmp_path: Path) -> None:
    names = [f"label {i}" for i in range(9605)]
    rng = np.random.default_rng(0)
    more = {"curves": [{"recall": np.sort(r).tolist(), "precision": p.tolist()} for r, p in rng.random((9605, 2, 100))]}
    start = time.process_time()
    out = write_report(results(names), more, tmp_path / "report.html")
    assert time.process_time() - start < 20
    assert out.stat().st_size < 8_000_000  # the same curves with four decimals are 13 MB of JSON


def test_report_needs_neither_torch_nor_matplotlib() -> None:
    code = "import sys, manylabel.report; print([m for m in ('torch', 'timm', 'matplotlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

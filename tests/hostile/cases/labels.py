"""Names of labels: shown safely everywhere, and read back as they were written."""

from __future__ import annotations

import csv
import io
import json
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

from hostile.box import Box
from hostile.case import Collection
from hostile.kit import QUICK
from hostile.strange import edit_json

NAMES: dict[str, str] = {
    "a newline": "re\nd",
    "a newline at the end": "red\n",
    "a carriage return": "re\rd",
    "a tab": "re\td",
    "an escape sequence": "\x1b[2J\x1b[31mred\x1b]0;owned\x07",
    "C1 characters": "\x9b2Jre\x85d",
    "a NUL": "re\0d",
    "a form feed": "re\fd",
    "delete": "re\x7fd",
    "XML's own": "a&b<c>\"d'e]]>",
    "a control character that XML forbids": "re\x0bd\x01",
    "a noncharacter": "re\ufffed",
    "a lone surrogate": "re\ud800d",
    "a script": "<script>alert(1)</script>",
    "an image with an event": "<img src=x onerror=alert(1)>",
    "the end of a script": "</script><script>alert(1)</script>",
    "a quote that ends an attribute": '" onmouseover="alert(1)',
    "a formula": "=cmd|'/C calc'!A0",
    "a formula with a plus": "+1+1",
    "a formula with an at": "@SUM(1)",
    "delimiters": "a|b,c;d",
    "every delimiter": "a|b;c,d\te",
    "a quote": 'say "red"',
    "an apostrophe": "it's",
    "1,000 characters": "x" * 1000,
    "10,000 characters": "x" * 10_000,
    "right to left": "\u202eder\u202c",
    "zero width": "re\u200bd",
    "emoji": "🦊👩‍👩‍👧",
    "combining marks": "Z" + "\u0351" * 200,
    "blanks around": "  red  ",
    "only a point": ".",
    "a path": "../../next-door/x",
    "a backslash": "a\\b",
    "an option": "--json",
    "a format": "{0} %s %(x)s ${HOME}",
    "rich markup": "[bold red]x[/] [link=file:///etc]y[/link]",
    "a YAML tag": "!!python/object:x",
    "null": "null",
    "a number": "007",
    "a template": "{{ 7 * 7 }}{% raw %}",
    "a line separator": "re\u2028d",
    "no-break blanks": "re\u00a0d",
}


def groups() -> Iterator[Collection]:
    yield _of_bundles()
    yield _of_data()


def _of_bundles() -> Collection:
    """In a bundle that somebody gave us: refused, or shown safely."""
    made = Collection("labels of a bundle")

    def case(kind: str, name: str, command: str) -> None:
        def work(box: Box) -> None:
            box.get("photo.jpg")
            several = command.endswith("(tasks)")
            shutil.copytree(box.kit.folder / ("tasks" if several else "run") / "bundle", box / "bundle")
            _rename(box, name, several)
            if command == "predict":
                said = box.run("predict", "bundle", "photo.jpg", codes=[0, 2])
                box.expect(said.code == 2 or len(said.out.splitlines()) == 1, "more than one line for an image")
            elif command == "predict (tasks)":
                said = box.run("predict", "bundle", "photo.jpg", "--task", "labels", codes=[0, 2])
                box.expect(said.code == 2 or len(said.out.splitlines()) == 1, "more than one line for an image")
            elif command == "predict --json":
                said = box.run("predict", "bundle", "photo.jpg", "--json", codes=[0, 2])
                if said.code == 0:
                    box.expect(len(said.json()[0]["labels"]) == 4, "not four labels")
            elif command == "predict --csv":
                said = box.run("predict", "bundle", "photo.jpg", "--csv", "out.csv", codes=[0, 2], writes=["out.csv"])
                if said.code == 0:
                    _read_back(box, name)
            elif command == "predict --label-studio":
                words = ["predict", "bundle", "photo.jpg", "--label-studio", "out.json"]
                said = box.run(*words, codes=[0, 2], writes=["out.json", "label_config.xml"])
                if said.code == 0:
                    box.json_file("out.json")
                    _valid_xml(box, "label_config.xml")
            elif command == "explain":
                box.run("explain", "bundle", "photo.jpg", codes=[0, 2], writes=["explanations/**"])

        made.add(f"{kind}: {command}", work)

    always = ("predict", "predict --csv", "predict --label-studio")
    others = ("predict --json", "explain", "predict (tasks)")
    for number, (kind, name) in enumerate(NAMES.items()):
        for command in (*always, others[number % 3], *(others[1:] if number < 8 and number % 3 == 0 else ())):
            case(kind, name, command)
    return made


def _rename(box: Box, name: str, several: bool) -> None:
    def change(values: dict) -> None:
        values["labels"][0].update(name=name, threshold=0.001)

    edit_json(box / "bundle", "tasks/labels/labels.json" if several else "labels.json", change)


def _read_back(box: Box, name: str) -> None:
    """What we wrote is one row, harmless in a spreadsheet, and data that we read with the same label in it."""
    text = (box / "out.csv").read_text(encoding="utf-8")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    box.expect(len(rows) == 2, f"{len(rows)} rows for a header and an image")
    box.expect(rows[1][1][:1] not in ("=", "+", "@"), "a cell that a spreadsheet would compute")

    def read() -> list[str]:
        import manylabel as ml
        from manylabel.data.write.csv import choose_delimiter

        delimiter = choose_delimiter([name, "green", "blue", "white"])
        more = {"allow_markup": True, "ignore_columns": ["scores", "error"], "delimiter": delimiter}
        return list(ml.load_data("out.csv", **more).labels)

    found = box.python(read)
    box.expect(name in found, f"the label {name!r:.60} is not among {found!r:.200}")


def _valid_xml(box: Box, name: str) -> None:
    try:
        ElementTree.fromstring((box / name).read_bytes())
    except ElementTree.ParseError as error:
        box.expect(False, f"{name} is no XML: {error}")


def _of_data() -> Collection:
    """In a label file: refused, or trained with, shown and written safely."""
    made = Collection("labels of the data")

    def case(kind: str, name: str, lenient: bool) -> None:
        def work(box: Box) -> None:
            box.get("photos")
            rows = list(csv.reader(io.StringIO((box / "photos" / "labels.csv").read_text())))
            records = [
                {
                    "file_name": row[0],
                    "labels": [name if one == "red" else one for one in row[1].split("|") if one],
                    "split": row[2],
                }
                for row in rows[1:]
            ]
            (box / "photos" / "labels.csv").unlink()
            box.write("photos/labels.jsonl", "".join(json.dumps(record) + "\n" for record in records))
            more = ["--set", "data.allow_markup=true"] if lenient else []
            said = box.run("train", "photos", *QUICK, *more, "--out", "new", codes=[0, 2], writes=["new/**"], cpu=60)
            if said.code == 0:
                for page in ("report.html", "bundle/README.md"):
                    text = (box / "new" / page).read_text(encoding="utf-8")
                    bad = [one for one in ("<script>alert", "<img src=x onerror") if one in text]
                    box.expect(not bad, f"{page} runs a label")
                box.json_file("new/results.json")
                box.get("photo.jpg")
                box.run("predict", "new", "photo.jpg")
            box.run("data", "check", "photos", *more, "--html", "page.html", codes=[0, 1, 2], writes=["page.html"])
            for target, out in (("csv", "out.csv"), ("coco", "out.json"), ("label-studio", "tasks.json")):
                writes = [out, "label_config.xml"]
                done = box.run("data", "convert", "photos", out, "--to", target, *more, codes=[0, 2], writes=writes)
                if done.code == 0 and target == "csv":
                    box.run("data", "check", out, "--set", "data.images=photos/images", *more, codes=[0, 1])
                if done.code == 0 and target == "label-studio" and (box / "label_config.xml").is_file():
                    _valid_xml(box, "label_config.xml")

        made.add(f"{kind}{', markup allowed' * lenient}", work)

    for kind, name in NAMES.items():
        if name.isprintable() or kind not in ("a lone surrogate",):
            case(kind, name, False)
            case(kind, name, True)
    return made

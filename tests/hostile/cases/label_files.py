"""Label files of every kind, damaged: a table, or one sentence; and nothing outside of the data is read or written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

from hostile.box import Box
from hostile.case import Collection
from hostile.strange import deep_json, mutated, with_a_strange_value

MB = 1 << 20
MUTATED = 84
HEAD = "file_name,labels\n"
ROW = "photo{:03d}.jpg,red|blue\n"


def groups() -> Iterator[Collection]:
    made = Collection("label files")
    rows = "".join(ROW.format(number) for number in range(28))
    csv_texts: dict[str, bytes | str] = {
        "NUL bytes": HEAD + rows + "photo\0.jpg,red\n",
        "all NUL": b"\0" * 500,
        "UTF-16": (HEAD + rows).encode("utf-16"),
        "UTF-16 without its mark": (HEAD + rows).encode("utf-16-le"),
        "UTF-32": (HEAD + rows).encode("utf-32"),
        "a byte order mark": b"\xef\xbb\xbf" + (HEAD + rows).encode(),
        "Latin-1": (HEAD + rows.replace("red", "r\xf6d")).encode("latin-1"),
        "an open quote": HEAD + '"photo000.jpg,red\n' + rows,
        "an open quote at the end": HEAD + rows + 'photo027.jpg,"red',
        "a quote inside": HEAD + 'photo0"00.jpg,re"d\n' + rows,
        "a field of 5 MB": HEAD + "photo000.jpg," + "x" * (5 * MB) + "\n",
        "a line of 100,000 labels": HEAD + "photo000.jpg," + "|".join(f"l{i}" for i in range(100_000)) + "\n",
        "100,000 columns": ",".join(f"c{i}" for i in range(100_000)) + "\n",
        "old Mac line ends": (HEAD + rows).replace("\n", "\r"),
        "line ends mixed": HEAD.replace("\n", "\r\n") + rows,
        "an image twice": HEAD + ROW.format(1) + ROW.format(1),
        "an image twice with other labels": HEAD + ROW.format(1) + "photo001.jpg,green\n",
        "no rows": HEAD,
        "no header": rows,
        "empty": "",
        "only blanks": " \n \n",
        "columns twice": "file_name,labels,labels\n" + "photo000.jpg,red,blue\n",
        "too few cells": HEAD + "photo000.jpg\n",
        "too many cells": HEAD + "photo000.jpg,red,blue,green\n",
        "a path above the data": HEAD + rows + "../../next-door/photo.jpg,red\n",
        "an absolute path": HEAD + rows + "{far}/photo.jpg,red\n",
        "a home path": HEAD + rows + "~/photo.jpg,red\n",
        "an address": HEAD + rows + "http://127.0.0.1:9/x.jpg,red\n",
        "a file address": HEAD + rows + "file:///etc/passwd,red\n",
        "a device": HEAD + rows + "/dev/zero,red\n",
        "a formula": HEAD + rows.replace("red", "=HYPERLINK(1)"),
        "control characters": HEAD + rows.replace("red", "r\x1b[31med"),
        "a bell and a backspace": HEAD + rows.replace("red", "r\x07\x08ed"),
        "C1 characters": HEAD + rows.replace("red", "r\x9b2Jed"),
        "right to left": HEAD + rows.replace("red", "\u202eder"),
        "no labels at all": HEAD + "".join(f"photo{i:03d}.jpg,\n" for i in range(28)),
        "one label for all": HEAD + "".join(f"photo{i:03d}.jpg,red\n" for i in range(28)),
        "labels that differ in case": HEAD + rows + "photo020.jpg,RED\n",
        "an unknown split": "file_name,labels,split\nphoto000.jpg,red,tarin\n",
        "markup": HEAD + rows.replace("red", "<img src=x onerror=alert(1)>"),
        "missing images": HEAD + rows + "missing.jpg,red\n",
        "a folder for an image": HEAD + rows + ".,red\n",
        "itself for an image": HEAD + rows + "../labels.csv,red\n",
        "a million empty lines": HEAD + rows + "\n" * 1_000_000,
        "delimiters only": HEAD + "|||||||,||||\n",
    }
    for name, text in csv_texts.items():
        for command in ("data check", "data convert"):

            def work(box: Box, text: bytes | str = text, command: str = command) -> None:
                box.get("photos")
                if isinstance(text, str):
                    text = text.replace("{far}", str(box.root / "next-door"))
                box.write("photos/labels.csv", text)
                _look(box, "photos", command)

            made.add(f"CSV: {name}: {command}", work)

    json_texts: dict[str, bytes | str] = {
        "lists nested deep": deep_json(),
        "objects nested deep": deep_json(kind="{"),
        "NaN": '{"images": NaN}',
        "5,000 digits": '{"images": [' + "9" * 5000 + "]}",
        "surrogates": '{"images": ["\\ud800"]}',
        "no UTF-8": b'{"images": "\xff"}',
        "cut off": '{"images": [{"id": 1',
        "a number": "5",
        "keys twice": '{"images": [], "images": 5, "annotations": [], "categories": []}',
        "ids that are lists": '{"images": [{"id": [1], "file_name": "a.jpg"}], "annotations": [], "categories": []}',
    }
    for name, text in json_texts.items():
        for file in ("labels.json", "labels.jsonl"):

            def work(box: Box, text: bytes | str = text, file: str = file) -> None:
                box.get("photos")
                (box / "photos" / "labels.csv").unlink()
                box.write(f"photos/{file}", text)
                _look(box, f"photos/{file}", "data check")

            made.add(f"JSON: {name}: {file}", work)

    xml = (
        "<annotation><filename>photo000.jpg</filename><size><width>96</width><height>72</height></size><object><name>{}"
        "</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></object></annotation>"
    )
    entities = "".join(f'<!ENTITY {b} "{("&" + a + ";") * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    xml_texts: dict[str, bytes | str] = {
        "a bomb of entities": f'<!DOCTYPE x [<!ENTITY a "lol">{entities}]>' + xml.format("&i;"),
        "an entity that is a file": '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + xml.format("&a;"),
        "an entity that is an address": '<!DOCTYPE x [<!ENTITY a SYSTEM "http://127.0.0.1:9/">]>' + xml.format("&a;"),
        "nested deep": "<a>" * 100_000,
        "no end": xml.format("red")[:80],
        "another encoding": b'<?xml version="1.0" encoding="utf-7"?>' + xml.format("red").encode(),
        "NUL": xml.format("r\0ed"),
        "a path above": xml.format("red").replace("photo000.jpg", "../../next-door/photo.jpg"),
        "boxes of infinity": xml.format("red").replace(">9<", ">1e999<"),
        "boxes of NaN": xml.format("red").replace(">9<", ">nan<"),
        "a size of zero": xml.format("red").replace(">96<", ">0<"),
    }
    for name, text in xml_texts.items():

        def work(box: Box, text: bytes | str = text) -> None:
            box.get("photos")
            os.rename(box / "photos" / "images", box / "photos" / "JPEGImages")
            (box / "photos" / "labels.csv").unlink()
            box.write("photos/Annotations/photo000.xml", text)
            said = _look(box, "photos", "data check")
            box.expect("root:x" not in said, "a file that is no label file is shown")

        made.add(f"XML: {name}", work)

    def written(target: str, box: Box) -> str:
        """The kit's labels in another format; the file to damage."""
        box.get("photos")
        if target == "csv":
            return "photos/labels.csv"
        name = "photos/labels.json"
        if target == "imagefolder":
            box.run("data", "convert", "photos", "other", "--to", target, "--images", "copy", writes=["other/**"])
            return str(sorted((box / "other").rglob("metadata.*"))[0].relative_to(box.path))
        box.run("data", "convert", "photos", name, "--to", target, writes=["photos/*.json", "photos/*.xml"])
        (box / "photos" / "labels.csv").unlink()
        return name

    targets = ("csv", "coco", "label-studio", "imagefolder")
    for number in range(MUTATED):
        target = targets[number % len(targets)]

        def mutate(box: Box, target: str = target, number: int = number) -> None:
            name = written(target, box)
            path = box / name
            if path.suffix == ".json" and number % 8 > 3:
                values = json.loads(path.read_text())
                path.write_text(json.dumps(with_a_strange_value(values, box.dice)))
            else:
                path.write_bytes(mutated(path.read_bytes(), box.dice))
            _look(box, name.split("/")[0] if number % 3 else name, ("data check", "data convert", "train")[number % 3])

        made.add(f"mutated {number:02d} {target}", mutate)

    def special(name: str, prepare: Callable[[Box], Any]) -> None:
        def work(box: Box) -> None:
            box.get("photos")
            (box / "photos" / "labels.csv").unlink()
            prepare(box)
            _look(box, "photos/labels.csv", "data check")

        made.add(f"CSV: {name}", work)

    special("a pipe", lambda box: os.mkfifo(box / "photos" / "labels.csv"))
    special("a folder", lambda box: (box / "photos" / "labels.csv").mkdir())
    special("a link to /dev/zero", lambda box: os.symlink("/dev/zero", box / "photos" / "labels.csv"))
    special("a link to itself", lambda box: os.symlink("labels.csv", box / "photos" / "labels.csv"))
    special("a photo", lambda box: box.get("photo.jpg", "photos/labels.csv"))
    special("a terabyte of nothing", lambda box: os.truncate(box.write("photos/labels.csv", HEAD), 10**12))
    yield made


def _look(box: Box, path: str, command: str) -> str:
    from hostile.kit import QUICK

    words = {
        "data check": ["data", "check", path],
        "data convert": ["data", "convert", path, "out.csv", "--to", "csv"],
        "train": ["train", path, *QUICK, "--out", "new"],
    }[command]
    codes = [0, 1, 2] if command == "data check" else [0, 2]
    said = box.run(*words, codes=codes, writes=["out.csv", "new/**"], memory=600 * MB, cpu=20)
    if command == "data convert" and said.code == 0:
        box.run("data", "check", "out.csv", "--set", f"data.images={path.split('/')[0]}", codes=[0, 1, 2])
    return said.said

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from labelled_files import assert_same, put_images, put_json, table_at, varied_table

from manylabel.data.write.from_table import content_of
from manylabel.data.write.label_studio import labelling_config, task_of_scores, write_label_studio


@pytest.mark.parametrize("splits", [False, True])
@pytest.mark.parametrize("mostly_unknown", [False, True])
def test_round_trip(tmp_path: Path, splits: bool, mostly_unknown: bool) -> None:
    table = varied_table(tmp_path / "from", splits=splits, mostly_unknown=mostly_unknown)
    notes = write_label_studio(content_of(table), tmp_path / "to")
    assert any("1 boxes are crowds" in note for note in notes)
    assert any("LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT" in note for note in notes)
    again = table_at(tmp_path / "to", images=str(tmp_path / "from"))
    assert_same(again, table)
    assert any("predictions are read as labels" in note for note in again.notes)


def test_images_that_come_along(tmp_path: Path) -> None:
    table = varied_table(tmp_path / "from")
    write_label_studio(content_of(table, "copy"), tmp_path / "to" / "mine.json")
    again = table_at(tmp_path / "to" / "mine.json")
    assert_same(again, table, ["images/"] * len(table))


def test_tasks_are_what_label_studio_takes(tmp_path: Path) -> None:
    table = varied_table(tmp_path / "from")
    write_label_studio(content_of(table), tmp_path / "to")
    tasks = json.loads((tmp_path / "to/tasks.json").read_text(encoding="utf-8"))
    assert tasks[1]["data"]["image"] == "/data/local-files/?d=%C3%A9t%C3%A9/b%20c.jpg"
    assert tasks[3]["data"]["image"] == "/data/local-files/?d=d%231.jpg"
    assert tasks[0]["data"]["unknown_labels"] == ['d\'été "x"']
    prediction = tasks[0]["predictions"][0]
    assert prediction["model_version"] == "manylabel"
    assert "score" not in prediction
    choices, box = prediction["result"]
    assert choices["value"] == {"choices": ["bus, red"]}
    assert (box["original_width"], box["original_height"]) == (40, 30)
    assert box["value"]["x"] == pytest.approx(2.5)
    assert box["value"]["height"] == pytest.approx(100 * 20 / 30)
    assert tasks[2]["predictions"][0]["result"] == []
    names = {control.get("name") for control in ElementTree.parse(tmp_path / "to/label_config.xml").getroot()}
    assert {choices["from_name"], box["from_name"], choices["to_name"]} <= names


def test_the_config_escapes_names() -> None:
    names = ["<b>&", 'say "hi"', "it's", "犬"]
    root = ElementTree.fromstring(labelling_config(names, boxes=True))
    assert [choice.get("value") for choice in root.iter("Choice")] == names
    assert [label.get("value") for label in root.iter("Label")] == names
    choices = root.find("Choices")
    assert choices is not None
    assert choices.get("choice") == "multiple"
    assert ElementTree.fromstring(labelling_config(names, boxes=False)).find("RectangleLabels") is None


def test_corrections_of_a_person_win_over_what_was_predicted(tmp_path: Path) -> None:
    table = varied_table(tmp_path / "from", boxes=False)
    write_label_studio(content_of(table), tmp_path / "to")
    tasks = json.loads((tmp_path / "to/tasks.json").read_text(encoding="utf-8"))
    for task in tasks:
        task["annotations"] = [{"result": [{"type": "choices", "value": {"choices": ['d\'été "x"']}}]}]
    put_json(tmp_path / "to/tasks.json", tasks)
    again = table_at(tmp_path / "to", images=str(tmp_path / "from"))
    assert again.labels.names == table.labels.names
    assert again.matrix.tolist() == [[0, 0, 1, 0, 0], [0, 0, 1, 0, -1], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0]]


def test_tasks_of_scores(tmp_path: Path) -> None:
    put_images(tmp_path, "a.jpg", "b.jpg")
    tasks = [
        task_of_scores("a.jpg", [("x", 0.9, True), ("y", 0.3, False), ("z", 0.8, True)], version="bird-3"),
        task_of_scores("b.jpg", [("x", 0.1, False), ("y", 0.05, False)], version="bird-3"),
    ]
    assert [task["predictions"][0]["score"] for task in tasks] == [0.7, 0.9]
    assert tasks[0]["predictions"][0]["model_version"] == "bird-3"
    assert tasks[0]["predictions"][0]["result"][0]["value"]["choices"] == ["x", "z"]
    put_json(tmp_path / "tasks.json", tasks)
    (tmp_path / "label_config.xml").write_text(labelling_config(["x", "y", "z"], boxes=False))
    table = table_at(tmp_path)
    assert table.labels.names == ("x", "y", "z")
    assert table.matrix.tolist() == [[1, 0, 1], [0, 0, 0]]

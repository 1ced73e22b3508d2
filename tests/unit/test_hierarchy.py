"""Label files with parents, synonyms and descriptions, and what they imply for the labels of images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from manylabel.config import DataConfig
from manylabel.data.read import read_table
from manylabel.data.read.label_file import read_label_file
from manylabel.error import DataError
from manylabel.evaluation import judge
from manylabel.hierarchy import Hierarchy, LabelFacts
from manylabel.labels import ABSENT, PRESENT, UNKNOWN, LabelSpace

Make = Callable[[str], Path]
YAML = """
animal:
dog: {parents: [animal], synonyms: [puppy, hound], description: a tame dog}
poodle: {parents: dog}
cat: {parents: [animal]}
vehicle: {description: it has wheels}
"""


def _write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def _table(path: Path, labels: Path) -> object:
    return read_table(DataConfig(path=str(path), labels=str(labels)))


def test_levels_ancestors_and_descendants(tmp_path: Path) -> None:
    found = read_label_file(_write(tmp_path, "l.yaml", YAML))
    assert found.names == ("animal", "dog", "poodle", "cat", "vehicle")
    assert [found.level(name) for name in found.names] == [0, 1, 2, 1, 0]
    assert found.ancestors(["poodle"]) == {"dog", "animal"}
    assert found.descendants(["animal"]) == {"dog", "poodle", "cat"}
    assert found.name("Puppy") == "dog"
    assert found.name("lion") is None
    assert found.facts["vehicle"].description == "it has wheels"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.json", '{"animal": {}, "dog": {"parents": ["animal"], "synonyms": ["puppy"], "description": "tame"}}'),
        ("l.csv", "label,parents,synonyms,description\nanimal,,,\ndog,animal,puppy,tame\n"),
        ("l.tsv", "label\tparents\tsynonyms\tdescription\nanimal\t\t\t\ndog\tanimal\tpuppy\ttame\n"),
        ("l.yml", "animal: {}\ndog: {parents: animal, synonyms: [puppy], description: tame}\n"),
    ],
)
def test_every_form_says_the_same(tmp_path: Path, name: str, text: str) -> None:
    found = read_label_file(_write(tmp_path, name, text))
    assert found.facts == {"animal": LabelFacts(), "dog": LabelFacts(("animal",), ("puppy",), "tame")}


def test_a_plain_list_sets_the_order_and_closes_the_list(make_csv: Make, tmp_path: Path) -> None:
    path = make_csv("file_name,labels\na.jpg,dog|cat\nb.jpg,dog\nc.jpg,\n")
    table = _table(path, _write(tmp_path, "l.txt", "dog\ncat\nbird\n"))
    assert table.labels.names == ("dog", "cat", "bird")  # type: ignore[attr-defined]
    with pytest.raises(DataError, match=r"row 2: label 'cat' is not in l.txt.*did you mean 'cats'"):
        _table(path, _write(tmp_path, "l.txt", "dog\ncats\n"))


def test_a_present_child_makes_its_ancestors_present(make_csv: Make, tmp_path: Path) -> None:
    path = make_csv("file_name,labels\na.jpg,poodle\nb.jpg,hound|vehicle\nc.jpg,\n")
    table = _table(path, _write(tmp_path, "l.yaml", YAML))
    assert table.matrix.tolist() == [[1, 1, 1, 0, 0], [1, 1, 0, 0, 1], [0, 0, 0, 0, 0]]  # type: ignore[attr-defined]


def test_an_absent_ancestor_makes_its_descendants_absent(make_csv: Make, tmp_path: Path) -> None:
    path = make_csv("file_name,animal,dog,poodle,cat\na.jpg,0,,,\nb.jpg,,0,,1\nc.jpg,,,,\n")
    table = _table(path, _write(tmp_path, "l.yaml", YAML))
    assert table.matrix[:, :4].tolist() == [  # type: ignore[attr-defined]
        [ABSENT, ABSENT, ABSENT, ABSENT],
        [PRESENT, ABSENT, ABSENT, PRESENT],
        [UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN],
    ]


def test_an_unknown_child_leaves_its_ancestors_open(make_csv: Make, tmp_path: Path) -> None:
    path = make_csv("file_name,labels,unknown_labels\na.jpg,,dog\nb.jpg,cat,poodle\nc.jpg,,\n")
    table = _table(path, _write(tmp_path, "l.yaml", YAML))
    assert table.matrix.tolist() == [[-1, -1, 0, 0, 0], [1, -1, -1, 1, 0], [0, 0, 0, 0, 0]]  # type: ignore[attr-defined]


def test_a_contradiction_names_the_row(make_csv: Make, tmp_path: Path) -> None:
    path = make_csv("file_name,animal,dog\na.jpg,1,1\nb.jpg,0,1\nc.jpg,,\n")
    with pytest.raises(DataError, match="row 3: label '(animal|dog)' is both present and absent"):
        _table(path, _write(tmp_path, "l.yaml", YAML))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("l.txt", "\n\n", "names no label"),
        ("l.txt", "a\nb\na\n", "l.txt, line 3: label 'a' stands twice"),
        ("l.yaml", "dog: {parents: [animl]}\nanimal: {}\n", "'dog' has the parent 'animl'.*did you mean 'animal'"),
        ("l.yaml", "a: {parents: b}\nb: {parents: a}\n", "ancestor of itself"),
        ("l.yaml", "a: {synonyms: [x]}\nb: {synonyms: [X]}\n", "'X' stands for 'a' and for 'b'"),
        ("l.yaml", "a: {parent: b}\n", "label 'a': 'parent' is none of.*did you mean 'parents'"),
        ("l.yaml", "a: 3\n", "label 'a': write 'parents'"),
        ("l.yaml", "a: [b\n", "l.yaml, row 2: no valid YAML"),
        ("l.json", '{"a": ', "l.json, row 1: cut off or no valid JSON"),
        ("l.json", '{"a": {"parents": 3}}', "label 'a': parents must be a list"),
        ("l.yaml", "- no\n- yes\n", "label False: is no text; write it in quotes"),
        ("l.yaml", "- a\n- b\n- a\n", "label 'a': label 'a' stands twice"),
        ("l.yaml", "a: &x {description: y}\nb: *x\n", "row 2: no valid YAML .a reference"),
        ("l.csv", "name,parents\na,\n", "row 1: no column 'label'"),
        ("l.csv", "label,parents\na,,,\n", "row 2: more cells"),
        ("l.csv", "label,parents\n,a\n", "row 2: the label is blank"),
    ],
)
def test_every_error_names_the_place(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_label_file(_write(tmp_path, name, text))


def test_a_chain_of_thousands_is_no_problem() -> None:
    facts = {f"n{i}": LabelFacts((f"n{i + 1}",) if i < 3000 else ()) for i in range(3001)}
    found = Hierarchy(facts)
    assert found.level("n0") == 3000
    assert len(found.ancestors(["n0"])) == 3000


def test_figures_by_level() -> None:
    hierarchy = Hierarchy({"animal": LabelFacts(), "dog": LabelFacts(("animal",)), "cat": LabelFacts(("animal",))})
    matrix = np.array([[1, 1, 0], [1, 0, 1], [0, 0, 0], [1, 1, 0]], np.int8)
    scores = np.array([[0.9, 0.9, 0.1], [0.2, 0.1, 0.8], [0.1, 0.1, 0.1], [0.8, 0.7, 0.2]], np.float32)
    labels = LabelSpace(("animal", "dog", "cat"))
    figures = judge(scores, matrix, labels, np.full(3, 0.5), fitted_here=False, hierarchy=hierarchy)
    assert [row["labels"] for row in figures["levels"]] == [1, 2]
    assert [row["mAP"] for row in figures["levels"]] == [100.0, 100.0]
    assert figures["levels"][1]["CF1"] == 100.0
    assert figures["contradictions"] == pytest.approx(
        100 / 3, abs=1e-3
    )  # the cat without an animal, of three decisions
    assert "levels" not in judge(scores, matrix, labels, np.full(3, 0.5), fitted_here=False)


def test_other_data_is_judged_by_the_hierarchy_of_the_model(make_csv: Make) -> None:
    hierarchy = Hierarchy(
        {"animal": LabelFacts(), "dog": LabelFacts(("animal",), ("puppy",)), "cat": LabelFacts(("animal",))}
    )
    table = read_table(DataConfig(path=str(make_csv("file_name,labels\na.jpg,puppy\nb.jpg,car\nc.jpg,dog|car\n"))))
    seen = table.with_labels(LabelSpace(("animal", "dog", "cat")), hierarchy)
    assert seen.matrix.tolist() == [[1, 1, -1], [-1, 0, -1], [1, 1, -1]]  # a car photo may show a cat: nobody looked
    named = read_table(DataConfig(path=str(make_csv("file_name,animal,dog\na.jpg,0,\nb.jpg,,1\nc.jpg,1,0\n"))))
    seen = named.with_labels(LabelSpace(("animal", "dog", "cat")), hierarchy)
    assert seen.matrix.tolist() == [[0, 0, 0], [1, 1, -1], [1, 0, -1]]


def test_synonyms_in_one_row_are_one_label(make_csv: Make, tmp_path: Path) -> None:
    path = make_csv("file_name,labels\na.jpg,dog|puppy\nb.jpg,cat|cat\nc.jpg,\n")
    table = _table(path, _write(tmp_path, "l.yaml", YAML))
    assert table.matrix[:, [1, 3]].tolist() == [[1, 0], [0, 1], [0, 0]]  # type: ignore[attr-defined]

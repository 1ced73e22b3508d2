"""A file without a mark is ours as long as it is what its receipt says, and not a byte longer."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from manylabel.storage.output import wrote
from manylabel.storage.receipt import has_receipt, is_receipt, receipt_of, replacing_ours, write_ours


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_ours(tmp_path / "labels.csv", "file_name,labels\na.jpg,cat\n")
    return tmp_path / "labels.csv"


def test_what_we_wrote_is_ours_until_somebody_changes_it(table: Path) -> None:
    assert wrote(table)
    assert [path.name for path in table.parent.iterdir() if is_receipt(path)] == [".labels.csv.manylabel"]
    table.write_text(table.read_text().replace("cat", "dog"))
    assert not wrote(table)
    write_ours(table, "file_name,labels\n")
    assert wrote(table)


def test_another_s_file_under_the_name_of_ours_is_not_ours(table: Path) -> None:
    table.with_name("other.csv").write_bytes(table.read_bytes())
    assert not wrote(table.with_name("other.csv"))
    table.unlink()
    assert not has_receipt(table)


def test_a_receipt_moves_with_its_file(table: Path) -> None:
    place = table.parent / "elsewhere"
    place.mkdir()
    receipt_of(table).rename(receipt_of(place / table.name))
    table.rename(place / table.name)
    assert wrote(place / table.name)


def test_nothing_of_others_is_taken_for_a_receipt_or_lost_for_one(table: Path) -> None:
    for mine in (
        "",
        "[]",
        "{}",
        '{"sha256": 1}',
        "[" * 100_000,
        json.dumps({"made_by": "me", "sha256": []}),
    ):
        receipt_of(table).write_text(mine)
        assert not has_receipt(table)
        write_ours(table, "again")
        assert receipt_of(table).read_text() == mine
        assert not has_receipt(table)
    receipt_of(table).unlink()
    os.mkfifo(receipt_of(table))
    assert not has_receipt(table)
    write_ours(table, "again")
    assert receipt_of(table).is_fifo()


def test_a_file_that_was_not_finished_keeps_the_receipt_of_the_old_one(table: Path) -> None:
    def stopped() -> None:
        with replacing_ours(table) as temporary:
            temporary.write_text("half")
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError):
        stopped()
    assert wrote(table)


def test_whoever_is_killed_before_the_new_file_has_its_name_leaves_one_of_ours(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def killed(source: Path, target: Path) -> None:
        if target == table:
            raise SystemExit
        replace(source, target)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(SystemExit):
        write_ours(table, "new")
    monkeypatch.undo()
    assert "cat" in table.read_text()
    assert wrote(table)


def test_names_as_long_as_a_file_system_takes(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 125 + ".csv")
    write_ours(path, "x")
    assert wrote(path)

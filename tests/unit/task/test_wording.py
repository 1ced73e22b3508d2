"""Errors of one task among several say which, and name its settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_tasks import SMALL

from manylabel.error import DataError, ManylabelError
from manylabel.run import train
from manylabel.stop import Stopped
from manylabel.task.wording import in_words_of


def test_settings_are_those_of_the_task() -> None:
    said = r"^task birds: none is there; --set tasks\.birds\.data\.images=FOLDER$"
    with pytest.raises(DataError, match=said), in_words_of("birds"):
        raise DataError("none is there; --set data.images=FOLDER")
    said = r"^task birds: train with --set tasks\.birds\.kind=multi_label$"
    with pytest.raises(DataError, match=said), in_words_of("birds"):
        raise DataError("task birds: train with --kind multi_label")


def test_only_settings_are_changed() -> None:
    text = (
        "task birds_old: mydata.path of data.csv; --set 'data.ignore_columns=[note]', data.fold needs data.split_file"
    )
    with pytest.raises(DataError) as caught, in_words_of("birds"):
        raise DataError(text)
    assert str(caught.value) == (
        "task birds: task birds_old: mydata.path of data.csv; --set 'tasks.birds.data.ignore_columns=[note]', "
        "tasks.birds.data.fold needs tasks.birds.data.split_file"
    )
    with pytest.raises(Stopped, match="^stopped$"), in_words_of("birds"):
        raise Stopped("stopped", 15)


def test_the_only_task_needs_no_name() -> None:
    with pytest.raises(DataError, match=r"^none is there; --set data\.images=FOLDER$"), in_words_of("labels", False):
        raise DataError("none is there; --set data.images=FOLDER")


def test_an_error_of_a_run_says_whose_it_is(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("file_name,labels\ngone.jpg,a\n")
    settings = [f"tasks.labels.data.path={tmp_path / 'labels.csv'}"]
    with pytest.raises(ManylabelError, match=r"(?s)^task labels: .*--set tasks\.labels\.data\."):
        train(out=tmp_path / "run", recipe=SMALL, settings=settings)
    assert not (tmp_path / "run" / "checkpoints").exists()

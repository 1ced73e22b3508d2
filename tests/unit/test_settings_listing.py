"""What `manylabel settings` lists is what --set takes, with the defaults that it says."""

from __future__ import annotations

import pytest

from manylabel.config import make_config, plain
from manylabel.config.listing import settings_of_one_task, settings_of_several_tasks

ONE, SEVERAL = settings_of_one_task(), settings_of_several_tasks()
SHORT = {"tasks": {"labels": {"data": {"path": "scenes"}}}}  # everything else is as it is by itself
UNSET = "none"  # a path, or a name


def test_every_setting_is_explained_once() -> None:
    for listed in (ONE, SEVERAL):
        keys = [key for key, _, _ in listed]
        assert len(set(keys)) == len(keys)
        assert all(text for _, _, text in listed)
    assert {"train.epochs", "train.adapt.patience", "data.scenes.size", "head.name"} <= {key for key, _, _ in ONE}
    assert {"tasks.NAME.data.path", "tasks.NAME.head.name", "tasks.NAME.weight"} <= {key for key, _, _ in SEVERAL}


@pytest.mark.parametrize(("key", "default"), [row[:2] for row in ONE if row[1] != UNSET])
def test_defaults_change_nothing(key: str, default: str) -> None:
    plainly = make_config(None, [], data={"path": "scenes"})
    assert plain(make_config(None, [f"{key}={default}"], data={"path": "scenes"})) == plain(plainly)


@pytest.mark.parametrize(("key", "default"), [row[:2] for row in SEVERAL if row[1] != UNSET])
def test_defaults_of_several_tasks_change_nothing(key: str, default: str) -> None:
    again = make_config(SHORT, [f"{key.replace('NAME', 'labels')}={default}"])
    assert plain(again) == plain(make_config(SHORT))

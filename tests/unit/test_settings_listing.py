"""What `manylabel settings` lists is what --set takes."""

from __future__ import annotations

import pytest
from small_tasks import SMALL

from manylabel.config import make_config
from manylabel.config.listing import settings_of_one_task, settings_of_several_tasks
from manylabel.multitask.settings import make_multitask_config

ONE, SEVERAL = settings_of_one_task(), settings_of_several_tasks()


def test_every_setting_is_explained_once() -> None:
    for listed in (ONE, SEVERAL):
        keys = [key for key, _, _ in listed]
        assert len(set(keys)) == len(keys)
        assert all(text for _, _, text in listed)
    assert {"train.epochs", "data.scenes.size", "head.name"} <= {key for key, _, _ in ONE}
    assert {"tasks.NAME.data.path", "tasks.NAME.detector.name", "selection.k"} <= {key for key, _, _ in SEVERAL}


@pytest.mark.parametrize(("key", "default"), [row[:2] for row in ONE])
def test_defaults_can_be_set(key: str, default: str) -> None:
    if default != "none":  # a path, or a name
        make_config(None, [f"{key}={default}"], data={"path": "scenes"})


@pytest.mark.parametrize(("key", "default"), [row[:2] for row in SEVERAL])
def test_defaults_of_several_tasks_can_be_set(key: str, default: str) -> None:
    if default != "none":
        make_multitask_config(SMALL, [f"{key.replace('NAME', 'labels')}={default}"])

"""Settings of several tasks: what is laid over what, and what cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from manylabel.config import MultiTaskConfig, dump, load_recipe, parse, recipe_names
from manylabel.config.parse import plain
from manylabel.error import ConfigError
from manylabel.multitask.model import MultiTaskModel
from manylabel.multitask.settings import make_multitask_config
from manylabel.several_tasks import names_tasks

LABELS: dict[str, Any] = {"kind": "multi_label", "data": {"path": "scenes"}}
OBJECTS: dict[str, Any] = {"kind": "detection", "data": {"path": "scenes"}}


def _values(**more: Any) -> dict[str, Any]:
    return {"tasks": {"labels": LABELS, "objects": OBJECTS}, "vit": {"size": "tiny"}, **more}


def test_settings_reach_a_task() -> None:
    config = make_multitask_config(
        _values(),
        ["tasks.labels.head.name=ml_decoder", "tasks.labels.head.groups=4", "tasks.objects.weight=0.5"],
        seed=3,
    )
    assert config.tasks["labels"].head.name == "ml_decoder"
    assert config.tasks["labels"].head.options["groups"] == 4
    assert config.tasks["objects"].weight == 0.5
    assert config.train.seed == 3


def test_another_head_drops_the_options_of_the_old_one() -> None:
    values = _values(tasks={"labels": {**LABELS, "head": {"name": "linear", "dropout": 0.3}}})
    config = make_multitask_config(values, ["tasks.labels.head.name=ml_decoder"])
    assert config.tasks["labels"].head.options["dropout"] != 0.3


def test_another_optimiser_or_schedule_drops_the_options_of_the_old_one() -> None:
    values = _values(optimiser={"name": "adamw", "lr": 0.1}, schedule={"name": "cosine", "warm_up": 0.3})
    config = make_multitask_config(values, ["optimiser.name=sgd", "schedule.name=constant"])
    assert config.optimiser.options["lr"] == 0.05  # that of SGD
    assert config.schedule.name == "constant"
    assert make_multitask_config(values, ["optimiser.weight_decay=0.2"]).optimiser.options["lr"] == 0.1


def test_data_for_tasks_that_name_none() -> None:
    values = _values(tasks={"a": {"kind": "multi_label"}, "b": OBJECTS})
    config = make_multitask_config(values, data={"path": "photos"})
    assert config.tasks["a"].data.path.endswith("photos")
    assert config.tasks["b"].data.path == "scenes"


@pytest.mark.parametrize(
    ("values", "settings", "message"),
    [
        ({"tasks": {}}, [], "tasks must name one task or more"),
        ({"tasks": {"a": {"kind": "multi_label"}}}, [], "task a has no data"),
        ({"tasks": {"a.b": LABELS}}, [], "no name for a task"),
        ({"tasks": {"a": {**LABELS, "knd": 1}}}, [], r"no setting 'tasks\.a\.knd'.*kind"),
        ({"tasks": {"a": {**LABELS, "kind": "multilabel"}}}, [], r"tasks\.a\.kind cannot be.*multi_label"),
        ({"tasks": {"a": {**LABELS, "loss": "cross_entropy"}}}, [], "needs kind: single_label"),
        ({"tasks": {"a": "scenes"}}, [], r"tasks\.a takes settings of its own"),
        ({"tasks": {"a": LABELS}}, ["experts.count=0"], r"experts\.count"),
        ({"tasks": {"a": OBJECTS}}, ["tasks.a.detector.stages=7"], r"detector\.stages"),
        ({"tasks": {"a": OBJECTS}}, ["tasks.a.detector.name=yolo"], "no detector 'yolo'"),
    ],
)
def test_what_cannot_be(values: dict[str, Any], settings: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_multitask_config(values, settings)


def test_one_label_competes_by_default() -> None:
    config = make_multitask_config({"tasks": {"a": {**LABELS, "kind": "single_label"}}})
    assert config.tasks["a"].loss.name == "cross_entropy"


def test_more_experts_than_there_are() -> None:
    config = make_multitask_config(_values(selection={"k": 9}))
    with pytest.raises(ConfigError, match="9 experts to begin with, where a layer has 8"):
        MultiTaskModel(config, {"labels": 3, "objects": 3})


def test_data_of_a_task_in_short() -> None:
    config = make_multitask_config(_values(), ["tasks.labels.data=photos"], seed=3)
    assert config.tasks["labels"].data.path.endswith("photos")


def test_experts_that_no_layer_has() -> None:
    config = make_multitask_config(_values(), ["vit.layers=1"])
    with pytest.raises(ConfigError, match=r"experts.where=every_two leaves none of 1 layers with experts"):
        MultiTaskModel(config, {"labels": 3, "objects": 3})


def test_a_dense_network_has_no_experts_to_choose() -> None:
    config = make_multitask_config(_values(selection={"k": 2}), ["experts.sharing=dense"])
    model = MultiTaskModel(config, {"labels": 3, "objects": 3})
    assert (model.k("labels"), model.k("objects"), model.selection.most) == (1, 1, 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["tasks.object.batch_size=2"], "no such task.*objects"),
        (["tasks.foo=none"], "no such task"),
        (["train.first=label"], "no task 'label'.*labels"),
        (["train.first_steps=5"], "of which task"),
        (["tasks.labels.data=7"], r"tasks.labels.data takes a path"),
        (["train=none"], "train"),
        (["train.seed=4294967296"], "train.seed"),
        (["selection.k=3", "selection.most=2"], r"selection.most.*selection.k=3 or more"),
        (["tasks.objects.augment.colour=0.2"], "augment.colour is not for detection"),
        (["tasks.labels.head.name=ml_decoder", "tasks.labels.head.query=text"], "head.query=text needs words"),
        (["tasks.values.kind=multi_label", "tasks.values.data.path=scenes"], "'values' is no name for a task"),
    ],
)
def test_slips_are_told(given: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_multitask_config(_values(), given)


def test_none_means_none() -> None:
    config = make_multitask_config(
        _values(train={"first": "labels", "first_steps": 9}), ["vit.weights=none", "vit.stem=none"]
    )
    assert (config.vit.weights, config.vit.stem, config.train.first) == (None, None, "labels")
    alone = make_multitask_config(_values(train={"first": "labels", "first_steps": 9}), ["tasks.labels=none"])
    assert (list(alone.tasks), alone.train.first, alone.train.first_steps) == (["objects"], None, 0)


def test_data_that_no_task_takes() -> None:
    with pytest.raises(ConfigError, match="every task of this recipe names its own data; leave photos out"):
        make_multitask_config(_values(), data={"path": "photos"})


def test_presets_of_adaptive_selection() -> None:
    """The paper's figures and its released code's; what is said beside them counts."""
    paper = make_multitask_config(_values(selection={"preset": "paper"})).selection
    assert (paper.k, paper.patience, paper.held_out) == (1, 2000, 0.01)
    reference = make_multitask_config(_values(), ["selection.preset=reference", "selection.start=7"]).selection
    assert (reference.k, reference.every, reference.patience, reference.start) == (2, 2000, 5000, 7)
    own = _values(selection={"k": 3, "every": 50, "patience": 100, "start": 9, "least": 0.1, "most": 4})
    asked = make_multitask_config(own, ["selection.preset=reference", "selection.every=70"]).selection
    assert (asked.k, asked.every, asked.patience, asked.start) == (2, 70, 5000, 40000)  # over the recipe's own
    assert (asked.least, asked.most) == (0, 0)
    with pytest.raises(ConfigError, match="selection.preset cannot be 'papers'.*paper"):
        make_multitask_config(_values(selection={"preset": "papers"}))


def test_a_config_survives_a_file() -> None:
    import yaml

    config = make_multitask_config(_values(), ["experts.count=4"])
    again = parse(MultiTaskConfig, yaml.safe_load(dump(config)))
    assert plain(again) == plain(config)


@pytest.mark.parametrize("name", [name for name in recipe_names() if names_tasks(load_recipe(name))])
def test_the_model_of_a_recipe(name: str) -> None:
    import torch

    values = load_recipe(name)
    data = None if any("data" in task for task in values["tasks"].values()) else {"path": "scenes"}
    config = make_multitask_config(values, data=data)
    with torch.device("meta"):
        model = MultiTaskModel(config, dict.fromkeys(config.tasks, 20), load_weights=False)
    assert set(model.heads) == set(config.tasks)

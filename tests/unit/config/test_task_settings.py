"""Settings of several tasks: what is laid over what, what cannot be, and what earlier versions called it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from manylabel.config import (
    Config,
    config_of,
    dump,
    has_one_task,
    load_recipe,
    make_config,
    migrated,
    names_tasks,
    plain,
    recipe_names,
)
from manylabel.error import ConfigError
from manylabel.model import Model
from manylabel.run import resolve
from manylabel.run.recipe_choice import choose_recipe

LABELS: dict[str, Any] = {"kind": "multi_label", "data": {"path": "scenes"}}
OBJECTS: dict[str, Any] = {"kind": "detection", "data": {"path": "scenes"}}
VIT: dict[str, Any] = {"name": "moe_vit", "weights": "none", "freeze": "full", "options": {"size": "tiny"}}
STEPS = {"steps": 100}


def _values(**more: Any) -> dict[str, Any]:
    return {"tasks": {"labels": LABELS, "objects": OBJECTS}, "backbone": VIT, "train": STEPS, **more}


def made(values: dict[str, Any], settings: Any = (), **more: Any) -> Config:
    return resolve(make_config(values, settings, **more))


def test_settings_reach_a_task() -> None:
    config = made(
        _values(),
        [
            "tasks.labels.head.name=ml_decoder",
            "tasks.labels.head.groups=4",
            "tasks.objects.weight=0.5",
            "tasks.objects.head.stages=1",
        ],
    )
    assert config.tasks["labels"].head.name == "ml_decoder"
    assert config.tasks["labels"].head.options["groups"] == 4
    assert config.tasks["objects"].weight == 0.5
    assert (config.tasks["objects"].head.name, config.tasks["objects"].head.options["stages"]) == ("cascade", 1)
    assert config.lead == "labels"


def test_another_head_drops_the_options_of_the_old_one() -> None:
    values = _values(tasks={"labels": {**LABELS, "head": {"name": "linear", "dropout": 0.3}}})
    config = made(values, ["tasks.labels.head.name=ml_decoder"])
    assert config.tasks["labels"].head.options["dropout"] != 0.3


def test_another_optimiser_or_schedule_drops_the_options_of_the_old_one() -> None:
    values = _values(optimiser={"name": "adamw", "lr": 0.1}, schedule={"name": "cosine", "warm_up": 0.3})
    config = made(values, ["optimiser.name=sgd", "schedule.name=constant"])
    assert config.optimiser.options["lr"] == 0.05  # that of SGD
    assert config.schedule.name == "constant"
    assert made(values, ["optimiser.weight_decay=0.2"]).optimiser.options["lr"] == 0.1


def test_another_backbone_drops_the_options_of_the_old_one() -> None:
    config = made(_values(), ["backbone.name=test_resnet"])
    assert (config.backbone.options, config.backbone.freeze) == ({}, "full")


def test_data_for_tasks_that_name_none() -> None:
    values = _values(tasks={"a": {"kind": "multi_label"}, "b": OBJECTS})
    config = made(values, data={"path": "photos"})
    assert config.tasks["a"].data.path.endswith("photos")
    assert config.tasks["b"].data.path == "scenes"


def test_a_run_with_one_task_needs_no_name_for_it() -> None:
    """Its settings stand at the top of a file, where it has no others; both forms are one config."""
    short = make_config(None, ["data.path=scenes", "head.name=ml_decoder"])
    long = make_config(None, ["tasks.labels.data.path=scenes", "tasks.labels.head.name=ml_decoder"])
    assert short == long
    assert has_one_task(short)
    assert "tasks" not in yaml.safe_load(dump(short))
    weighed = make_config(None, ["tasks.labels.data.path=scenes", "tasks.labels.weight=2"])
    assert not has_one_task(weighed)
    assert yaml.safe_load(dump(weighed))["tasks"]["labels"]["weight"] == 2


def test_a_second_task_beside_that_of_a_recipe() -> None:
    """What a recipe has at the top is its task `labels`."""
    config = make_config("linear-probe", ["tasks.more.kind=multi_label", "tasks.more.data.path=scenes"])
    assert list(config.tasks) == ["labels", "more"]
    assert config.tasks["labels"].loss.name == make_config("linear-probe").only.loss.name


@pytest.mark.parametrize(
    ("values", "settings", "message"),
    [
        ({"tasks": {}}, [], "tasks must name one task or more"),
        ({"tasks": {"a": {"kind": "multi_label"}}}, [], "task a has no data"),
        ({"tasks": {"a.b": LABELS}}, [], "no name for a task"),
        ({"tasks": {"a": {**LABELS, "knd": 1}}}, [], r"no setting 'tasks\.a\.knd'.*kind"),
        ({"tasks": {"a": {**LABELS, "kind": "multilabel"}}}, [], r"tasks\.a\.kind cannot be.*multi_label"),
        ({"tasks": {"a": {**LABELS, "loss": "cross_entropy"}}}, [], "task a: .*kind: single_label"),
        ({"tasks": {"a": "scenes"}}, [], r"tasks\.a takes settings of its own"),
        ({"tasks": {"a": LABELS}}, ["backbone.options.experts.count=0"], r"experts\.count"),
        ({"tasks": {"a": OBJECTS}}, ["tasks.a.head.stages=7"], r"stages"),
        ({"tasks": {"a": OBJECTS}}, ["tasks.a.head.name=yolo"], "no detector 'yolo'"),
        (
            {"tasks": {"a": LABELS}},
            ["head.name=hsq"],
            r"head stands beside tasks; say it for one of them: tasks\.a\.head",
        ),
        (
            {"tasks": {"a": {**OBJECTS, "zero_shot": {"unseen": "dog"}}}},
            [],
            r"tasks\.a\.zero_shot is not for detection",
        ),
        ({"tasks": {"a": {**OBJECTS, "loss": "asl"}}}, [], "a detector has its own losses"),
        (
            {"tasks": {"a": {**OBJECTS, "neck": {"name": "rm", "share": "label"}}}},
            [],
            r"tasks\.a\.neck\.share=label.*a detector looks at one map",
        ),
        ({"tasks": {"a": OBJECTS}}, ["train.head_first=1"], "detection does not; set train.head_first=0"),
        ({"tasks": {"a": OBJECTS}}, ["train.cache=on"], "train.cache=on needs.*no detection"),
    ],
)
def test_what_cannot_be(values: dict[str, Any], settings: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        made({"backbone": VIT, "train": STEPS, **values}, settings)


def test_one_label_competes_by_default() -> None:
    config = made({"tasks": {"a": {**LABELS, "kind": "single_label"}}, "backbone": VIT})
    assert config.tasks["a"].loss.name == "cross_entropy"


def test_more_experts_than_there_are() -> None:
    with pytest.raises(ConfigError, match="k must be from 1 to experts.count=8, not 9"):
        Model(made(_values(), ["backbone.options.k=9"]), {"labels": 3, "objects": 3})


def test_data_of_a_task_in_short() -> None:
    config = made(_values(), ["tasks.labels.data=photos"])
    assert config.tasks["labels"].data.path.endswith("photos")


def test_experts_that_no_layer_has() -> None:
    config = made(_values(), ["backbone.options.layers=1"])
    with pytest.raises(ConfigError, match=r"experts.where=every_two leaves none of 1 layers with experts"):
        Model(config, {"labels": 3, "objects": 3})


def test_a_dense_network_has_no_experts_to_choose() -> None:
    config = made(_values(), ["backbone.options.k=2", "backbone.options.experts.sharing=dense"])
    model = Model(config, {"labels": 3, "objects": 3})
    assert (model.experts("labels"), model.experts("objects"), model.backbone.adapts) == (1, 1, False)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["tasks.object.batch_size=2"], "no such task.*objects"),
        (["tasks.foo=none"], "no such task"),
        (["train.first=label", "train.first_steps=1"], "no task 'label'.*labels"),
        (["train.first_steps=5"], "of which task"),
        (["train.best_by=label"], "train.best_by: there is no task 'label'.*labels"),
        (["tasks.labels.data=7"], r"tasks.labels.data takes a path"),
        (["train=none"], "train"),
        (["train.seed=4294967296"], "train.seed"),
        (["tasks.objects.augment.colour=0.2"], "augment.colour is not for detection"),
        (["tasks.values.kind=multi_label", "tasks.values.data.path=scenes"], "'values' is no name for a task"),
    ],
)
def test_slips_are_told(given: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        made(_values(), given)


def test_a_limit_below_what_there_is_to_begin_with() -> None:
    config = made(_values(), ["backbone.options.k=3", "train.adapt.max_experts=2"])
    with pytest.raises(ConfigError, match=r"train\.adapt\.max_experts must be 0, or backbone\.options\.k=3 or more"):
        Model(config, {"labels": 3, "objects": 3})


def test_none_means_none() -> None:
    first = _values(train={**STEPS, "first": "labels", "first_steps": 9})
    config = made(first, ["backbone.options.stem=none"])
    assert (config.backbone.options["stem"], config.train.first) == (None, "labels")
    alone = made(first, ["tasks.labels=none"])
    assert (list(alone.tasks), alone.train.first, alone.train.first_steps) == (["objects"], None, 0)


def test_data_that_no_task_takes() -> None:
    with pytest.raises(ConfigError, match="every task of this recipe names its own data; leave photos out"):
        made(_values(), data={"path": "photos"})


@pytest.mark.parametrize(
    "values",
    [
        {"backbone": "moe_vit", "train": {"adapt": {"preset": "paper"}}},
        {"tasks": {"a": {"data": [1]}}},
        {"tasks": {"a": 7}},
    ],
)
def test_what_is_no_section_is_told(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="settings of its own"):
        make_config(values, data={"path": "scenes"})


def test_a_way_to_transfer_beside_tasks_is_refused() -> None:
    with pytest.raises(ConfigError, match="--transfer ft is for a run whose task has no name"):
        choose_recipe(None, "ft", ["tasks.labels.image_size=64"], {"data": {"path": "scenes"}})


def test_presets_of_adaptive_selection() -> None:
    """The paper's figures and its released code's; what is said beside them counts."""
    config = make_config(_values(train={**STEPS, "adapt": {"preset": "paper"}}))
    paper = config.train.adapt
    assert (config.backbone.options["k"], paper.patience, paper.held_out) == (1, 2000, 0.01)
    config = make_config(_values(), ["train.adapt.preset=reference", "train.adapt.start=7"])
    reference = config.train.adapt
    assert (config.backbone.options["k"], reference.every, reference.patience, reference.start) == (2, 2000, 5000, 7)
    adapt = {"every": 50, "patience": 100, "start": 9, "min_decrease": 0.1, "max_experts": 4}
    own = _values(train={**STEPS, "adapt": adapt}, backbone={**VIT, "options": {"k": 3}})
    config = make_config(own, ["train.adapt.preset=reference", "train.adapt.every=70"])
    asked = config.train.adapt
    assert config.backbone.options["k"] == 2  # over the recipe's own
    assert (asked.every, asked.patience, asked.start, asked.to_the_end) == (70, 5000, 0, True)
    assert (asked.min_decrease, asked.max_experts) == (0, 0)
    with pytest.raises(ConfigError, match=r"train\.adapt\.preset cannot be 'papers'.*paper"):
        make_config(_values(train={**STEPS, "adapt": {"preset": "papers"}}))


def test_a_config_survives_a_file() -> None:
    config = made(_values(), ["backbone.options.experts.count=4"])
    again = config_of(yaml.safe_load(dump(config)))
    assert plain(again) == plain(config)


@pytest.mark.parametrize("name", [name for name in recipe_names() if names_tasks(load_recipe(name))])
def test_the_model_of_a_recipe(name: str) -> None:
    import torch

    values = load_recipe(name)
    data = None if any("data" in task for task in values["tasks"].values()) else {"path": "scenes"}
    config = made(values, **({} if data is None else {"data": data}))
    with torch.device("meta"):
        model = Model(config, dict.fromkeys(config.tasks, 20), load_weights=False)
    assert set(model.heads) == set(config.tasks)


# --- earlier versions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "settings", "said"),
    [
        ({"task": "single_label"}, [], "the setting task is called kind now"),
        ({}, ["task=single_label"], "the setting task is called kind now"),
        ({"tasks": {"a": LABELS}, "vit": {"size": "tiny"}}, [], r"vit is called backbone\.options now"),
        (
            {"tasks": {"a": LABELS}},
            ["selection.k=2"],
            r"selection is called train\.adapt now.*k is backbone\.options\.k",
        ),
        ({"tasks": {"a": LABELS}}, ["experts.count=4"], r"experts is called backbone\.options\.experts now"),
        ({"tasks": {"a": LABELS}}, ["train.judge_every=4"], r"train\.judge_every is called train\.evaluate_every now"),
        ({}, ["backbone.options.weights=vit_tiny"], r"backbone\.options\.weights is called backbone\.weights now"),
        ({"tasks": {"a": {**LABELS, "rate": 2}}}, [], r"tasks\.a\.rate is called tasks\.a\.lr_scale now"),
        ({"tasks": {"a": OBJECTS}}, ["tasks.a.detector.stages=1"], r"tasks\.a\.detector is called tasks\.a\.head now"),
    ],
)
def test_settings_of_old_have_a_new_name(values: dict[str, Any], settings: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_config(values, settings)


def test_stored_settings_of_earlier_versions_are_renamed() -> None:
    stored = {
        "tasks": {
            "labels": {**LABELS, "rate": 2.0, "detector": {"name": "cascade"}},
            "objects": {**OBJECTS, "detector": {"name": "cascade", "stages": 1}, "loss": {"name": "bce"}},
        },
        "vit": {"size": "tiny", "weights": None},
        "experts": {"count": 4},
        "selection": {"k": 2, "adaptive": True, "least": 0.1, "most": 3, "every": 5},
        "optimiser": {"name": "adamw", "lr": 0.01, "backbone_rate": 0.1},
        "train": {"steps": 7, "judge_every": 3},
    }
    config = resolve(config_of(migrated(stored)))
    assert config.tasks["labels"].lr_scale == 2
    assert config.tasks["objects"].head.options["stages"] == 1
    assert (config.backbone.name, config.backbone.weights, config.backbone.freeze) == ("moe_vit", "none", "full")
    assert (config.backbone.options["k"], config.backbone.options["experts"]["count"]) == (2, 4)
    adapt = config.train.adapt
    assert (adapt.enabled, adapt.min_decrease, adapt.max_experts, adapt.every) == (True, 0.1, 3, 5)
    assert (config.train.steps, config.train.evaluate_every, config.train.keep) == (7, 3, "last")
    assert config.optimiser.options["backbone_rate"] == 1
    assert config.train.weigh_costs  # as that version did
    preset = {**_values(), "train": {**STEPS, "adapt": {"preset": "reference", "enabled": True, "patience": 5000}}}
    assert not make_config(migrated(preset)).train.adapt.to_the_end  # which that version's presets did not know
    one = config_of(migrated({"task": "single_label", "data": {"path": "scenes"}}))
    assert one.only.kind == "single_label"

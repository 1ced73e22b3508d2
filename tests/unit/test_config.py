from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from command import manylabel
from command import settings as settings_of

from manylabel.config import Part, config_of, dump, left_out_of_heads, load_recipe, make_config, plain, recipe_names
from manylabel.error import ConfigError
from manylabel.head.query2label import QueryOptions
from manylabel.run import resolve


def test_a_dumped_config_reads_back_equal() -> None:
    config = make_config(settings=["train.epochs=3", "head.dropout=0.25", "train.trackers=[tensorboard]"])
    assert config_of(yaml.safe_load(dump(config))) == config
    assert config.only.head == Part("linear", {"dropout": 0.25})


def test_later_sources_win() -> None:
    config = make_config(None, ["train.epochs=5"], train={"epochs": 2, "seed": 7})
    assert (config.train.epochs, config.train.seed) == (5, 7)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.epoch=3", "did you mean 'epochs'"),
        ("trian.epochs=3", "did you mean 'train'"),
        ("train.epochs=many", "train.epochs must be int"),
        ("train.epochs=true", "train.epochs must be int"),
        ("backbone.freeze=frosen", "did you mean 'frozen'"),
        ("train.epochs.x=1", "train.epochs must be int"),
        ("train.epochs", "section.key=value"),
        ("head=3", "head must be a name"),
    ],
)
def test_wrong_settings_are_answered(setting: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_config(settings=[setting])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("head.name=liner", "did you mean 'linear'"),
        ("head.droput=0.1", "did you mean 'dropout'"),
        ("loss.name=alsl", "did you mean 'asl'"),
        ("optimiser.name=adamv", "did you mean 'adam"),
        ("train.batch_size=0", "train.batch_size must be 1 or more"),
        ("train.ema=1.5", "train.ema"),
    ],
)
def test_wrong_parts_are_answered_before_any_work(setting: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve(make_config(settings=[setting]))


def test_a_number_without_a_dot_in_its_exponent_is_a_number() -> None:
    assert resolve(make_config(settings=["optimiser.lr=1e-4"])).optimiser.options["lr"] == 1e-4


def test_on_off_and_no_are_words_although_yaml_disagrees() -> None:
    config = make_config(settings=["train.cache=off", "train.amp=no"])
    assert (config.train.cache, config.train.amp) == ("off", "no")
    with pytest.raises(ConfigError, match="backbone.freeze cannot be False"):
        make_config(settings=["backbone.freeze=off"])


def test_resolving_writes_every_option_out() -> None:
    resolved = resolve(make_config())
    assert resolved.optimiser.options["weight_decay"] == 0.01
    assert resolve(config_of(plain(resolved))) == resolved


@pytest.mark.parametrize("name", [name for name in recipe_names() if "tasks" not in load_recipe(name)])
def test_every_recipe_resolves(name: str) -> None:
    resolve(make_config(name))
    assert load_recipe(name)


def test_none_and_text_options_as_people_write_them() -> None:
    assert resolve(make_config(None, ["head.name=ml_decoder", "head.groups=none"])).only.head.options["groups"] is None
    config = make_config(None, ["text.name=minilm", "text.template={}: in a photo"])
    assert config.only.text == Part("minilm", {"template": "{}: in a photo"})
    assert make_config(None, ["text.name=none"]).only.text == Part("none")


def test_recipe_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'demo'"):
        make_config("dmeo")
    broken = tmp_path / "x.yaml"
    broken.write_text("a: [1,")
    with pytest.raises(ConfigError, match="row 2: no valid YAML"):
        make_config(str(broken))
    broken.write_text("- 1")
    with pytest.raises(ConfigError, match="must hold settings"):
        make_config(str(broken))


def test_a_backbone_by_name_keeps_the_recipes_other_settings() -> None:
    config = make_config("fine-tune", backbone={"name": "efficientnet_lite2"})
    assert (config.backbone.name, config.backbone.freeze) == ("efficientnet_lite2", "full")


def test_a_part_by_name_and_its_options_come_together(tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text("schedule: cosine\n")
    assert make_config(str(recipe), schedule={"warm_up": 0.1}).schedule == Part("cosine", {"warm_up": 0.1})
    for order in (["loss.name=bce", "loss.label_smoothing=0.1"], ["loss.label_smoothing=0.1", "loss.name=bce"]):
        assert make_config("fine-tune", order).only.loss == Part("bce", {"label_smoothing": 0.1})


@pytest.mark.parametrize("delimiter", ["|", ",", " ", "; "])
def test_a_delimiter_is_text_and_not_yaml(delimiter: str) -> None:
    assert make_config(settings=[f"data.delimiter={delimiter}"]).only.data.delimiter == delimiter
    assert make_config(settings=["data.delimiter=none"]).only.data.delimiter is None
    assert make_config(settings=["backbone.weights=none"]).backbone.weights == "none"


@pytest.mark.parametrize(
    "setting",
    [
        "train.seed=-1", "head.dropout=2", "optimiser.betas=[0.9]", "optimiser.lr=-1", "schedule.warm_up=3",
        "backbone.image_size=-5", "augment.randaugment=99", "augment.erasing=2", "augment.random_crop=5",
        "augment.mixup=-1", "augment.colour=-3", "data.max_bad_share=7", "data.scenes.train=0", "loss.label_smoothing=2",
    ],
)  # fmt: skip
def test_values_that_cannot_be_are_refused_by_name(setting: str) -> None:
    with pytest.raises(ConfigError, match=f"{setting.partition('=')[0]} must be"):
        resolve(make_config(settings=[setting]))


@pytest.mark.parametrize("setting", ["optimiser.lr=1e308", "optimiser.lr=-1e39", "train.clip=1e200"])
def test_a_number_that_weights_cannot_hold_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match=f"{setting.split('=')[0]} is too large a number"):
        resolve(make_config(None, [setting]))


def test_another_head_drops_the_old_heads_options(tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text("loss: {name: asl, gamma_negative: 2}\n")
    assert make_config(str(recipe), loss={"name": "bce"}).only.loss == Part("bce")


def test_another_head_keeps_what_both_have_and_says_what_goes() -> None:
    """Table 1 of HSQ: its baseline at the same width, layers and dropout is a command."""
    recipe = "hsq-r10t"
    old = make_config(recipe).only.head.options
    for given, settings in (({}, ["head.name=query2label"]), ({"head": "query2label"}, [])):
        config = make_config(recipe, settings, **given)
        new = config.only.head
        assert new.name == "query2label"
        assert new.options == {key: value for key, value in old.items() if key in QueryOptions.__dataclass_fields__}
        assert new.options["dim"] == 512
        (said,) = left_out_of_heads(recipe, config)
        gone = [key for key in old if key not in new.options]
        assert gone
        assert said.startswith("the recipe is for hsq: query2label has no ")
        assert all(f"{key}={old[key]}" in said for key in gone)
        resolve(config)
    changed = make_config(recipe, ["head.hidden=64", "head.name=query2label"])
    assert changed.only.head.options["hidden"] == 64
    assert left_out_of_heads(recipe, make_config(recipe)) == []
    assert left_out_of_heads(None, make_config(None, ["head.name=hsq"])) == []


def test_what_another_head_leaves_out_is_said_when_a_run_begins(
    photos: Path, tmp_path: Path, tiny_settings: list[str]
) -> None:
    out = manylabel(
        "train",
        photos,
        "--recipe",
        "laptop",
        "--out",
        tmp_path / "run",
        *settings_of(*tiny_settings, "head.name=ml_decoder"),
    )
    assert "the recipe is for linear: ml_decoder has no attention=0.5, so that is left out" in out.stderr


def test_lists_of_numbers_can_be_given_with_commas() -> None:
    from manylabel.head import HEADS

    options = HEADS.resolve(make_config(None, ["head.name=hsq", "head.layer_dims=64,16"]).only.head).options
    assert tuple(options["layer_dims"]) == (64, 16)
    with pytest.raises(ConfigError, match=r"layer_dims\[1\] must be int, not 'wide'"):
        HEADS.resolve(make_config(None, ["head.name=hsq", "head.layer_dims=64,wide"]).only.head)

"""Which settings a run begins with when little is said."""

from __future__ import annotations

from typing import Any

import pytest

from manylabel.config import load_recipe, make_config
from manylabel.error import ConfigError
from manylabel.head import HEADS
from manylabel.run.recipe_choice import TRANSFER, choose_recipe
from manylabel.run.training_run import resolve


def _chosen(*settings: str, recipe: str | None = None, transfer: str | None = None, **given: Any) -> Any:
    return choose_recipe(recipe, transfer, list(settings), given)


def test_nothing_said_is_the_laptop_recipe_with_any_backbone() -> None:
    assert _chosen() == load_recipe("laptop")
    assert _chosen("backbone.name=resnet50", data={"path": "x"}, train={"epochs": 3}) == load_recipe("laptop")


def test_settings_go_on_top_of_it() -> None:
    for setting in (
        "optimiser.lr=1e-3",
        "augment.flip=false",
        "head.attention=0.3",
        "loss.name=bce",
        "train.cache=off",
    ):
        values = _chosen(setting)
        assert values == load_recipe("laptop"), setting
        assert resolve(make_config(values, [setting])).backbone.freeze == "partial"


def test_another_head_neck_or_freezing_is_taken_at_its_word() -> None:
    assert _chosen(head="linear") is None
    assert _chosen("neck.name=rm") is None
    assert _chosen(backbone={"freeze": "frozen"}) is None
    assert _chosen("backbone.freeze=full", head="ml_decoder") is None
    assert _chosen("train.cache=off", head="ml_decoder") is None
    assert _chosen(recipe="linear-probe") == "linear-probe"


def test_a_head_by_name_brings_the_settings_that_suit_it() -> None:
    assert _chosen(head={"name": "ml_decoder"}) == load_recipe("ml-decoder-laptop")
    assert _chosen("head.name=query2label") == load_recipe("query2label-laptop")


@pytest.mark.parametrize("said", [{}, {"head": "ml_decoder"}, {"transfer": "rm"}])
def test_losses_for_many_labels_stay_away_from_one_per_image(said: dict[str, Any]) -> None:
    values = _chosen(kind="single_label", **said)
    assert "loss" not in values
    given = {key: value for key, value in said.items() if key != "transfer"}
    assert make_config(values, [], kind="single_label", **given).only.loss.name == "cross_entropy"


@pytest.mark.parametrize("head", [None, *HEADS.names()])
@pytest.mark.parametrize(
    ("transfer", "freeze"), [("lp", "frozen"), ("rm", "frozen"), ("partial", "partial"), ("ft", "full")]
)
def test_every_way_to_transfer_goes_with_every_head(transfer: str, freeze: str, head: str | None) -> None:
    given = {} if head is None else {"head": {"name": head}}
    if transfer == "lp" and head not in (None, "linear"):
        with pytest.raises(ConfigError, match="lp is a linear head"):
            _chosen(transfer=transfer, **given)
        return
    config = resolve(make_config(_chosen(transfer=transfer, **given), [], data={"path": "scenes"}, **given))
    assert config.backbone.freeze == freeze
    assert config.only.neck.name == ("rm" if transfer == "rm" else "none")
    if head is not None:
        assert config.only.head.name == head
    if transfer == "partial" and head in (None, "linear"):
        assert config.only.head.options["attention"] == load_recipe("laptop")["head"]["attention"]


def test_clear_errors() -> None:
    with pytest.raises(ConfigError, match="leave --transfer or --recipe out"):
        _chosen(recipe="laptop", transfer="rm")
    with pytest.raises(ConfigError, match=r"'partail' is none of lp, rm, partial, ft.*did you mean 'partial'"):
        _chosen(transfer="partail")
    assert set(TRANSFER) == {"lp", "rm", "partial", "ft"}

"""What AdaMV-MoE's recipes do: parameters, steps, decay and rates of both stages, images of a step, beside the paper."""

from __future__ import annotations

import pytest
import torch

from manylabel.config import Config, load_recipe, make_config
from manylabel.model import Model
from manylabel.run import resolve
from manylabel.training.optimise import OPTIMISERS, SCHEDULES
from manylabel.training.phase import first_parts

SIZES = {"vit-small-star": "small*", "vit-small": "small", "vit-base": "base", "uvit-base": "uvit-base"}


def made(name: str, *settings: str) -> Config:
    data = [f"tasks.{task}.data.path=scenes" for task in load_recipe(name)["tasks"]]
    return resolve(make_config(name, [*data, *settings]))


def rates(config: Config, steps: int, first: bool) -> list[float]:
    """At the beginning, in the middle and at the end of the warm-up, in the middle and at the end of all."""
    optimiser, schedule = first_parts(config) if first else (config.optimiser, config.schedule)
    layer = torch.nn.Linear(1, 1)
    built = torch.optim.SGD(layer.parameters(), lr=OPTIMISERS.options(optimiser).lr)
    share = SCHEDULES.build(schedule).build(built, steps).lr_lambdas[0]
    up = round(SCHEDULES.options(schedule).warm_up * steps)
    return [built.defaults["lr"] * share(at) for at in (0, up // 2, up, (up + steps) // 2, steps - 1)]


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_two_stages(name: str, size: str) -> None:
    config = made(f"adamv-moe-{name}-paper")
    t, o = config.train, config.backbone.options
    assert (o["size"], o["k"], o["experts"]["count"], o["experts"]["where"]) == (size, 1, 8, "every_two")
    assert (o["experts"]["importance"], o["experts"]["load"], t.weigh_costs) == (0.005, 0.005, False)
    assert (t.first, t.first_steps, t.steps, t.batch_of) == ("classes", 300_000, 200_000, "all")
    assert [task.batch_size for task in config.tasks.values()] == [1024, 128]
    assert [task.image_size for task in config.tasks.values()] == [224, 640]
    assert (t.adapt.enabled, t.adapt.patience, t.adapt.held_out, t.adapt.to_the_end) == (True, 2000, 0.01, True)
    decays = [OPTIMISERS.options(part).weight_decay for part in (first_parts(config)[0], config.optimiser)]
    assert decays == [6e-3, 5e-4]
    assert rates(config, 300_000, True) == pytest.approx([0, 1.5e-3, 3e-3, 1.5e-3, 0], abs=1e-6)
    ups = [
        round(SCHEDULES.options(part).warm_up * n)
        for part, n in ((first_parts(config)[1], 3e5), (config.schedule, 2e5))
    ]
    assert ups == [20_000, 10_000]


@pytest.mark.parametrize(
    ("name", "batches", "decay", "up"),
    [
        ("classification", [1024], 6e-3, 20_000),
        ("detection", [256], 1e-4, 2_000),
        ("dense", [1024, 128], 5e-4, 10_000),
    ],
)
def test_baselines_of_one_stage(name: str, batches: list[int], decay: float, up: int) -> None:
    config = made(f"adamv-moe-{name}-paper")
    t = config.train
    assert (t.first, t.steps, t.batch_of, t.adapt.enabled) == (None, 200_000, "all", False)
    assert [task.batch_size for task in config.tasks.values()] == batches
    assert OPTIMISERS.options(config.optimiser).weight_decay == decay
    assert round(SCHEDULES.options(config.schedule).warm_up * t.steps) == up
    assert rates(config, t.steps, False) == pytest.approx([0, 1.5e-3, 3e-3, 1.5e-3, 0], abs=2e-6)
    with torch.device("meta"):
        model = Model(config, dict.fromkeys(config.tasks, 10), load_weights=False)
    layers = sum(p.numel() for p in model.backbone.body.vit.blocks.parameters())
    assert layers / 1e6 == pytest.approx(10.65, abs=0.01)  # six of Table 2's
    assert all(p.requires_grad for p in model.parameters())


def test_sparse_layers_hold_eight_mlps_of_which_one_is_used() -> None:
    config = made("adamv-moe-vit-small-star-paper")
    with torch.device("meta"):
        model = Model(config, {"classes": 1000, "objects": 80}, load_weights=False)
    mlp = 2 * 384 * 1536 + 1536 + 384
    layers = sum(p.numel() for n, p in model.backbone.body.vit.blocks.named_parameters() if "router" not in n)
    dense = 6 * (12 * 384**2 + 13 * 384)
    assert layers == dense + 3 * 7 * mlp
    used = model.active_parameters("classes", "backbone.")
    own = model.backbone.body.vit
    embedding = sum(p.numel() for p in own.embed["classes"].parameters())
    assert used == dense + embedding + 3 * 8 * 384 + 2 * 384  # three routers, one norm


def test_taps_as_released_needs_a_first_stage() -> None:
    from manylabel.error import ConfigError

    released = "backbone.options.experts.sharing=taps_released"
    made("adamv-moe-vit-small-star-paper", released, "train.adapt.enabled=false")
    with pytest.raises(ConfigError, match=r"taps_released freezes .* after train\.first"):
        made("adamv-moe-dense-paper", released)

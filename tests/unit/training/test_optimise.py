from __future__ import annotations

import itertools
import json

import pytest
import torch

from manylabel.config import Part, make_config
from manylabel.model import Model
from manylabel.training.checkpoint import Checkpoint, pack_optimiser, unpack_optimiser
from manylabel.training.ema import Ema
from manylabel.training.optimise import OPTIMISERS, SCHEDULES, CommonOptions, parameter_groups


def _model(freeze: str) -> Model:
    torch.manual_seed(0)
    settings = ["backbone.name=test_resnet", "backbone.weights=none", f"backbone.freeze={freeze}"]
    return Model(make_config(settings=settings), num_labels=3)


def test_only_matrices_decay_and_earlier_layers_learn_slower() -> None:
    groups = parameter_groups(
        _model("full"), CommonOptions(lr=1.0, weight_decay=0.1, backbone_rate=0.5, layer_decay=0.5)
    )
    for group in groups:
        assert all((p.ndim > 1) == (group["weight_decay"] > 0) for p in group["params"])
    rates = sorted({group["lr"] for group in groups}, reverse=True)
    assert rates[0] == 1.0  # the head
    assert rates[1] == 0.5  # the backbone's last layers
    assert all(a / b == 2 for a, b in itertools.pairwise(rates[1:]))


def test_frozen_backbone_gives_the_optimiser_only_the_head() -> None:
    groups = parameter_groups(_model("frozen"), CommonOptions())
    assert sum(p.numel() for g in groups for p in g["params"]) == 96 * 3 + 3


def test_one_cycle_rises_and_falls_over_exactly_the_steps() -> None:
    optimiser = OPTIMISERS.build(Part("adamw", {"lr": 1.0})).build(_model("frozen"))
    schedule = SCHEDULES.build(Part("one_cycle", {"warm_up": 0.25, "start": 0.04, "end": 1e-4})).build(optimiser, 101)
    rates = []
    for step in range(101):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        if step < 100:
            schedule.step()
    assert rates[0] == pytest.approx(0.04)
    assert max(rates) == pytest.approx(1.0, abs=0.01)
    assert rates.index(max(rates)) == 25
    assert rates[-1] == pytest.approx(1e-4)


@pytest.mark.parametrize("steps", range(1, 12))
@pytest.mark.parametrize("name", SCHEDULES.names())
def test_any_number_of_steps(name: str, steps: int) -> None:
    optimiser = OPTIMISERS.build(Part("adamw", {"lr": 1.0})).build(_model("frozen"))
    schedule = SCHEDULES.build(name).build(optimiser, steps)
    for _ in range(steps):
        assert 0 <= optimiser.param_groups[0]["lr"] <= 1
        optimiser.step()
        schedule.step()


def test_head_and_backbone_follow_the_same_curve() -> None:
    optimiser = OPTIMISERS.build(Part("sgd", {"lr": 1.0, "backbone_rate": 0.1})).build(_model("full"))
    schedule = SCHEDULES.build(Part("cosine", {"end": 0.5, "warm_up": 0.0})).build(optimiser, 20)
    for _ in range(20):
        rates = {round(group["lr"], 6) for group in optimiser.param_groups}
        assert min(rates) == pytest.approx(0.1 * max(rates), rel=1e-4)
        optimiser.step()
        schedule.step()


def test_cosine_warms_up_then_falls() -> None:
    optimiser = OPTIMISERS.build(Part("sgd", {"lr": 1.0})).build(_model("frozen"))
    schedule = SCHEDULES.build(Part("cosine", {"warm_up": 0.1})).build(optimiser, 100)
    rates = []
    for _ in range(100):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    assert rates[0] < 0.2
    assert max(rates) == pytest.approx(1.0)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] < 0.01


def test_lamb_steps_as_far_as_the_weights_of_a_layer_say() -> None:
    """One step from zero moments, no decay: w ← w − lr ‖w‖ u / ‖u‖ with u = sign(g), for Adam's first step is that."""
    model = _model("frozen")
    weight = model.only.head.classifier.weight
    before = weight.detach().clone()
    options = {"lr": 0.1, "weight_decay": 0.01, "max_grad_norm": 0.0}
    optimiser = OPTIMISERS.build(Part("lamb", options)).build(model)
    optimiser.param_groups[0]["weight_decay"] = 0.0
    for parameter in model.only.head.parameters():
        parameter.grad = torch.randn_like(parameter)
    sign = weight.grad.sign()
    optimiser.param_groups[0]["always_adapt"] = True
    optimiser.step()
    expected = before - 0.1 * before.norm() * sign / sign.norm()
    torch.testing.assert_close(weight.detach(), expected, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("optimiser_name", OPTIMISERS.names())
@pytest.mark.parametrize("schedule_name", SCHEDULES.names())
def test_state_survives_json_and_safetensors_bit_for_bit(optimiser_name: str, schedule_name: str) -> None:
    def build() -> tuple[Model, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
        model = _model("frozen")
        optimiser = OPTIMISERS.build(optimiser_name).build(model)
        return model, optimiser, SCHEDULES.build(schedule_name).build(optimiser, 20)

    def step(model: Model, optimiser: torch.optim.Optimizer, schedule: object, seed: int) -> None:
        torch.manual_seed(seed)
        for parameter in model.only.head.parameters():
            parameter.grad = torch.randn_like(parameter)
        optimiser.step()
        schedule.step()  # type: ignore[attr-defined]

    model, optimiser, schedule = build()
    for seed in range(7):
        step(model, optimiser, schedule, seed)
    packed = pack_optimiser(optimiser)
    tensors = {name: tensor.clone() for name, tensor in packed.tensors.items()}
    values = json.loads(json.dumps({"optimiser": packed.values, "schedule": schedule.state_dict()}))
    other_model, other_optimiser, other_schedule = build()
    other_model.load_state_dict(model.state_dict())
    unpack_optimiser(other_optimiser, Checkpoint(tensors, values["optimiser"]))
    other_schedule.load_state_dict(values["schedule"])
    for seed in range(7, 15):
        step(model, optimiser, schedule, seed)
        step(other_model, other_optimiser, other_schedule, seed)
        assert optimiser.param_groups[0]["lr"] == other_optimiser.param_groups[0]["lr"]
    assert torch.equal(model.only.head.classifier.weight, other_model.only.head.classifier.weight)


def test_ema_follows_its_formula_and_gives_the_weights_back() -> None:
    model = _model("frozen")
    weight = model.only.head.classifier.weight
    ema = Ema(model, decay=0.9)
    expected = weight.detach().clone()
    for step in range(1, 30):
        with torch.no_grad():
            weight.add_(0.1)
        ema.update()
        d = min(0.9, (1 + step) / (10 + step))
        expected = d * expected + (1 - d) * weight.detach()
    own = weight.detach().clone()
    with ema.applied():
        assert torch.allclose(weight, expected, atol=1e-6)
    assert torch.equal(weight, own)


def test_ema_averages_moving_statistics_only_where_they_move() -> None:
    assert not any(name.startswith("backbone") for name in Ema(_model("frozen"), 0.9).average)
    assert any("running_mean" in name for name in Ema(_model("full"), 0.9).average)


def _course(schedule: dict[str, object], optimiser: str, steps: int, **options: object) -> list[dict[str, float]]:
    """Rates of all groups, and momentum, at every step."""
    part = Part(optimiser, {"lr": 0.1, "backbone_rate": 0.1, **options})
    built = OPTIMISERS.build(part).build(_model("full"))
    follow = SCHEDULES.build(Part("one_cycle", schedule)).build(built, steps)
    found = []
    for _ in range(steps):
        groups = built.param_groups
        momentum = {group["betas"][0] if "betas" in group else group["momentum"] for group in groups}
        assert len(momentum) == 1
        rates = sorted({round(group["lr"], 12) for group in groups})
        found.append({"low": rates[0], "high": rates[-1], "momentum": momentum.pop()})
        built.step()
        follow.step()
    return found


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamw"])
def test_momentum_cycles_as_torchs_does(optimiser: str) -> None:
    steps = 50
    parameter = torch.nn.Parameter(torch.zeros(1))
    theirs = torch.optim.SGD([parameter], lr=0.1, momentum=0.9)
    cycle = torch.optim.lr_scheduler.OneCycleLR(
        theirs, max_lr=0.1, total_steps=steps, pct_start=0.2, final_div_factor=1e9
    )
    ours = _course({"warm_up": 0.2, "end": 0.0, "cycle_momentum": True}, optimiser, steps)
    top = 0.2 * steps - 1  # torch counts its warm-up from one step earlier
    for step in range(steps):
        if step in (0, steps - 1):
            assert ours[step]["momentum"] == pytest.approx(theirs.param_groups[0]["momentum"], abs=1e-9)
        assert ours[step]["momentum"] == pytest.approx(theirs.param_groups[0]["momentum"], abs=0.02)
        assert 0.85 <= ours[step]["momentum"] <= 0.95
        theirs.step()
        if step < steps - 1:
            cycle.step()
    lowest = min(range(steps), key=lambda step: ours[step]["momentum"])
    assert abs(lowest - top) <= 1
    plain = _course({}, optimiser, 3)
    assert {step["momentum"] for step in plain} == {0.9}


def test_groups_keep_rates_of_their_own_in_a_cycle() -> None:
    """A scalar max_lr would give all groups one highest rate, as RM's released code does."""
    course = _course({"cycle_momentum": True}, "sgd", 40)
    assert max(step["high"] for step in course) == pytest.approx(0.1, rel=0.02)
    assert max(step["low"] for step in course) == pytest.approx(0.01, rel=0.02)
    assert all(step["low"] == pytest.approx(0.1 * step["high"]) for step in course)


def test_a_part_of_the_cycle() -> None:
    """RM's released code: a cycle made for single images, stepped once for each batch of 50."""
    options = make_config("rm-reference-effective")
    course = _course(dict(options.schedule.options), "sgd", 1000, lr=options.optimiser.options["lr"])
    assert course[0]["high"] == pytest.approx(0.004)
    assert course[-1]["high"] == pytest.approx(0.0064, abs=2e-4)
    assert 0.947 < course[-1]["momentum"] < course[0]["momentum"] == pytest.approx(0.95)


def test_a_cycle_of_momentum_goes_on_where_it_was() -> None:
    def build() -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
        optimiser = OPTIMISERS.build("adam").build(_model("frozen"))
        return optimiser, SCHEDULES.build(Part("one_cycle", {"cycle_momentum": True})).build(optimiser, 20)

    optimiser, schedule = build()
    for _ in range(9):
        optimiser.step()
        schedule.step()
    stored = json.loads(json.dumps({"o": pack_optimiser(optimiser).values, "s": schedule.state_dict()}))
    other, its = build()
    unpack_optimiser(other, Checkpoint({}, stored["o"]))
    its.load_state_dict(stored["s"])
    for _ in range(8):
        assert [g["betas"] for g in other.param_groups] == [g["betas"] for g in optimiser.param_groups]
        for one, follow in ((optimiser, schedule), (other, its)):
            one.step()
            follow.step()

"""Bundles as somebody may have written them, with checksums that fit: refused with the file and the field, or used."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import warm
import yaml
from command import TINY, manylabel
from net.kept_runs import ARCHIVE, unpack
from safetensors.torch import load_file, save_file
from small_tasks import SMALL

import manylabel as ml
from manylabel import run
from manylabel.error import BundleError
from manylabel.loss import LOSSES
from manylabel.loss.bce import BCELoss
from manylabel.storage.atomic import sha256

NAN = float("nan")
PLANTED = "alices-secret-home"


def signed(bundle: Path) -> Path:
    """An attacker can write checksums, too."""
    sums = json.loads((bundle / "checksums.json").read_text())
    sums["sha256"] = {name: sha256(bundle / name) for name in sums["sha256"]}
    (bundle / "checksums.json").write_text(json.dumps(sums))
    return bundle


@pytest.fixture(scope="session")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two tasks. For all tests, so none may change it."""
    out = tmp_path_factory.mktemp("several") / "run"
    run.train(out=out, recipe=SMALL, settings=["train.steps=2"])
    return out


@pytest.fixture(scope="session")
def several_of_old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two tasks as version 0.1.0 first left it, with all of them in tasks.json."""
    return unpack(ARCHIVE, tmp_path_factory.mktemp("of old")) / "runs" / "tasks"


@pytest.fixture
def bundle(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained / "bundle", tmp_path / "bundle"))


@pytest.fixture
def tasks(several: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(several / "bundle", tmp_path / "tasks"))


@pytest.fixture
def earlier(several_of_old: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(several_of_old / "bundle", tmp_path / "earlier"))


def change_json(file: Path, change: Callable[[Any], None]) -> None:
    value = json.loads(file.read_text())
    change(value)
    file.write_text(json.dumps(value))


def change_yaml(file: Path, *keys: str, to: Any) -> None:
    values = yaml.safe_load(file.read_text())
    inside = values
    for key in keys[:-1]:
        inside = inside[key]
    inside[keys[-1]] = to
    file.write_text(yaml.safe_dump(values))


def change_weights(file: Path, part: str, value: float) -> None:
    tensors = load_file(file)
    name = next(name for name in tensors if name.endswith(part))
    tensors[name].view(-1)[0] = value
    save_file(tensors, file, metadata={"values": "{}"})


# --- weights, normalisation, thresholds, labels ------------------------------------------------------------------------


@pytest.mark.parametrize("value", [NAN, float("inf")])
@pytest.mark.parametrize("part", ["classifier.weight", "running_var"])
def test_a_bundle_with_nan_in_its_weights_is_refused(bundle: Path, part: str, value: float) -> None:
    change_weights(bundle / "weights.safetensors", part, value)
    with pytest.raises(BundleError, match=rf"weights\.safetensors, \S*{part}: 1 of \d+ values are NaN or infinite"):
        ml.load_bundle(signed(bundle))


@pytest.mark.parametrize(
    ("form", "part"),
    [
        ("tasks", "blocks.0.norm1.weight"),
        ("tasks", "heads.labels.classifier.weight"),
        ("earlier", "blocks.0.norm1.weight"),
        ("earlier", "std"),
    ],
)
def test_so_is_one_of_several_tasks(form: str, part: str, request: pytest.FixtureRequest) -> None:
    tasks: Path = request.getfixturevalue(form)
    change_weights(tasks / "weights.safetensors", part, NAN)
    with pytest.raises(BundleError, match=rf"{part}: 1 of \d+ values are NaN"):
        ml.Predictor.load(signed(tasks))
    assert manylabel("predict", tasks, "x.jpg", "--task", "labels").returncode == 2


def test_weights_whose_answer_is_no_number_are_refused(bundle: Path) -> None:
    """Each is a number; the sum of two of them is none."""
    tensors = load_file(bundle / "weights.safetensors")
    tensors["head.classifier.weight"].fill_(3e38)
    tensors["head.classifier.bias"].fill_(3e38)
    tensors = {name: t.fill_(3e38) if name.endswith("bn2.bias") else t for name, t in tensors.items()}
    save_file(tensors, bundle / "weights.safetensors")
    with pytest.raises(BundleError, match="scores are no numbers"):
        ml.load_bundle(signed(bundle))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"std": [0.2, 0.0, 0.2]}, r"preprocess\.std"),
        ({"std": [0.2, NAN, 0.2]}, r"preprocess\.json, row \d+: no valid JSON \(NaN"),
        ({"std": [0.2]}, r"preprocess\.std"),
        ({"mean": [0.2, 0.2, "x"]}, r"preprocess\.mean\[2\]"),
        ({"mean": None}, r"preprocess\.mean"),
        ({"size": 10**9}, r"preprocess\.size"),
        ({"size": -1}, r"preprocess\.size"),
        ({"crop_share": 0}, r"preprocess\.crop_share"),
        ({"resize": "melt"}, r"preprocess\.resize"),
        ({"interpolation": "psychic"}, r"preprocess\.interpolation"),
    ],
)
def test_a_normalisation_that_cannot_be_is_refused(
    bundle: Path, tasks: Path, change: dict[str, Any], said: str
) -> None:
    for each, file in ((bundle, "preprocess.json"), (tasks, "tasks/objects/preprocess.json")):
        change_json(each / file, lambda value: value.update(change))
        with pytest.raises(BundleError, match=said):
            ml.load_bundle(signed(each))


@pytest.mark.parametrize("value", [NAN, None, "0.5", -0.1, True, [0.5], 1.001, 50, 10**39, 1e999])
def test_a_threshold_that_is_no_score_is_refused(bundle: Path, value: Any) -> None:
    change_json(bundle / "labels.json", lambda told: told["labels"][1].update(threshold=value))
    with pytest.raises(BundleError, match=r"labels\[1\]\.threshold|NaN|Infinity"):
        ml.load_bundle(signed(bundle))


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, 1e-300])
def test_every_score_is_a_threshold(bundle: Path, value: float) -> None:
    change_json(bundle / "labels.json", lambda told: told["labels"][1].update(threshold=value))
    assert ml.load_bundle(signed(bundle)).thresholds[1] == value


def test_a_bundle_of_another_format_is_refused(bundle: Path) -> None:
    change_json(bundle / "labels.json", lambda told: told.update(format=99))
    with pytest.raises(BundleError, match="made by another one"):
        ml.load_bundle(signed(bundle))


def test_a_threshold_of_four_hundred_digits_is_refused(bundle: Path) -> None:
    text = (bundle / "labels.json").read_text()
    first = json.loads(text)["labels"][0]["threshold"]
    (bundle / "labels.json").write_text(text.replace(f'"threshold": {first}', '"threshold": 1' + 400 * "0"))
    with pytest.raises(BundleError, match=r"labels\.json, row \d+: no valid JSON \(1000.* is no number"):
        ml.load_bundle(signed(bundle))


@pytest.mark.parametrize(
    "labels",
    [
        [],
        ["red"] * 4,
        ["red", "RED", "blue", "white"],
        ["red", "", "blue", "white"],
        ["red", 3, "b", "w"],
        ["x" * 2000],
    ],
)
def test_a_list_of_labels_that_cannot_be_is_refused(
    bundle: Path, tasks: Path, earlier: Path, labels: list[Any]
) -> None:
    entries = [{"name": name, "threshold": 0.5} for name in labels]
    for each, file in ((bundle, "labels.json"), (tasks, "tasks/labels/labels.json")):
        change_json(each / file, lambda told: told.update(labels=entries))
        with pytest.raises(BundleError, match="label"):
            ml.load_bundle(signed(each))
    change_json(earlier / "tasks.json", lambda told: told["tasks"]["labels"].update(labels=labels))
    with pytest.raises(BundleError, match="label"):
        ml.Predictor.load(signed(earlier))


def test_labels_that_do_not_fit_the_weights_are_refused(bundle: Path) -> None:
    change_json(bundle / "labels.json", lambda told: told["labels"].append({"name": "a fifth", "threshold": 0.5}))
    change_json(bundle / "labels.json", lambda told: told["training_images"].append(9))
    with pytest.raises(BundleError, match=r"heads\.labels\.classifier\.weight"):
        ml.load_bundle(signed(bundle))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"thresholds": [0.5]}, r"tasks\.labels\.thresholds has 1 entries"),
        ({"thresholds": "many"}, r"tasks\.labels\.thresholds must be a list"),
        ({"thresholds": None}, r"tasks\.labels\.thresholds must be a list"),
        ({"labels": None}, r"tasks\.labels\.labels must be a list"),
        ({"activation": "magic"}, r"tasks\.labels\.activation must be sigmoid or softmax"),
    ],
)
def test_so_are_facts_of_a_task_of_an_earlier_bundle(earlier: Path, change: dict[str, Any], said: str) -> None:
    change_json(earlier / "tasks.json", lambda told: told["tasks"]["labels"].update(change))
    with pytest.raises(BundleError, match=said):
        ml.Predictor.load(signed(earlier))


@pytest.mark.parametrize(
    ("task", "change", "said"),
    [
        ("objects", {"thresholds": [0.5, 0.5]}, r"tasks/objects/labels\.json, thresholds has 2 entries"),
        ("objects", {"thresholds": "many"}, r"tasks/objects/labels\.json, thresholds must be a list"),
        ("objects", {"thresholds": None}, r"tasks/objects/labels\.json, thresholds must be a list"),
        ("labels", {"thresholds": [0.5]}, r"tasks/labels/labels\.json, thresholds has 1 entries"),
        ("labels", {"labels": None}, r"tasks/labels/labels\.json, labels must be a list"),
        ("labels", {"labels": ["red"]}, r"tasks/labels/labels\.json, labels\[0\] must be an object"),
        ("labels", {"activation": "magic"}, r"tasks/labels/labels\.json, activation must be sigmoid or softmax"),
    ],
)
def test_so_are_facts_of_a_task(tasks: Path, task: str, change: dict[str, Any], said: str) -> None:
    change_json(tasks / "tasks" / task / "labels.json", lambda told: told.update(change))
    with pytest.raises(BundleError, match=said):
        ml.Predictor.load(signed(tasks))


def test_tasks_that_the_settings_do_not_know_are_refused(tasks: Path, earlier: Path) -> None:
    shutil.copytree(tasks / "tasks" / "labels", tasks / "tasks" / "third")
    third = dict.fromkeys(("tasks/third/labels.json", "tasks/third/preprocess.json"))
    change_json(tasks / "checksums.json", lambda told: told["sha256"].update(third))
    with pytest.raises(BundleError, match="does not list the files of a bundle"):
        ml.Predictor.load(signed(tasks))
    change_json(earlier / "tasks.json", lambda told: told["tasks"].update(third=told["tasks"]["labels"]))
    with pytest.raises(BundleError, match="'third' is not in both"):
        ml.Predictor.load(signed(earlier))


def test_so_are_settings_with_a_task_that_has_no_files(tasks: Path) -> None:
    values = yaml.safe_load((tasks / "config.yaml").read_text())
    change_yaml(tasks / "config.yaml", "tasks", "third", to=values["tasks"]["labels"])
    with pytest.raises(BundleError, match=r"does not list the files of a bundle \(.*tasks/third/labels\.json"):
        ml.Predictor.load(signed(tasks))


@pytest.mark.parametrize("name", ["tasks/../labels.json", "tasks/labels/../../labels.json", "tasks/a/b/labels.json"])
def test_nor_is_a_file_read_that_lies_elsewhere(tasks: Path, name: str) -> None:
    change_json(tasks / "checksums.json", lambda told: told["sha256"].update({name: "0"}))
    with pytest.raises(BundleError, match="does not list the files of a bundle"):
        ml.Predictor.load(tasks)


@pytest.mark.parametrize("form", ["tasks", "earlier"])
def test_more_experts_than_there_are_is_refused(form: str, request: pytest.FixtureRequest) -> None:
    tasks: Path = request.getfixturevalue(form)
    change_weights(tasks / "weights.safetensors", "selection.k", 9)
    with pytest.raises(BundleError, match=r"selection\.k: must be 1 to 4"):
        ml.Predictor.load(signed(tasks))


def test_a_bundle_made_by_hand_goes_on_loading(bundle: Path, tasks: Path, earlier: Path, photos: Path) -> None:
    """What nobody knows is no matter; what was not written by earlier versions may be missing."""

    def by_hand(told: Any) -> None:
        told.pop("activation"), told.pop("text_source")
        told["made by"] = {"whom": [None]}
        for entry in told["labels"]:
            entry |= {"threshold": 1, "trained_positives": 7, "colour": "#fff"}

    change_json(bundle / "labels.json", by_hand)
    change_json(tasks / "tasks" / "labels" / "labels.json", by_hand)
    change_json(earlier / "tasks.json", lambda told: told["tasks"]["labels"].pop("activation", None))
    found = ml.Predictor.load(signed(bundle)).predict(photos / "images" / "photo000.jpg")[0]
    assert len(found.labels) == 4
    for each in (tasks, earlier):
        assert ml.Predictor.load(signed(each)).predict(photos / "images" / "photo000.jpg", "labels")


# --- settings of a network that its weights are not of ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("backbone", "options", "width"), 10**6),
        (("backbone", "options", "layers"), 10**7),
        (("backbone", "options", "hidden"), 10**9),
        (("backbone", "options", "width"), 10**40),
        (("backbone", "options", "experts", "count"), 10**8),
        (("tasks", "objects", "head", "box_hidden"), 10**7),
        (("tasks", "labels", "image_size"), 4096),
        (("tasks", "labels", "head", "name"), "ml_decoder"),
    ],
)
def test_a_network_far_larger_than_its_weights_takes_no_memory(tasks: Path, keys: tuple[str, ...], value: int) -> None:
    change_yaml(tasks / "config.yaml", *keys, to=value)
    with limits(), pytest.raises(BundleError):
        ml.Predictor.load(signed(tasks))


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("vit", "width"), 10**6),
        (("vit", "layers"), 10**7),
        (("vit", "hidden"), 10**9),
        (("vit", "width"), 10**40),
        (("experts", "count"), 10**8),
        (("tasks", "objects", "detector", "box_hidden"), 10**7),
        (("tasks", "labels", "image_size"), 4096),
        (("tasks", "labels", "head", "name"), "ml_decoder"),
    ],
)
def test_nor_does_one_of_an_earlier_version(earlier: Path, keys: tuple[str, ...], value: int) -> None:
    change_yaml(earlier / "config.yaml", *keys, to=value)
    with limits(), pytest.raises(BundleError):
        ml.Predictor.load(signed(earlier))


@pytest.mark.parametrize(
    ("name", "options"),
    [("ml_decoder", {"dim": 100_000}), ("q2l", {"layers": 10**6}), ("hsq", {"dim": 10**5, "hidden": 10**6})],
)
def test_nor_does_a_head(bundle: Path, name: str, options: dict[str, int]) -> None:
    change_yaml(bundle / "config.yaml", "head", to={"name": name, **options})
    with limits(), pytest.raises(BundleError):
        ml.load_bundle(signed(bundle))


def limits() -> Any:
    from strangers import limits as limited

    return limited()


# --- nothing but what predicting needs ----------------------------------------------------------------------------------


@pytest.fixture
def own_loss() -> Iterator[str]:
    @LOSSES.register("my_own_loss")
    class Mine(BCELoss):
        """Registered in the process that trains, and nowhere else."""

    yield "my_own_loss"
    LOSSES._classes.pop("my_own_loss", None)


def elsewhere(script: str, *arguments: Path) -> str:
    """What another process says, in which nobody registered anything."""
    done = warm.run("-c", script, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_bundle_whose_loss_the_user_registered_is_used_by_another_process(
    own_loss: str, photos: Path, tmp_path: Path
) -> None:
    settings = [*TINY, "train.epochs=1", "data.workers=0", f"loss.name={own_loss}"]
    out = run.train(str(photos), out=tmp_path / "run", settings=settings).folder
    config = out / "bundle" / "config.yaml"  # nor an optimiser, a schedule or a tracker
    for part in ("optimiser", "schedule"):
        change_yaml(config, part, "name", to="mine_too")
    change_yaml(config, "train", "trackers", to=["nobodys"])
    signed(out / "bundle")
    script = """
import sys, manylabel as ml
from manylabel.cli import main
run, photo, out = sys.argv[1:]
assert ml.Predictor.load(run).predict(photo)[0].error is None
for command in (["evaluate", run], ["explain", run, photo, "--out", out], ["report", run]):
    sys.argv = ["manylabel", *command]
    try:
        main()
    except SystemExit as end:
        assert not end.code, (command, end.code)
"""
    elsewhere(script, out, photos / "images" / "photo000.jpg", tmp_path / "why")


def test_nor_does_a_model_for_several_tasks_need_its_loss(own_loss: str, tmp_path: Path, photos: Path) -> None:
    out = tmp_path / "run"
    run.train(out=out, recipe=SMALL, settings=["train.steps=2", f"tasks.labels.loss.name={own_loss}"])
    script = """
import sys, manylabel as ml
run, photo = sys.argv[1:]
assert ml.Predictor.load(run).predict(photo, "labels")[0].error is None
print(ml.evaluate(run)[0]["tasks"]["labels"]["figures"])
"""
    assert "mAP" in elsewhere(script, out, photos / "images" / "photo000.jpg")


@pytest.mark.parametrize("part", ["head", "neck"])
def test_a_part_that_is_missing_is_named_with_what_to_do(bundle: Path, part: str) -> None:
    change_yaml(bundle / "config.yaml", part, to={"name": "mine"})
    with pytest.raises(BundleError, match=rf"there is no {part} 'mine'.*once the module that registers it is imported"):
        ml.load_bundle(signed(bundle))


# --- what a bundle tells ------------------------------------------------------------------------------------------------


def test_a_bundle_does_not_tell_where_its_user_lives(tmp_path: Path, photos_to_look_at: Path) -> None:
    home = tmp_path / PLANTED
    photos = Path(shutil.copytree(photos_to_look_at, home / "photos"))
    shutil.copytree(photos / "images", home / "pictures")
    labels = home / "names.txt"
    labels.write_text("red\ngreen\nblue\nwhite\n")
    manylabel("data", "split", photos, "--out", home / "split.csv")
    words = home / "words.txt"
    words.write_text("".join(f"{name} {i} {i * i} 1\n" for i, name in enumerate(["red", "green", "blue", "white"], 1)))
    from manylabel.backbone import Backbone
    from manylabel.config import BackboneConfig

    body = Backbone(BackboneConfig(name="test_efficientnet", weights="none", image_size=64)).body
    save_file({k: v.clone().contiguous() for k, v in body.state_dict().items()}, home / "body.safetensors")
    settings = [*TINY, "train.epochs=1", "data.workers=0", f"backbone.weights={home / 'body.safetensors'}"]
    settings += [f"data.images={home / 'pictures'}", f"data.labels={labels}", f"data.split_file={home / 'split.csv'}"]
    settings += ["text.name=file", f"text.path={words}", "head.name=ml_decoder", "head.query=text", "head.dim=16"]
    result = run.train(str(photos / "labels.csv"), out=home / "run", settings=settings)
    assert telling(result.bundle) == []
    config = yaml.safe_load((result.bundle / "config.yaml").read_text())
    assert config["backbone"]["weights"] == "body.safetensors"
    assert (
        yaml.safe_load((home / "run" / "config.yaml").read_text())["backbone"]["weights"] == settings[6].split("=")[1]
    )


def test_nor_does_one_of_several_tasks(tmp_path: Path, photos_to_look_at: Path) -> None:
    home = tmp_path / PLANTED
    photos = Path(shutil.copytree(photos_to_look_at, home / "photos"))
    (home / "names.txt").write_text("red\ngreen\nblue\nwhite\n")
    manylabel("data", "split", photos, "--out", home / "split.csv")
    backbone = {**SMALL["backbone"], "weights": str(home / "vit.safetensors")}
    plain_vit(home / "vit.safetensors")
    data = {"path": str(photos / "labels.csv"), "workers": 0, "images": str(photos / "images")}
    data |= {"labels": str(home / "names.txt"), "split_file": str(home / "split.csv")}
    tasks = {"labels": {**SMALL["tasks"]["labels"], "data": data}}
    found = run.train(
        out=home / "run", recipe={**SMALL, "backbone": backbone, "tasks": tasks}, settings=["train.steps=1"]
    )
    assert telling(found.bundle) == []


def plain_vit(path: Path) -> None:
    import timm

    vit: Any = timm.models.vision_transformer.VisionTransformer(
        img_size=64, patch_size=8, embed_dim=16, depth=2, num_heads=2, mlp_ratio=2, num_classes=0
    )
    save_file(vit.state_dict(), path)


def telling(bundle: Path) -> list[str]:
    """The files that hold the name of the folder."""
    files = sorted(file for file in bundle.rglob("*") if file.is_file())
    return [file.name for file in files if PLANTED.encode() in file.read_bytes()]


def test_options_of_parts_that_nobody_knows_are_names_only_too() -> None:
    from manylabel.config import Config, Part, TaskConfig
    from manylabel.run.data_paths import without_paths

    options = {"prompts": f"/home/{PLANTED}/a.txt", "deep": [{"x": f"~/{PLANTED}/b"}], "file": f"{PLANTED}\\c", "n": 3}
    task = TaskConfig(head=Part("mine", options), loss=Part("theirs", {"table": f"../{PLANTED}/t.npy"}))
    bare = without_paths(Config(tasks={"labels": task}))
    assert PLANTED not in repr(bare)
    assert bare.only.head.options == {"prompts": "a.txt", "deep": [{"x": "b"}], "file": "c", "n": 3}

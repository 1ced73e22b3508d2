"""Only what carries our own mark is replaced, and only with --overwrite; only what a run of ours holds is removed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from command import TINY, manylabel, settings
from PIL import Image
from small_tasks import SMALL

from manylabel.error import ManylabelError
from manylabel.run import train
from manylabel.run.owned import HOLDS, MARK, check_folder, is_run, owned, remove_run
from manylabel.storage.atomic import write_json
from manylabel.storage.lock import LOCK
from manylabel.storage.output import check_output, wrote
from manylabel.storage.png import save_png

TRAIN = (*settings(*TINY, "train.epochs=1", "data.workers=0"),)


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two tasks."""
    out = tmp_path_factory.mktemp("several") / "run"
    train(out=out, recipe=SMALL, settings=["train.steps=2"])
    return out


# --- folders ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("overwrite", [(), ("--overwrite",)])
@pytest.mark.parametrize(
    "files",
    [
        ["checkpoints/step-000000001.safetensors"],
        ["bundle/weights.safetensors", "notes.txt"],
        ["results.json"],
        ["split.csv"],
        ["config.yaml", "checkpoints/best.json"],
        ["run.json"],
    ],
)
def test_training_into_a_folder_of_others_loses_nothing(
    photos: Path, tmp_path: Path, files: list[str], overwrite: tuple[str, ...]
) -> None:
    proj = tmp_path / "proj"
    for name in files:
        (proj / name).parent.mkdir(parents=True, exist_ok=True)
        (proj / name).write_text("learning_rate: 1\n")
    before = _contents(proj)
    answer = manylabel("train", photos, "--out", proj, *TRAIN, *overwrite)
    assert answer.returncode == 2
    assert "is not a run of manylabel's" in answer.stderr
    assert _contents(proj) == before


def test_several_tasks_lose_nothing_of_others_either(tmp_path: Path) -> None:
    proj = tmp_path / "proj"
    (proj / "tasks" / "mine").mkdir(parents=True)
    (proj / "tasks" / "mine" / "split.csv").write_text("mine")
    (proj / "config.yaml").write_text("model: resnet\n")
    answer = manylabel("train", "--recipe", "adamv-moe-scenes", "--out", proj, "--overwrite")
    assert answer.returncode == 2
    assert "is not a run of manylabel's" in answer.stderr
    assert _contents(proj) == {"tasks/mine/split.csv": b"mine", "config.yaml": b"model: resnet\n"}


def test_overwriting_a_run_leaves_what_it_did_not_write(trained: Path, photos: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    mine = {"notes.txt": "a", "bundle/mine.txt": "b", "checkpoints/old.ckpt": "c", "figures/photo.png": "d"}
    for name, text in mine.items():
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_text(text)
    answer = manylabel("train", photos, "--out", run, *TRAIN, "--seed", "3", "--overwrite")
    assert answer.returncode == 0, answer.stderr
    assert {name: (run / name).read_text() for name in mine} == mine
    assert "seed: 3" in (run / "config.yaml").read_text()


@pytest.mark.parametrize("kind", ["trained", "several"])
def test_every_file_of_a_run_is_known_and_removed(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    run = Path(shutil.copytree(request.getfixturevalue(kind), tmp_path / "run"))
    assert {path for path in run.rglob("*") if path.is_file() and path.name != LOCK} == set(owned(run))
    remove_run(run)
    assert [path.name for path in run.iterdir()] == [LOCK]


MINE = {  # beside what a run holds, and in place of it
    "checkpoints/step-notes.json": "a",
    "checkpoints/step-1.safetensors": "b",
    "routing/patches-holiday.png": "c",
    "routing/step-one.npz": "d",
    "figures/01.png": "e",
    "bundle/best.json": "f",
}
REPLACED = {
    "split.csv": "file_name,split\nmine.jpg,train\n",
    "bad_images.csv": "file_name,reason\nmine.jpg,blurred\n",
    "config.yaml": "# my notes\ntrain:\n  epochs: 9\n",
    "results.json": '{"mine": 1}',
    "details.json": '{"schema": 1}',
    "report.html": "<!doctype html><title>mine</title>",
    "metrics.jsonl": '{"mine": 1}\n',
    "bundle/README.md": "# my model card\n",
}


def test_in_a_run_others_keep_what_only_looks_like_a_file_of_it(trained: Path, photos: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    for name, text in MINE.items():
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_text(text)
    assert manylabel("train", photos, "--out", run, *TRAIN, "--overwrite").returncode == 0
    assert {name: (run / name).read_text() for name in MINE} == MINE


@pytest.mark.parametrize("name", REPLACED)
def test_what_a_person_put_in_place_of_a_run_s_file_is_not_lost(
    trained: Path, photos: Path, tmp_path: Path, name: str
) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    (run / name).write_text(REPLACED[name])
    before = _contents(run)
    answer = manylabel("train", photos, "--out", run, *TRAIN, "--overwrite")
    assert answer.returncode == 2
    assert f"{name}, which is not as its run wrote it" in answer.stderr
    if name not in ("config.yaml", "metrics.jsonl"):  # these a resumed run only reads
        answer = manylabel("train", "--resume", "--out", run)
        assert answer.returncode == 2
        assert f"{name}, which is not as its run wrote it" in answer.stderr
    assert _contents(run) == before


def test_a_run_that_was_killed_anywhere_is_replaced(trained: Path, tmp_path: Path) -> None:
    last = ("results.json", "details.json", "report.html", "scores.npz", "bundle/checksums.json", "bundle/README.md")
    for number in range(1, len(last) + 1):
        run = Path(shutil.copytree(trained, tmp_path / f"run {number}"))
        for name in last[:number]:
            (run / name).unlink()
        whole = (run / "metrics.jsonl").read_bytes()
        (run / "metrics.jsonl").write_bytes(whole[: 4 * (number - 1)])
        check_folder(run, [], overwrite=True)


def test_a_run_of_an_earlier_version_is_replaced_by_its_names(trained: Path, photos: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    for receipt in run.rglob(".*.manylabel"):
        receipt.unlink()
    write_json(run / MARK, {"manylabel": "0.1.0"})
    assert manylabel("train", photos, "--out", run, *TRAIN, "--overwrite").returncode == 0


def test_only_a_run_is_resumed(trained: Path, tmp_path: Path) -> None:
    """Settings alone make no run: its results would take the place of others'."""
    proj = tmp_path / "proj"
    proj.mkdir()
    (proj / "config.yaml").write_bytes((trained / "config.yaml").read_bytes())
    (proj / "results.json").write_text("mine")
    before = _contents(proj)
    answer = manylabel("train", "--resume", "--out", proj)
    assert answer.returncode == 2
    assert "is not a run of manylabel's" in answer.stderr
    assert _contents(proj) == before


def test_settings_keep_what_a_person_wrote_into_them_when_a_run_goes_on(trained: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    with open(run / "config.yaml", "a") as file:
        file.write("# as in the paper\n")
    assert manylabel("train", "--resume", "--out", run).returncode == 0
    assert (run / "config.yaml").read_text().endswith("# as in the paper\n")


def test_a_pipe_in_place_of_the_mark_is_no_mark(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / MARK)
    assert not is_run(tmp_path)
    (tmp_path / MARK).unlink()
    (tmp_path / MARK).symlink_to("/dev/zero")
    assert not is_run(tmp_path)


def test_a_link_in_a_run_is_not_followed(trained: Path, photos: Path, tmp_path: Path) -> None:
    run, other = (Path(shutil.copytree(trained, tmp_path / name)) for name in ("run", "other"))
    shutil.rmtree(run / "bundle")
    (run / "bundle").symlink_to(other / "bundle")
    before = _contents(other)
    answer = manylabel("train", photos, "--out", run, *TRAIN, "--overwrite")
    assert answer.returncode == 2
    assert "bundle is a link" in answer.stderr
    assert _contents(other) == before


@pytest.mark.parametrize("place", ["tasks", "tasks/labels", "bundle/tasks", "bundle/tasks/objects"])
def test_nor_is_one_in_a_run_of_several_tasks(several: Path, photos: Path, tmp_path: Path, place: str) -> None:
    run, other = (Path(shutil.copytree(several, tmp_path / name)) for name in ("run", "other"))
    shutil.rmtree(run / place)
    (run / place).symlink_to(other / place)
    before = _contents(other)
    answer = manylabel("train", photos, "--out", run, *TRAIN, "--overwrite")
    assert answer.returncode == 2
    assert f"{place} is a link" in answer.stderr
    assert _contents(other) == before


def test_a_folder_of_the_data_s_images_is_no_place_for_a_run(photos: Path) -> None:
    before = _contents(photos)
    answer = manylabel("train", photos, "--out", photos / "images", *TRAIN)
    assert answer.returncode == 2
    assert "a folder of images in the data" in answer.stderr
    answer = manylabel("train", photos / "labels.csv", "--out", photos / "images", *TRAIN)
    assert answer.returncode == 2
    assert _contents(photos) == before


def test_a_demo_is_replaced_only_when_asked(trained: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    before = _contents(run)
    answer = manylabel("demo", "--out", run)
    assert answer.returncode == 2
    assert "--overwrite replaces it" in answer.stderr
    assert _contents(run) == before


def test_a_removal_that_was_cut_short_can_be_begun_again(trained: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    for path in list(owned(run))[3:7]:
        path.unlink()
    assert is_run(run)
    remove_run(run)
    assert not is_run(run)
    assert next(owned(run), None) is None


def test_a_mark_must_say_manylabel(tmp_path: Path) -> None:
    for text in ("", "[]", '{"manylabel": 1}', "{" * 100_000, '{"name": "x"}'):
        (tmp_path / MARK).write_text(text)
        assert not is_run(tmp_path)
    (tmp_path / MARK).write_text('{"manylabel": "0.1.0"}')
    assert is_run(tmp_path)
    assert all(not Path(name).is_absolute() and ".." not in name for name in HOLDS)


# --- files ------------------------------------------------------------------------------------------------------------


def _writers(run: Path, photos: Path, out: Path) -> dict[str, list[str | Path]]:
    """Commands that write the file `out`."""
    photo = photos / "images" / "photo000.jpg"
    return {
        "evaluate --json": ["evaluate", run, "--json", out],
        "evaluate --report": ["evaluate", run, "--report", out],
        "predict --csv": ["predict", run, photo, "--csv", out],
        "predict --label-studio": ["predict", run, photo, "--label-studio", out],
        "report --out": ["report", run, "--out", out],
        "hard --html": ["hard", run, "--html", out],
        "data check --json": ["data", "check", photos, "--json", out],
        "data check --html": ["data", "check", photos, "--html", out],
        "data split": ["data", "split", photos, "--out", out, "--no-duplicates"],
        "data convert": ["data", "convert", photos, out, "--to", "coco"],
        "bench --json": ["bench", "metrics", "--quick", "--json", out],
    }


WRITERS = tuple(_writers(Path(), Path(), Path()))


@pytest.mark.parametrize("name", WRITERS)
def test_no_file_of_others_is_replaced(trained: Path, photos: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "mine.json"
    victims = {
        "page": "<!doctype html>\n<html><title>my page</title></html>",
        "json": '{\n "schema": 1,\n "title": "mine"\n}',
        "table": "file_name,split,labels\na.jpg,train,cat\n",
        "text": "my thesis",
        "nothing": "",
    }
    for text in victims.values():
        out.write_text(text)
        answer = manylabel(*_writers(trained, photos, out)[name], "--overwrite")
        assert answer.returncode == 2
        assert "was not written by manylabel" in answer.stderr
        assert out.read_text() == text


@pytest.mark.parametrize("name", WRITERS)
def test_no_link_pipe_or_device_is_replaced(trained: Path, photos: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "target.json").write_text("mine")
    (tmp_path / "link.json").symlink_to(tmp_path / "target.json")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    for victim in ("link.json", "pipe.json", "folder.json", "target.json/below.json"):
        answer = manylabel(*_writers(trained, photos, tmp_path / victim)[name], "--overwrite")
        assert answer.returncode == 2, victim
        assert "Traceback" not in answer.stderr
    assert (tmp_path / "target.json").read_text() == "mine"
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "pipe.json").is_fifo()


@pytest.mark.parametrize("name", [name for name in WRITERS if name not in ("bench --json", "hard --html")])
def test_ours_is_replaced_when_asked_and_only_then(trained: Path, photos: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "ours.json"
    command = _writers(trained, photos, out)[name]
    assert manylabel(*command).returncode == 0
    assert wrote(out)
    first = out.read_bytes()
    again = manylabel(*command)
    assert again.returncode == 2
    assert "replace it with --overwrite" in again.stderr
    assert out.read_bytes() == first
    os.utime(out, (0, 0))
    assert manylabel(*command, "--overwrite").returncode == 0
    assert out.stat().st_mtime > 0


def test_the_root_of_everything_is_no_file_to_write(trained: Path) -> None:
    answer = manylabel("report", trained, "--out", "/")
    assert answer.returncode == 2
    assert "/ is a folder; name a file to write" in answer.stderr


def test_figures_beside_a_report_are_replaced_only_where_they_are_ours(several: Path, tmp_path: Path) -> None:
    commands: list[list[str | Path]] = [
        ["report", several, "--out", tmp_path / "r.html"],
        ["evaluate", several, "--report", tmp_path / "r.html"],
    ]
    assert manylabel(*commands[0]).returncode == 0
    (tmp_path / "r.html").unlink()
    for command in commands:  # of another report, perhaps
        answer = manylabel(*command)
        assert answer.returncode == 2
        assert "01-losses.png is there already; choose another name, or replace it" in answer.stderr
    (tmp_path / "figures" / "01-losses.png").write_text("mine")
    for command in commands:
        answer = manylabel(*command, "--overwrite")
        assert answer.returncode == 2
        assert "01-losses.png is there already and was not written by manylabel" in answer.stderr
    assert (tmp_path / "figures" / "01-losses.png").read_text() == "mine"
    assert not (tmp_path / "r.html").exists()
    (tmp_path / "figures" / "01-losses.png").unlink()
    assert manylabel(*commands[0], "--overwrite").returncode == 0
    assert manylabel("report", several).returncode == 0  # the run's own is made anew


def test_nothing_is_converted_in_between_the_data_s_images(photos: Path) -> None:
    before = _contents(photos)
    for data in (photos, photos / "labels.csv"):
        answer = manylabel("data", "convert", data, photos / "images", "--to", "imagefolder", "--overwrite")
        assert answer.returncode == 2
        assert "a folder of images in the data" in answer.stderr
    assert _contents(photos) == before
    into = ["data", "convert", photos, photos / "shared", "--to", "imagefolder"]  # in it, but not between the images
    into += settings(f"data.images={photos / 'images'}")
    assert manylabel(*into).returncode == 0
    assert manylabel(*into, "--overwrite").returncode == 0


def test_the_labelling_config_of_a_user_stays(trained: Path, photos: Path, tmp_path: Path) -> None:
    config = tmp_path / "label_config.xml"
    config.write_text("<View><!-- mine --></View>")
    photo = photos / "images" / "photo000.jpg"
    for command in (
        ("predict", trained, photo, "--label-studio", tmp_path / "tasks.json", "--overwrite"),
        ("data", "convert", photos, tmp_path / "tasks.json", "--to", "label-studio", "--overwrite"),
        ("data", "convert", photos, tmp_path, "--to", "label-studio", "--overwrite"),
    ):
        answer = manylabel(*command)
        assert answer.returncode == 2
        assert "label_config.xml is there already" in answer.stderr
    assert config.read_text() == "<View><!-- mine --></View>"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["label_config.xml", "photos"]


def test_a_split_never_takes_the_place_of_the_data_s_own_labels(photos: Path, tmp_path: Path) -> None:
    labels = photos / "labels.csv"
    rows = labels.read_text().splitlines()
    own = "\n".join(
        [rows[0].replace("file_name,", "file_name,split,"), *(r.replace(",", ",train,", 1) for r in rows[1:])]
    )
    labels.write_text(own + "\n")
    answer = manylabel("data", "split", photos, "--out", labels, "--overwrite", "--no-duplicates")
    assert answer.returncode == 2
    assert labels.read_text() == own + "\n"


def _converted(photos: Path, out: Path, *more: str) -> None:
    answer = manylabel("data", "convert", photos, out, "--to", "csv", *more)
    assert answer.returncode == 0, answer.stderr


def test_a_conversion_never_replaces_what_it_reads(photos: Path, tmp_path: Path) -> None:
    """Not even a file of ours: of a label file with train and val, only train would be left."""
    rows = (photos / "labels.csv").read_text().splitlines()
    split = [f"{row},{'val' if number % 3 else 'train'}" for number, row in enumerate(rows[1:])]
    (photos / "labels.csv").write_text("\n".join([f"{rows[0]},split", *split, ""]))
    data, parts = tmp_path / "data", tmp_path / "parts"
    _converted(photos, data, "--images", "copy")
    for part in ("train", "val"):
        _converted(photos, parts / f"{part}.csv", "--images", "copy", "--split", part)
    (tmp_path / "link.csv").symlink_to(data / "labels.csv")
    before = _contents(data) | _contents(parts)
    into = ("--to", "csv", "--split", "train", "--overwrite")
    for source, out in (
        (data / "labels.csv", data),
        (data, data / "labels.csv"),
        (data / "labels.csv", data / "labels.csv"),
        (tmp_path / "link.csv", data / "labels.csv"),
        (parts, parts / "val.csv"),
    ):
        answer = manylabel("data", "convert", source, out, *into)
        assert answer.returncode == 2, (source, out)
        assert "part of it" in answer.stderr
    assert manylabel("data", "split", photos, "--out", tmp_path / "mine.csv", "--no-duplicates").returncode == 0
    for key in ("split_file", "labels"):
        named = settings(f"data.{key}={tmp_path / 'mine.csv'}")
        answer = manylabel("data", "convert", photos, tmp_path / "mine.csv", *named, *into)
        assert answer.returncode == 2, key
        assert "part of it" in answer.stderr
    assert _contents(data) | _contents(parts) == before
    assert (
        manylabel("data", "convert", photos, parts / "val.csv", *into).returncode == 0
    )  # of other data it is replaced


def test_a_conversion_goes_in_between_the_data_s_images_only_where_it_was(photos: Path) -> None:
    """A label file of others there does not make it a place of ours."""
    (photos / "images" / "metadata.jsonl").write_text('{"file_name": "photo000.jpg", "mine": 1}\n')
    before = _contents(photos)
    for to in ("imagefolder", "csv"):
        answer = manylabel("data", "convert", photos, photos / "images", "--to", to, "--overwrite")
        assert answer.returncode == 2
    assert _contents(photos) == before


TABLES = {
    "data split": "file_name,split\nphoto000.jpg,train\n",
    "data split --folds 2": "file_name,fold\nphoto000.jpg,0\n",
    "data convert": "file_name,labels\nphoto000.jpg,red\n",
    "predict --csv": "file_name,labels,scores,error\nphoto000.jpg,red,0.9000,\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_a_user_made_or_edited_is_the_user_s(
    trained: Path, photos: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "table.csv"
    commands: dict[str, list[str | Path]] = {
        "data split": ["data", "split", photos, "--out", out, "--no-duplicates"],
        "data split --folds 2": ["data", "split", photos, "--out", out, "--no-duplicates", "--folds", "2"],
        "data convert": ["data", "convert", photos, out, "--to", "csv"],
        "predict --csv": ["predict", trained, photos / "images" / "photo000.jpg", "--csv", out],
    }
    out.write_text(TABLES[name])
    assert manylabel(*commands[name], "--overwrite").returncode == 2
    assert out.read_text() == TABLES[name]
    out.unlink()
    assert manylabel(*commands[name]).returncode == 0
    assert manylabel(*commands[name], "--overwrite").returncode == 0
    edited = out.read_text().replace("photo000", "photo001")
    out.write_text(edited)
    assert manylabel(*commands[name], "--overwrite").returncode == 2
    assert out.read_text() == edited


def test_a_split_never_takes_the_place_of_the_one_that_the_data_has(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "split.csv"
    command = ("data", "split", photos, "--out", out, "--no-duplicates")
    assert manylabel(*command).returncode == 0
    before = out.read_text()
    answer = manylabel(*command, "--seed", "7", "--overwrite", *settings(f"data.split_file={out}"))
    assert answer.returncode == 2
    assert out.read_text() == before


def test_annotations_that_people_made_of_our_tasks_are_theirs(trained: Path, photos: Path, tmp_path: Path) -> None:
    """An export of Label Studio holds our predictions, too."""
    out, photo = tmp_path / "tasks.json", photos / "images" / "photo000.jpg"
    command = ("predict", trained, photo, "--label-studio", out)
    assert manylabel(*command).returncode == 0
    annotated = out.read_text().replace('"predictions"', '"annotations": [{"result": []}], "predictions"')
    out.write_text(annotated)
    assert manylabel(*command, "--overwrite").returncode == 2
    assert out.read_text() == annotated


def test_a_mark_that_is_only_mentioned_is_none(tmp_path: Path) -> None:
    for text in (
        '{"runs": [{"made_by": "manylabel 0.1.0"}]}',
        'my notes: <meta name="generator" content="manylabel"> stands in its pages',
        '{"info": {"description": "written by manylabel"}, "images": []}',
        "Software\0manylabel",
    ):
        (tmp_path / "mine.txt").write_text(text)
        assert not wrote(tmp_path / "mine.txt"), text


def test_a_comparison_is_not_replaced_unasked(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "comparison"
    other = Path(shutil.copytree(trained, tmp_path / "other"))
    config = (other / "config.yaml").read_text()
    (other / "config.yaml").write_text(config.replace("epochs: 1\n", "epochs: 2\n"))
    command = ("compare", trained, other, "--out", out, "--resamples", "100")
    assert manylabel(*command).returncode == 0
    before = _contents(out)
    answer = manylabel(*command)
    assert answer.returncode == 2
    assert "--overwrite" in answer.stderr
    assert _contents(out) == before
    assert manylabel(*command, "--overwrite").returncode == 0
    (out / "labels.csv").write_text("label,mine\n")
    assert manylabel(*command, "--overwrite").returncode == 2
    assert (out / "labels.csv").read_text() == "label,mine\n"


def test_explanations_replace_only_ours(trained: Path, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "why"
    command = ("explain", trained, photos / "images" / "photo000.jpg", "--label", "red", "--out", out)
    assert manylabel(*command).returncode == 0
    assert manylabel(*command).returncode == 2
    assert manylabel(*command, "--overwrite").returncode == 0
    Image.new("RGB", (8, 8)).save(out / "0001-photo000-red.png")
    mine = (out / "0001-photo000-red.png").read_bytes()
    assert manylabel(*command, "--overwrite").returncode == 2
    assert (out / "0001-photo000-red.png").read_bytes() == mine


def test_marks_of_every_kind(tmp_path: Path) -> None:
    save_png(Image.new("RGB", (8, 8)), tmp_path / "ours.png")
    Image.new("RGB", (8, 8)).save(tmp_path / "theirs.png")
    assert wrote(tmp_path / "ours.png")
    assert not wrote(tmp_path / "theirs.png")
    check_output(tmp_path / "ours.png", overwrite=True)
    check_output(tmp_path / "new" / "file.png", overwrite=False)
    with pytest.raises(ManylabelError, match="not written by manylabel"):
        check_output(tmp_path / "theirs.png", overwrite=True)

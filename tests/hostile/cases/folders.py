"""Folders that a command is asked to write, where something of others is already."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hostile.box import Box
from hostile.case import Collection
from hostile.kit import QUICK

NAMES = {
    "checkpoints/epoch=3.ckpt": "a year of another program's training\n",
    "checkpoints/step-000000001.json": '{"mine": true}\n',
    "bundle/app.js": "console.log('a web bundle')\n",
    "bundle/weights.safetensors": "not yours\n",
    "head_first/notes.txt": "mine\n",
    "results.json": '{"experiment": 7}\n',
    "details.json": "{}\n",
    "split.csv": "file_name,split\nmine.jpg,train\n",
    "scores.npz": "mine\n",
    "report.html": "<!doctype html><title>annual report</title>\n",
    "metrics.jsonl": '{"step": 1}\n',
    "run.json": '{"speed": 12}\n',
    "bad_images.csv": "a,b\n",
    "tasks/todo.txt": "milk\n",
    "tasks/labels/results.json": '{"mine": true}\n',
    "bundle/tasks/labels/labels.json": '["mine"]\n',
    "routing/map.txt": "A1\n",
    "figures/figure1.png": "mine\n",
    "config.yaml": "title: my site\ntheme: dark\n",
    "README.md": "# mine\n",
}


def groups() -> Iterator[Collection]:
    yield _runs()
    yield _results()


def _train(box: Box, several: bool) -> list[str]:
    if several:
        box.get("small.yaml")
        return ["train", "--recipe", "small.yaml"]
    if not (box / "photos").exists():
        box.get("photos")
    return ["train", "photos", *QUICK]


def _runs() -> Collection:
    """A folder that is no run of ours keeps everything that is in it, whatever its files are called."""
    made = Collection("others' folders: train")

    def spare(name: str, several: bool, overwrite: bool) -> None:
        def work(box: Box) -> None:
            words = _train(box, several)
            box.write(f"project/{name}", NAMES[name])
            more = ["--overwrite"] if overwrite else []
            box.run(*words, "--out", "project", *more, codes=[0, 2], writes=["project/**"], keeps=[f"project/{name}"])

        how = " of tasks" * several + " --overwrite" * overwrite
        made.add(f"train{how}: {name}", work)

    for name in NAMES:
        for several in (False, True):
            for overwrite in (False, True):
                spare(name, several, overwrite)

    def whole(several: bool, overwrite: bool) -> None:
        def work(box: Box) -> None:
            words = _train(box, several)
            for name, text in NAMES.items():
                box.write(f"project/{name}", text)
            box.run(*words, "--out", "project", *(["--overwrite"] if overwrite else []), codes=[2])

        made.add(f"train{' of tasks' * several}{' --overwrite' * overwrite}: a project with all these names", work)

    def beside(several: bool) -> None:
        def work(box: Box) -> None:
            words = _train(box, several)
            box.get("tasks" if several else "run", "mine")
            theirs = [
                "notes.txt",
                "checkpoints/best-of-last-year.pt",
                "bundle/LICENSE",
                "results-2025.json",
                "tasks/x.txt",
                "tasks/labels/x.txt",
                "bundle/tasks/objects/x.txt",
            ]
            for name in theirs:
                box.write(f"mine/{name}", "of the user's\n")
            keeps = [f"mine/{name}" for name in theirs]
            box.run(*words, "--out", "mine", "--overwrite", codes=[0, 2], writes=["mine/**"], keeps=keeps)

        made.add(f"train{' of tasks' * several} --overwrite: a run with files of the user's in it", work)

    for several in (False, True):
        beside(several)
        for overwrite in (False, True):
            whole(several, overwrite)

    places = {
        "the data": "photos",
        "the data's images": "photos/images",
        "the data's parent": ".",
        "the label file": "photos/labels.csv",
        "a photo": "photos/images/photo000.jpg",
        "below a photo": "photos/images/photo000.jpg/run",
        "nothing": "",
    }

    def inside(what: str, out: str, overwrite: bool) -> None:
        def work(box: Box) -> None:
            words = _train(box, False)
            codes = [0, 2] if out == "." else [2]
            writes = [] if out != "." else ["*", "bundle/**", "checkpoints/**"]
            more = ["--overwrite"] if overwrite else []
            box.run(*words, "--out", out, *more, codes=codes, writes=writes, keeps=["photos/**"])

        made.add(f"train{' --overwrite' * overwrite} into {what}", work)

    for what, out in places.items():
        for overwrite in (False, True):
            inside(what, out, overwrite)

    for overwrite in (False, True):

        def linked(box: Box, overwrite: bool = overwrite) -> None:
            words = _train(box, False)
            os.symlink("photos/images", box / "out")
            box.run(*words, "--out", "out", *(["--overwrite"] if overwrite else []), codes=[2])

        made.add(f"train{' --overwrite' * overwrite} into a link to the data's images", linked)

        def named_by_file(box: Box, overwrite: bool = overwrite) -> None:
            box.get("photos")
            more = ["--overwrite"] if overwrite else []
            box.run("train", "photos/labels.csv", *QUICK, "--out", "photos/images", *more, codes=[2])

        made.add(f"train{' --overwrite' * overwrite} on a label file, into the images", named_by_file)

        def images_elsewhere(box: Box, overwrite: bool = overwrite) -> None:
            box.get("photos")
            os.rename(box / "photos" / "images", box / "pictures")
            more = ["--overwrite"] if overwrite else []
            where = ["--set", "data.images=pictures"]
            box.run("train", "photos", *QUICK, *where, "--out", "pictures", *more, codes=[2])

        made.add(f"train{' --overwrite' * overwrite} into data.images", images_elsewhere)

    for several in (False, True):

        def rooted(box: Box, several: bool = several) -> None:
            box.run(*_train(box, several), "--out", "/", codes=[2], manners={"nobody": True})

        made.add(f"train{' of tasks' * several} into /", rooted)

        def locked(box: Box, several: bool = several) -> None:
            words = _train(box, several)
            (box / "locked").mkdir(mode=0o555)
            box.run(*words, "--out", "locked/run", codes=[2], manners={"unprivileged": True})

        made.add(f"train{' of tasks' * several} into a folder that is read-only", locked)

        def piped(box: Box, several: bool = several) -> None:
            words = _train(box, several)
            os.mkfifo(box / "pipe")
            box.run(*words, "--out", "pipe", codes=[2])

        made.add(f"train{' of tasks' * several} into a pipe", piped)

        def again(box: Box, several: bool = several) -> None:
            words = _train(box, several)
            box.get("tasks" if several else "run", "mine")
            box.run(*words, "--out", "mine", codes=[2], says="overwrite")

        made.add(f"train{' of tasks' * several} into a run", again)

        def other_kind(box: Box, several: bool = several) -> None:
            words = _train(box, several)
            box.get("run" if several else "tasks", "mine")
            box.get("photo.jpg")
            box.run(*words, "--out", "mine", "--overwrite", codes=[0, 2], writes=["mine/**"])
            box.run("predict", "mine", "photo.jpg")
            box.run("predict", "mine", "photo.jpg", "--task", "labels")

        made.add(f"train{' of tasks' * several} --overwrite: a run of the other kind", other_kind)

        def settings_linked(box: Box, several: bool = several) -> None:
            words = _train(box, several)
            box.get("tasks" if several else "run", "mine")
            for name in ("results.json", "config.yaml"):
                os.rename(box / "mine" / name, box.root / "next-door" / name)
                os.symlink(box.root / "next-door" / name, box / "mine" / name)
            os.rename(box / "mine" / "checkpoints", box.root / "next-door" / "checkpoints")
            os.symlink(box.root / "next-door" / "checkpoints", box / "mine" / "checkpoints")
            box.run(*words, "--out", "mine", "--overwrite", codes=[0, 2], writes=["mine/**"])

        made.add(f"train{' of tasks' * several} --overwrite: a run whose files are links to elsewhere", settings_linked)

    @made.case("resume a folder that is no run")
    def _(box: Box) -> None:
        for name, text in NAMES.items():
            box.write(f"project/{name}", text)
        box.run("train", "--resume", "--out", "project", codes=[2])

    @made.case("demo into a project of others")
    def _(box: Box) -> None:
        for name, text in NAMES.items():
            box.write(f"project/{name}", text)
        box.run("demo", "--out", "project", codes=[2])

    @made.case("demo into a run that is none of its own")
    def _(box: Box) -> None:
        box.get("run")
        box.run("demo", "--out", "run", codes=[2])

    return made


# name → (what it needs, words with {out} for the folder)
FOLDERS: dict[str, tuple[list[str], list[str]]] = {
    "compare": (["run", "other"], ["compare", "run", "other", "--resamples", "100", "--out", "{out}"]),
    "hard --out": (["run"], ["hard", "run", "--resamples", "0", "--out", "{out}"]),
    "explain": (["run", "photo.jpg"], ["explain", "run", "photo.jpg", "--out", "{out}"]),
    "predict --overlay": (
        ["tasks", "photo.jpg"],
        ["predict", "tasks", "photo.jpg", "--task", "objects", "--score", "0", "--overlay", "{out}"],
    ),
    "data convert imagefolder": (["photos"], ["data", "convert", "photos", "{out}", "--to", "imagefolder"]),
    "data convert fiftyone": (["photos"], ["data", "convert", "photos", "{out}", "--to", "fiftyone"]),
}


def _words(box: Box, command: str, out: str) -> list[str]:
    needs, words = FOLDERS[command]
    for name in needs:
        if not (box / name).exists():
            box.get(name)
    return [word.format(out=out) for word in words]


def _results() -> Collection:
    """Commands that write folders of results: what the user has put there under such names stays."""
    made = Collection("others' folders: results")

    def all_replaced(command: str, overwrite: bool) -> None:
        def work(box: Box) -> None:
            words = _words(box, command, "first")
            box.run(*words, writes=["first/**"])
            names = [path.relative_to(box / "first") for path in sorted((box / "first").rglob("*")) if path.is_file()]
            box.expect(names, "nothing was written")
            for name in names:
                box.write(f"mine/{name}", "of the user's\n")
            again = [word.replace("first", "mine") for word in words]
            box.run(*again, *(["--overwrite"] if overwrite else []), codes=[2])

        made.add(f"{command}{' --overwrite' * overwrite}: files of the user's with its names", work)

    def one_replaced(command: str) -> None:
        def work(box: Box) -> None:
            words = _words(box, command, "first")
            box.run(*words, writes=["first/**"])
            files = [path for path in sorted((box / "first").rglob("*")) if path.is_file()]
            chosen: Path = box.dice.choice(files)
            chosen.write_bytes(b"of the user's\n")
            name = str(chosen.relative_to(box.path))
            box.run(*words, "--overwrite", codes=[0, 2], writes=["first/**"], keeps=[name])

        made.add(f"{command} --overwrite: one of its files was replaced by the user", work)

    def twice(command: str) -> None:
        def work(box: Box) -> None:
            words = _words(box, command, "first")
            box.run(*words, writes=["first/**"])
            box.run(*words, codes=[2], says="overwrite")
            box.run(*words, "--overwrite", writes=["first/**"])

        made.add(f"{command}: a second time", work)

    def special(command: str, kind: str) -> None:
        def work(box: Box) -> None:
            words = _words(box, command, "out")
            manners = {}
            if kind == "a photo":
                box.get("photo.jpg", "out")
            elif kind == "a pipe":
                os.mkfifo(box / "out")
            elif kind == "read-only":
                (box / "out").mkdir(mode=0o555)
                manners = {"unprivileged": True}
            elif kind == "below a photo":
                box.get("photo.jpg", "holiday.jpg")
                words = [word if word != "out" else "holiday.jpg/out" for word in words]
            elif kind == "the data":
                if not (box / "photos").exists():
                    box.get("photos")
                words = [word if word != "out" else "photos" for word in words]
                # beside the data is no loss, so long as all of it stays
                box.run(*words, codes=[0, 2], writes=["photos/**"], keeps=["photos/images/**", "photos/labels.csv"])
                return
            box.run(*words, codes=[2], manners=manners)

        made.add(f"{command}: the folder is {kind}", work)

    for command in FOLDERS:
        for overwrite in (False, True):
            all_replaced(command, overwrite)
        one_replaced(command)
        twice(command)
        for kind in ("a photo", "a pipe", "read-only", "below a photo", "the data"):
            special(command, kind)

    @made.case("data split over the data's own label file with --overwrite")
    def _(box: Box) -> None:
        box.get("photos")
        box.run("data", "split", "photos", "--out", "photos/labels.csv", "--overwrite", codes=[2])

    @made.case("data split over a split file that is the data's label file")
    def _(box: Box) -> None:
        box.get("photos")
        text = (box / "photos" / "labels.csv").read_text().replace("file_name,labels,split", "file_name,split,labels")
        rows = [line.split(",") for line in text.splitlines()[1:]]
        box.write("photos/labels.csv", "file_name,split,labels\n" + "".join(f"{a},{c},{b}\n" for a, b, c in rows))
        box.run("data", "split", "photos", "--out", "photos/labels.csv", "--overwrite", codes=[2])

    @made.case("data split over the label file by another path")
    def _(box: Box) -> None:
        box.get("photos")
        os.symlink("photos", box / "same")
        box.run("data", "split", "photos", "--out", "same/labels.csv", "--overwrite", codes=[2])

    @made.case("data convert --to csv over the label file it reads")
    def _(box: Box) -> None:
        box.get("photos")
        box.run("data", "convert", "photos", "photos/labels.csv", "--to", "csv", "--overwrite", codes=[2])

    @made.case("data convert --to csv over the label file it was named")
    def _(box: Box) -> None:
        box.get("photos")
        os.symlink("photos/labels.csv", box / "link.csv")
        box.run("data", "convert", "photos/labels.csv", "link.csv", "--to", "csv", "--overwrite", codes=[2])

    @made.case("data convert --to imagefolder into the data's images")
    def _(box: Box) -> None:
        box.get("photos")
        box.run("data", "convert", "photos", "photos/images", "--to", "imagefolder", "--overwrite", codes=[2])

    @made.case("data fetch into a folder of others")
    def _(box: Box) -> None:
        box.write("data/voc2007/VOC2007/mine.txt", "mine\n")
        box.write("data/voc2007/VOCtrainval_06-Nov-2007.tar", "mine, too\n")
        mirror = ["--mirror", "http://127.0.0.1:9/"]
        box.run("data", "fetch", "voc2007", "--out", "data/voc2007", *mirror, codes=[2])

    return made

"""Files that a command is asked to write, where something of others is already."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator

from hostile.box import Box, Limits
from hostile.case import Collection

TINY_COST = ["--backbone", "test_efficientnet", "--head", "linear", "--labels", "4", "--image-size", "64"]
# name → (what it needs from the kit, the words of the command before the file, suffix of what it writes)
COMMANDS: dict[str, tuple[list[str], list[str], str]] = {
    "evaluate --json": (["run"], ["evaluate", "run", "--json"], ".json"),
    "evaluate --report": (["run"], ["evaluate", "run", "--report"], ".html"),
    "evaluate tasks --json": (["tasks"], ["evaluate", "tasks", "--json"], ".json"),
    "evaluate tasks --report": (["tasks"], ["evaluate", "tasks", "--report"], ".html"),
    "report": (["run"], ["report", "run", "--out"], ".html"),
    "report tasks": (["tasks"], ["report", "tasks", "--out"], ".html"),
    "predict --csv": (["run", "photo.jpg"], ["predict", "run", "photo.jpg", "--csv"], ".csv"),
    "predict --label-studio": (["run", "photo.jpg"], ["predict", "run", "photo.jpg", "--label-studio"], ".json"),
    "data check --json": (["photos"], ["data", "check", "photos", "--json"], ".json"),
    "data check --html": (["photos"], ["data", "check", "photos", "--html"], ".html"),
    "data split": (["photos"], ["data", "split", "photos", "--out"], ".csv"),
    "data convert csv": (["photos"], ["data", "convert", "photos", "--to", "csv"], ".csv"),
    "data convert coco": (["photos"], ["data", "convert", "photos", "--to", "coco"], ".json"),
    "data convert label-studio": (["photos"], ["data", "convert", "photos", "--to", "label-studio"], ".json"),
    "hard --html": (["run"], ["hard", "run", "--html"], ".html"),
    "bench cost --json": ([], ["bench", "cost", *TINY_COST, "--json"], ".json"),
}
BESIDE = ["label_config.xml", "figures/**"]  # what some write beside the file


def groups() -> Iterator[Collection]:
    yield _files()
    yield _overwritten()
    yield _own()
    yield _planted()


# --- victims: each makes something of others, and says under which name the command is asked to write ---------------------


def _photo(box: Box, suffix: str) -> str:
    box.get("photo.jpg", "holiday.jpg")
    return "holiday.jpg"


def _text(box: Box, suffix: str) -> str:
    box.write("notes.txt", "three years of notes\n")
    return "notes.txt"


def _page(box: Box, suffix: str) -> str:
    box.write(
        "index.html", "<!DOCTYPE html>\n<html><head><title>My shop</title></head><body>hours of work</body></html>\n"
    )
    return "index.html"


def _yaml(box: Box, suffix: str) -> str:
    box.write("config.yaml", "title: my site\nplugins: [search]\n")
    return "config.yaml"


def _json(box: Box, suffix: str) -> str:
    box.write("package.json", '{\n "schema": "https://example.org/thing", "name": "mine"\n}\n')
    return "package.json"


def _empty(box: Box, suffix: str) -> str:
    box.write(f"empty{suffix}", "")
    return f"empty{suffix}"


def _link(box: Box, suffix: str) -> str:
    os.symlink(box.root / "next-door" / "photo.jpg", box / f"link{suffix}")
    return f"link{suffix}"


def _hard_link(box: Box, suffix: str) -> str:
    os.link(box.root / "next-door" / "photo.jpg", box / f"hard{suffix}")
    return f"hard{suffix}"


def _folder(box: Box, suffix: str) -> str:
    box.write(f"folder{suffix}/inside.txt", "inside\n")
    return f"folder{suffix}"


def _under_a_file(box: Box, suffix: str) -> str:
    box.get("photo.jpg", "holiday.jpg")
    return f"holiday.jpg/out{suffix}"


def _labels_of_data(box: Box, suffix: str) -> str:
    if not (box / "photos").exists():
        box.get("photos")
    return "photos/labels.csv"


def _photo_of_data(box: Box, suffix: str) -> str:
    if not (box / "photos").exists():
        box.get("photos")
    return "photos/images/photo001.jpg"


def _weights(box: Box, suffix: str) -> str:
    for name in ("run", "tasks"):
        if (box / name).exists():
            return f"{name}/bundle/weights.safetensors"
    box.get("run")
    return "run/bundle/weights.safetensors"


def _settings_of_run(box: Box, suffix: str) -> str:
    for name in ("run", "tasks"):
        if (box / name).exists():
            return f"{name}/config.yaml"
    box.get("run")
    return "run/config.yaml"


VICTIMS: dict[str, Callable[[Box, str], str]] = {
    "a photo": _photo,
    "a text": _text,
    "a page of others": _page,
    "a config.yaml of others": _yaml,
    "JSON of others": _json,
    "an empty file": _empty,
    "a link to a photo": _link,
    "a hard link": _hard_link,
    "a folder": _folder,
    "below a file": _under_a_file,
    "the data's label file": _labels_of_data,
    "a photo of the data": _photo_of_data,
    "a model's weights": _weights,
    "a run's settings": _settings_of_run,
}


def _prepare(box: Box, command: str) -> tuple[list[str], str]:
    needs, words, suffix = COMMANDS[command]
    for name in needs:
        box.get(name)
    return words, suffix


def _asked(words: list[str], out: str) -> list[str]:
    """The command with the file in its place; `convert` names it without an option."""
    return [*words[:3], out, *words[3:]] if words[1] == "convert" else [*words, out]


def _files() -> Collection:
    """Without --overwrite nothing that is there is replaced."""
    made = Collection("others' files")

    def spare(command: str, victim: str) -> None:
        def work(box: Box) -> None:
            words, suffix = _prepare(box, command)
            box.run(*_asked(words, VICTIMS[victim](box, suffix)), codes=[2])

        made.add(f"{command}: {victim}", work)

    def special(command: str, kind: str) -> None:
        def work(box: Box) -> None:
            words, suffix = _prepare(box, command)
            out = f"special{suffix}"
            if kind == "a pipe":
                os.mkfifo(box / out)
            else:
                _device(box, out)
            # writing into it is one answer, refusing is another; it stays what it is
            box.run(*_asked(words, out), codes=[0, 2], writes=BESIDE, keeps=[out])

        made.add(f"{command}: {kind}", work)

    def locked(command: str) -> None:
        def work(box: Box) -> None:
            words, suffix = _prepare(box, command)
            (box / "locked").mkdir(mode=0o555)
            box.run(*_asked(words, f"locked/out{suffix}"), codes=[2], manners={"unprivileged": True})

        made.add(f"{command}: a folder that is read-only", work)

    for command in COMMANDS:
        for victim in VICTIMS:
            spare(command, victim)
        for kind in ("a pipe", "a device"):
            special(command, kind)
        locked(command)
    for root in ("/", "/proc/version", "."):

        def at_root(box: Box, root: str = root) -> None:
            box.get("run")
            box.run("report", "run", "--out", root, codes=[2], manners={"nobody": True})

        made.add(f"report: {root}", at_root)
    return made


def _device(box: Box, name: str) -> None:
    try:
        os.mknod(box / name, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:  # only root makes devices
        os.symlink("/dev/null", box / name)


def _overwritten() -> Collection:
    """Even with --overwrite we replace only what carries our own mark."""
    made = Collection("others' files with --overwrite")
    chosen = ("a photo", "a text", "a page of others", "JSON of others", "a link to a photo", "the data's label file")

    def spare(command: str, victim: str) -> None:
        def work(box: Box) -> None:
            words, suffix = _prepare(box, command)
            box.run(*_asked(words, VICTIMS[victim](box, suffix)), "--overwrite", codes=[2])

        made.add(f"{command}: {victim}", work)

    def device(command: str) -> None:
        def work(box: Box) -> None:
            words, suffix = _prepare(box, command)
            _device(box, f"special{suffix}")
            asked = _asked(words, f"special{suffix}")
            box.run(*asked, "--overwrite", codes=[0, 2], writes=BESIDE, keeps=[f"special{suffix}"])

        made.add(f"{command}: a device", work)

    for command in COMMANDS:
        for victim in chosen:
            spare(command, victim)
        device(command)
    return made


def _own() -> Collection:
    """What a command wrote before is replaced with --overwrite, and only then."""
    made = Collection("a second time")

    def twice(command: str) -> None:
        def work(box: Box) -> None:
            words, suffix = _prepare(box, command)
            asked = _asked(words, f"out{suffix}")
            box.run(*asked, writes=[f"out{suffix}", *BESIDE])
            box.expect((box / f"out{suffix}").is_file(), "nothing was written")
            box.run(*asked, codes=[2], says="overwrite")
            box.run(*asked, "--overwrite", writes=[f"out{suffix}", *BESIDE])

        made.add(f"{command}", work)

    for command in COMMANDS:
        twice(command)

    @made.case("predict --label-studio beside a label_config.xml of the user's")
    def _(box: Box) -> None:
        box.get("run")
        box.get("photo.jpg")
        box.write("label_config.xml", "<View><Text name='mine' value='$text'/></View>\n")
        box.run("predict", "run", "photo.jpg", "--label-studio", "tasks.json", codes=[2])

    @made.case("predict --label-studio --overwrite beside a label_config.xml of the user's")
    def _(box: Box) -> None:
        box.get("run")
        box.get("photo.jpg")
        box.write("label_config.xml", "<View><Text name='mine' value='$text'/></View>\n")
        box.run("predict", "run", "photo.jpg", "--label-studio", "tasks.json", "--overwrite", codes=[2])

    @made.case("report anew in a run")
    def _(box: Box) -> None:
        box.get("run")
        box.run("report", "run", writes=["run/report.html"])

    @made.case("report in a run whose report.html the user has replaced")
    def _(box: Box) -> None:
        box.get("run")
        box.write("run/report.html", "<!doctype html><title>my own words about this run</title>\n")
        box.run("report", "run", codes=[2])

    @made.case("report of several tasks in a run whose report.html the user has replaced")
    def _(box: Box) -> None:
        box.get("tasks")
        box.write("tasks/report.html", "<!doctype html><title>my own words about this run</title>\n")
        box.run("report", "tasks", codes=[2])

    @made.case("report of several tasks beside figures of the user's")
    def _(box: Box) -> None:
        box.get("tasks")
        box.run("report", "tasks", "--out", "new/report.html", writes=["new/**"])
        for picture in (box / "new" / "figures").glob("*"):
            box.write(f"mine/figures/{picture.name}", "of the user's\n")
        box.run("report", "tasks", "--out", "mine/r.html", codes=[0, 2], writes=["mine/**"], keeps=["mine/figures/*"])

    return made


def _planted() -> Collection:
    """A link that lies where the temporary file will be: nothing is written through it."""
    made = Collection("planted links")

    def plant(command: str, kind: str) -> None:
        def work(box: Box) -> None:
            words, suffix = _prepare(box, command)
            out = f"out{suffix}"

            def before() -> None:
                for name in (out, "label_config.xml"):
                    here = box / f"{name}.{os.getpid()}.partial"
                    if kind == "link":
                        os.symlink(box.root / "next-door" / "diary.txt", here)
                    else:
                        os.mkfifo(here)

            facts = box.facts()
            answer = box.start(*_asked(words, out), manners={"before": before}).answer()
            for left in box.path.glob("*.partial"):
                left.unlink()
            box.judge(answer, facts, {0, 2}, [out, *BESIDE], limits=Limits())

        made.add(f"{command}: {kind}", work)

    for command in COMMANDS:
        plant(command, "link")
    for command in ("report", "predict --csv", "data split"):
        plant(command, "pipe")
    return made

"""Links in the data: they are read, and what leaves by `convert` is the images, never what else a link points to."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hostile.box import Box, Fate
from hostile.case import Collection
from hostile.kit import QUICK

NO_FILE = (
    "a link to a pipe",
    "a pipe",
    "a link to /dev/zero",
    "a link to a folder",
    "a dangling link",
    "a link to itself",
)
SECRET = b"-----BEGIN PRIVATE KEY-----\nnobody may read this\n"
MB = 1 << 20


def groups() -> Iterator[Collection]:
    yield _convert()
    yield _reading()


def _secret_text(box: Box, at: Path) -> None:
    os.symlink(box.root / "next-door" / "id_rsa", at)


def _kinds() -> dict[str, Callable[[Box, Path], Any]]:
    """What one of the data's photos is instead."""

    def far(box: Box) -> Path:
        return box.root / "next-door"

    return {
        "a link to a key": _secret_text,
        "a relative link to a key": lambda box, at: os.symlink(os.path.relpath(far(box) / "id_rsa", at.parent), at),
        "a link to a link to a key": lambda box, at: (
            os.symlink(far(box) / "id_rsa", far(box) / "l"),
            os.symlink(far(box) / "l", at),
        ),
        "a hard link to a key": lambda box, at: os.link(far(box) / "id_rsa", at),
        "a key that begins like a JPEG": lambda box, at: os.symlink(far(box) / "jpeg_rsa", at),
        "a link to a private photo": lambda box, at: os.symlink(far(box) / "private.jpg", at),
        "a hard link to a private photo": lambda box, at: os.link(far(box) / "private.jpg", at),
        "a photo of mode 600": lambda box, at: (shutil.copy(box.kit.one_photo, at), at.chmod(0o600)),
        "a photo of mode 444": lambda box, at: (shutil.copy(box.kit.one_photo, at), at.chmod(0o444)),
        "a link to a pipe": lambda box, at: (os.mkfifo(far(box) / "pipe"), os.symlink(far(box) / "pipe", at)),
        "a pipe": lambda box, at: os.mkfifo(at),
        "a link to /dev/zero": lambda box, at: os.symlink("/dev/zero", at),
        "a link to a folder": lambda box, at: os.symlink(far(box), at),
        "a dangling link": lambda box, at: os.symlink("nothing", at),
        "a link to itself": lambda box, at: os.symlink(at.name, at),
        "a sparse file of a terabyte": lambda box, at: os.truncate(_touched(at), 10**12),
        "a page named like a photo": lambda box, at: at.write_text("<!doctype html><title>404</title>"),
        "a link to /etc/passwd": lambda box, at: os.symlink("/etc/passwd", at),
        "a link to another photo of the data": lambda box, at: os.symlink("photo001.jpg", at),
    }


def _touched(path: Path) -> Path:
    path.touch()
    return path


def _prepare(box: Box, kind: str) -> None:
    box.get("photos")
    far = box.root / "next-door"
    (far / "id_rsa").write_bytes(SECRET)
    (far / "jpeg_rsa").write_bytes(b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + SECRET)
    shutil.copy(box.kit.photos / "images" / "photo007.jpg", far / "private.jpg")
    for name in ("id_rsa", "jpeg_rsa", "private.jpg"):
        (far / name).chmod(0o600)
    at = box / "photos" / "images" / "photo000.jpg"
    at.unlink()
    _kinds()[kind](box, at)


def _handed_out(box: Box, out: str) -> None:
    """Nothing below `out` is, holds or leads to what is no image; and private stays private."""
    theirs = {os.stat(path).st_ino for path in (box.root / "next-door").iterdir() if path.name.endswith("_rsa")}
    for folder, _, names in os.walk(box / out):
        for name in names:
            path = Path(folder) / name
            info = os.stat(path) if path.exists() else None
            if info is None or not stat.S_ISREG(info.st_mode):
                if info is not None:
                    raise Fate("wrong answer", f"{path.relative_to(box.path)} is no plain file")
                continue
            if info.st_ino in theirs:
                raise Fate("lost", f"{path.relative_to(box.path)} hands out a key")
            content = path.read_bytes()[:MB]
            if SECRET in content or content.startswith(b"root:"):
                raise Fate("lost", f"{path.relative_to(box.path)} hands out what a link points to")


def _convert() -> Collection:
    made = Collection("links out of the data: convert")

    def case(kind: str, target: str, how: str) -> None:
        def work(box: Box) -> None:
            _prepare(box, kind)
            more = ["--images", how] if how != "default" else []
            words = ["data", "convert", "photos", "out", "--to", target, *more]
            said = box.run(*words, codes=[0, 2], writes=["out/**"], memory=600 * MB)
            _handed_out(box, "out")
            if said.code == 0 and "link to a private photo" in kind and how == "copy":
                box.expect(
                    "link" in said.said.lower() or "hard" in kind, "no note counts the links that leave the data"
                )
            mode = {"a photo of mode 600": 0o600, "a link to a private photo": 0o600, "a photo of mode 444": 0o444}.get(
                kind
            )
            if said.code == 0 and mode is not None and how != "leave":
                for path in (box / "out").rglob("*photo000*.jpg"):
                    now = stat.S_IMODE(path.stat().st_mode)
                    box.expect(
                        not now & ~mode & 0o077 & ~(0 if mode == 0o600 else 0o044), f"mode {mode:o} became {now:o}"
                    )

        made.add(f"{kind}: {target}, images {how}", work)

    for kind in _kinds():
        for target in ("imagefolder", "fiftyone"):
            for how in ("default", "copy", "link"):
                case(kind, target, how)

    def folder(target: str, how: str) -> None:
        def work(box: Box) -> None:
            """The folder of images is a link to private photos elsewhere."""
            box.get("photos")
            shutil.move(box / "photos" / "images", box.root / "next-door" / "album")
            for path in (box.root / "next-door" / "album").iterdir():
                path.chmod(0o600)
            (box.root / "next-door" / "album" / "notes.txt").write_bytes(SECRET)
            os.symlink(box.root / "next-door" / "album", box / "photos" / "images")
            words = ["data", "convert", "photos", "out", "--to", target, "--images", how]
            said = box.run(*words, writes=["out/**"])
            _handed_out(box, "out")
            box.expect("link" in said.said.lower(), "no note counts the links that leave the data")
            for path in (box / "out").rglob("*.jpg"):
                box.expect(
                    not path.stat().st_mode & 0o077, f"a private photo has mode {stat.S_IMODE(path.stat().st_mode):o}"
                )

        made.add(f"the folder of images is a link: {target}, images {how}", work)

    for target in ("imagefolder", "fiftyone"):
        for how in ("copy", "link"):
            folder(target, how)

    def key(name: str, row: str) -> None:
        def work(box: Box) -> None:
            box.get("photos")
            (box.root / "next-door" / "id_rsa.jpg").write_bytes(SECRET)
            path = box / "photos" / "labels.csv"
            path.write_text(path.read_text() + row.format(far=box.root / "next-door"))
            words = ["data", "convert", "photos", "out", "--to", "imagefolder", "--images", "copy"]
            box.run(*words, codes=[0, 2], writes=["out/**"])
            _handed_out(box, "out")
            box.expect(not (box / "id_rsa.jpg").exists(), "it was written outside of the folder")

        made.add(f"a row that names {name}", work)

    key("a file above the data", "../../next-door/id_rsa.jpg,red,train\n")
    key("an absolute path", "{far}/id_rsa.jpg,red,train\n")
    key("a path with backslashes", "..\\..\\next-door\\id_rsa.jpg,red,train\n")
    key("a device", "/dev/zero,red,train\n")
    return made


def _reading() -> Collection:
    """Reading follows links; what is no image is an unreadable image, and none of it is shown."""
    made = Collection("links in the data: reading")
    lenient = ["--set", "data.max_bad_share=0.2"]

    def case(kind: str, command: str) -> None:
        def work(box: Box) -> None:
            _prepare(box, kind)
            box.get("run")
            words = {
                "train": ["train", "photos", *QUICK, *lenient, "--out", "new"],
                "data check": ["data", "check", "photos", "--html", "page.html", "--json", "check.json"],
                "predict": ["predict", "run", "photos/images", "--json"],
                "evaluate": ["evaluate", "run", "--data", "photos", "--split", "test", *lenient],
            }[command]
            codes, says = [0, 1, 2], None
            if command == "data check":
                codes, says = ([2], r"image files are missing") if kind in NO_FILE else ([0, 1], None)
            elif kind in ("a link to a private photo", "a link to another photo of the data") and command == "train":
                codes = [0]
            said = box.run(
                *words, says=says, codes=codes, writes=["new/**", "page.html", "check.json"], memory=900 * MB
            )
            box.expect("nobody may read" not in said.said and "root:x" not in said.said, "a secret is shown")
            for name in ("page.html", "check.json"):
                if (box / name).is_file():
                    box.expect(b"nobody may read" not in (box / name).read_bytes(), f"{name} shows a secret")

        made.add(f"{kind}: {command}", work)

    def dropped(kind: str) -> None:
        def work(box: Box) -> None:
            _prepare(box, kind)
            words = ["data", "check", "photos", "--set", "data.missing=drop", "--json", "check.json"]
            box.run(*words, codes=[0, 1], writes=["check.json"], memory=900 * MB)
            box.expect(box.json_file("check.json")["images"] == 27, "it counts as an image")

        made.add(f"{kind}: data check with data.missing=drop", work)

    for kind in _kinds():
        for command in ("train", "data check", "predict"):
            case(kind, command)
    for kind in NO_FILE:
        dropped(kind)
    case("a link to a private photo", "evaluate")

    @made.case("a data set made of links")
    def _(box: Box) -> None:
        box.get("photos")
        shutil.move(box / "photos" / "images", box / "store")
        (box / "photos" / "images").mkdir()
        for path in sorted((box / "store").iterdir()):
            os.symlink(path, box / "photos" / "images" / path.name)
        box.run("train", "photos", *QUICK, "--out", "new", writes=["new/**"])
        box.run("data", "check", "photos")
        box.run("evaluate", "new", "--split", "test")

    @made.case("folders in a circle")
    def _(box: Box) -> None:
        box.get("photos")
        box.get("run")
        os.symlink(".", box / "photos" / "images" / "again")
        os.symlink("..", box / "photos" / "images" / "up")
        box.run("data", "check", "photos", codes=[0, 1])
        box.run("predict", "run", "photos/images", codes=[0])

    return made

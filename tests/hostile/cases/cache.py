"""The feature cache: what is damaged in it is computed again, and what is in it is what the images are now."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hostile.box import Box, finite
from hostile.case import Collection
from hostile.kit import QUICK, drawn, weights_of
from hostile.strange import VALUES, deep_json, mutated
from PIL import Image

MB = 1 << 20
RANDOM = 30


def groups() -> Iterator[Collection]:
    yield _damage()
    yield _commands()
    yield _replaced()


def _parts(folder: Path) -> tuple[Path, Path, Path]:
    """The numbers, what is said of them, and of all."""
    numbers = next(folder.glob("*.bin"), None) or max(folder.iterdir(), key=lambda path: path.stat().st_size)
    told = numbers.with_suffix(".json")
    return numbers, told, folder / "facts.json"


def _train(box: Box, codes: list[int] | None = None, **more: Any) -> None:
    data = str(box.kit.photos)
    said = box.run(
        "train", data, *QUICK, "--out", "new", codes=codes or [0], writes=["new/**"], memory=800 * MB, **more
    )
    if said.code == 0:
        same = weights_of(box / "new") == weights_of(box.kit.folder / "run")
        box.expect(same, "damaged features were believed: the weights are others than those of the undamaged cache")


Damage = Callable[[Path, Path, Path, Box], Any]


def _floats(numbers: Path) -> np.ndarray:
    return np.fromfile(numbers, np.float32)


def _filled(value: float, begin: float, end: float) -> Damage:
    def work(numbers: Path, told: Path, facts: Path, box: Box) -> None:
        found = _floats(numbers)
        found[int(len(found) * begin) : max(int(len(found) * end), int(len(found) * begin) + 1)] = value
        found.tofile(numbers)

    return work


def _swap(numbers: Path, told: Path, facts: Path, box: Box) -> None:
    found = _floats(numbers).reshape(24, -1)
    found[[0, 1]] = found[[1, 0]]
    found.tofile(numbers)


def _flip(numbers: Path, told: Path, facts: Path, box: Box) -> None:
    data = bytearray(numbers.read_bytes())
    at = box.dice.randrange(len(data))
    data[at] ^= 1 << box.dice.randrange(8)
    numbers.write_bytes(data)


def _special(which: int, kind: str) -> Damage:
    def work(*parts: Any) -> None:
        path, box = parts[which], parts[3]
        diary = box.root / "next-door" / "diary.txt"
        if kind == "hard link":
            path.unlink()
            os.link(diary, path)
            return
        if kind == "unreadable":
            path.chmod(0)
            return
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "link":
            os.symlink(diary, path)
        elif kind == "dangling link":
            os.symlink(box.root / "next-door" / "nothing", path)
        elif kind == "endless":
            os.symlink("/dev/zero", path)

    return work


def _text(which: int, content: bytes | str) -> Damage:
    def work(*parts: Any) -> None:
        parts[which].write_bytes(content if isinstance(content, bytes) else content.encode())

    return work


def _value(which: int, key: str, value: Any) -> Damage:
    def work(*parts: Any) -> None:
        values = json.loads(parts[which].read_text())
        values[key] = value
        parts[which].write_text(json.dumps(values))

    return work


def _damage() -> Collection:
    made = Collection("damaged feature caches")

    def add(name: str, damage: Damage, **more: Any) -> None:
        def work(box: Box) -> None:
            damage(*_parts(box.cached()), box)
            _train(box, **more)

        made.add(name, work)

    nan, inf = float("nan"), float("inf")
    for name, begin, end in (
        ("all", 0, 1),
        ("the first half", 0, 0.5),
        ("the second half", 0.5, 1),
        ("a tenth", 0.3, 0.4),
        ("one", 0.5, 0.5),
    ):
        for what, value in (("zeros", 0.0), ("NaN", nan), ("infinity", inf), ("1e30", 1e30)):
            add(f"numbers: {name} {what}", _filled(value, begin, end))
    add("numbers: two images swapped", _swap)
    for number in range(8):
        add(f"numbers: a bit flipped {number}", _flip)
    for share in (0, 0.25, 0.5, 0.999):
        add(
            f"numbers: cut at {share}",
            lambda n, t, f, box, s=share: n.write_bytes(n.read_bytes()[: int(n.stat().st_size * s)]),
        )
    add("numbers: longer", lambda n, t, f, box: n.write_bytes(n.read_bytes() + b"x" * 1000))
    add("numbers: gone", lambda n, t, f, box: n.unlink())
    add("numbers: noise", lambda n, t, f, box: n.write_bytes(box.dice.randbytes(n.stat().st_size)))
    add("numbers: those of another cache", _of_another)
    for kind in ("pipe", "folder", "link", "dangling link", "hard link", "endless"):
        add(f"numbers: a {kind}", _special(0, kind))
        add(f"their JSON: a {kind}", _special(1, kind))
        add(f"facts.json: a {kind}", _special(2, kind))
    for which, name in ((0, "numbers"), (1, "their JSON"), (2, "facts.json")):
        add(f"{name}: unreadable", _special(which, "unreadable"), manners={"unprivileged": True}, codes=[0, 2])
    for which, name in ((1, "their JSON"), (2, "facts.json")):
        for kind, content in {
            "empty": "",
            "a list": "[]",
            "null": "null",
            "text": '"x"',
            "lists nested deep": deep_json(),
            "objects nested deep": deep_json(kind="{"),
            "NUL bytes": b"\0" * 99,
            "no UTF-8": b'{"a": "\xff"}',
            "NaN": "NaN",
            "5,000 digits": '{"images": ' + "9" * 5000 + "}",
            "30 MB": '{"bad": {"0": "' + "x" * (30 * MB) + '"}}',
        }.items():
            add(f"{name}: {kind}", _text(which, content))
        add(f"{name}: gone", lambda *parts, w=which: parts[w].unlink())
    for key, values in {
        "images": (0, -1, 23, 10**12, "24", None),
        "shape": ([], [1], [10**12], [-256], [256, 1], "256", [0]),
        "dtype": ("float16", "object", "", None),
        "done": (-1, 0, 12, 10**9, "24", None, 1e308),
        "bad": ({"0": "made up"}, {"99": "x"}, {"-1": "x"}, {"a": "x"}, [], {str(i): "x" for i in range(24)}),
        "rounding": (nan, "x"),
        "extra": (1,),
    }.items():
        for value in values:
            add(f"their JSON: {key} of {str(value)[:30]}", _value(1, key, value))
    add("the lock is a pipe", lambda n, t, f, box: _replaced_lock(f, "pipe"))
    add("the lock is a folder", lambda n, t, f, box: _replaced_lock(f, "folder"))
    add("the lock is a link", lambda n, t, f, box: _replaced_lock(f, "link", box))
    add("a stale half-written file", lambda n, t, f, box: f.with_name("facts.json.1.partial").write_text("{"))

    for number in range(RANDOM):

        def mutate(n: Path, t: Path, f: Path, box: Box, number: int = number) -> None:
            path = (t, f, n)[number % 3]
            if number % 2 and path is not n:
                values = json.loads(path.read_text())
                values[box.dice.choice(list(values))] = box.dice.choice(VALUES)
                path.write_text(json.dumps(values))
            else:
                path.write_bytes(mutated(path.read_bytes(), box.dice))

        add(f"mutated {number:02d}", mutate)

    def place(name: str, prepare: Callable[[Box], Any], **more: Any) -> None:
        def work(box: Box) -> None:
            prepare(box)
            _train(box, codes=[0, 2], **more)

        made.add(f"the cache folder: {name}", work)

    place("a file", lambda box: (box.root / "cache" / "manylabel").write_text("mine"))
    place("a dangling link", lambda box: os.symlink("nowhere/at/all", box.root / "cache" / "manylabel"))
    place("read-only", lambda box: (box.root / "cache").chmod(0o555), manners={"unprivileged": True})
    place("a pipe", lambda box: os.mkfifo(box.root / "cache" / "manylabel"))
    place("full", lambda box: box.env.update(MANYLABEL_CACHE="/dev/full"))
    return made


def _of_another(numbers: Path, told: Path, facts: Path, box: Box) -> None:
    for folder in numbers.parent.parent.iterdir():
        if folder != numbers.parent:
            shutil.copy(next(folder.glob("*.bin")), numbers)


def _replaced_lock(facts: Path, kind: str, box: Box | None = None) -> None:
    lock = facts.with_name("lock")
    lock.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "folder":
        lock.mkdir()
    elif box is not None:
        os.symlink(box.root / "next-door" / "diary.txt", lock)


def _commands() -> Collection:
    made = Collection("cache commands")

    def count(box: Box) -> int:
        return len(list((box.root / "cache" / "manylabel" / "features").iterdir()))

    for text in ("", " ", ".", "..", "/", "*", "../..", "?", "%", "\x1b[2J", "%s", "x" * 5000, "-"):

        def prune(box: Box, text: str = text) -> None:
            box.cached()
            before = count(box)
            box.run("cache", "prune", text, codes=[2])
            box.expect(count(box) == before, "features are gone")

        made.add(f"prune {text[:10]!r}", prune)
        if text in ("", " ", ".", "*", "/"):

            def verify(box: Box, text: str = text) -> None:
                box.cached()
                box.run("cache", "verify", text, codes=[2])

            made.add(f"verify {text!r}", verify)

    for words in (["--older-than", "nan"], ["--older-than", "-1"], ["--older-than", "x"], []):

        def odd(box: Box, words: list[str] = words) -> None:
            box.cached()
            before = count(box)
            box.run("cache", "prune", *words, codes=[2])
            box.expect(count(box) == before, "features are gone")

        made.add(f"prune {' '.join(words) or 'nothing'}", odd)

    def others(name: str, *words: str) -> None:
        def work(box: Box) -> None:
            """Somebody's project that has a folder `features`, which MANYLABEL_CACHE was pointed at."""
            shutil.copytree(box.kit.folder / "cache" / "manylabel", box / "project")
            box.write("project/features/login/login.feature", "Feature: login\n")
            box.write("project/features/notes.txt", "mine\n")
            box.write("project/readme.txt", "mine\n")
            keeps = ["project/features/login/**", "project/features/notes.txt", "project/readme.txt"]
            env = {"MANYLABEL_CACHE": str(box / "project")}
            box.run("cache", *words, codes=[0, 1, 2], writes=["project/**"], keeps=keeps, env=env)

        made.add(f"{name} beside folders of others", work)

    others("prune --all", "prune", "--all")
    others("prune --incomplete", "prune", "--incomplete")
    others("prune --older-than 0", "prune", "--older-than", "0")
    others("prune login", "prune", "login")
    others("list", "list")
    others("verify", "verify")

    @made.case("prune --all with a link to a folder of others")
    def _(box: Box) -> None:
        folder = box.cached()
        os.symlink(box.root / "next-door", folder.parent / "abcdef")
        box.run("cache", "prune", "--all", codes=[0, 2])

    damages: dict[str, Damage] = {
        "facts nested deep": _text(2, deep_json()),
        "facts that are a list": _text(2, "[]"),
        "facts without UTF-8": _text(2, b"\xff"),
        "facts with a view that is text": _value(2, "view", "x"),
        "facts with escapes": _value(2, "table", "\x1b[2J\x9bname"),
        "facts whose images are a list": _value(2, "images", [1]),
        "facts that are a pipe": _special(2, "pipe"),
        "JSON nested deep": _text(1, deep_json()),
        "JSON of NaN": _value(1, "rounding", float("nan")),
        "JSON of 5,000 digits": _text(1, '{"images": ' + "9" * 5000 + "}"),
        "JSON that is a pipe": _special(1, "pipe"),
        "numbers that are a pipe": _special(0, "pipe"),
        "numbers of zeros": _filled(0.0, 0, 1),
        "a lock that is a pipe": lambda n, t, f, box: _replaced_lock(f, "pipe"),
    }
    for name, damage in damages.items():
        for words in (["list"], ["list", "--json"], ["verify", "--json"], ["prune", "--incomplete"]):

            def look(box: Box, damage: Damage = damage, words: list[str] = words) -> None:
                damage(*_parts(box.cached()), box)
                said = box.run("cache", *words, codes=[0, 1], memory=400 * MB)
                if "--json" in words:
                    box.expect(finite(said.json()), "numbers that are none")

            made.add(f"{' '.join(words)}: {name}", look)
    return made


def _replaced() -> Collection:
    """Photos that are others now, with the size and the time of the old ones."""
    made = Collection("replaced photos")

    def other_photo(path: Path, dice: Any) -> bytes:
        """Another photo in as many bytes; a JPEG may be followed by anything."""
        size, quality = path.stat().st_size, 92
        made_anew = path.with_name("anew.jpg")
        pixels = drawn(dice.sample(["red", "green", "blue", "white"], 2), np.random.default_rng(dice.randrange(10**6)))
        while True:
            Image.fromarray(pixels).save(made_anew, quality=quality)
            data = made_anew.read_bytes()
            if len(data) <= size:
                made_anew.unlink()
                return data.ljust(size, b"\0")
            quality -= 7

    def put(path: Path, data: bytes, how: str) -> None:
        facts = path.stat()
        if how == "in place":
            path.write_bytes(data)
        else:
            new = path.with_name("new.tmp")
            new.write_bytes(data)
            os.replace(new, path)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    def case(name: str, change: Callable[[Box, list[Path]], Any], *settings: str) -> None:
        def work(box: Box) -> None:
            box.get("photos")
            words = ["train", "photos", *QUICK, *settings, "--out"]
            box.run(*words, "before", writes=["before/**"])
            change(box, sorted((box / "photos" / "images").glob("*.jpg")))
            box.run(*words, "after", writes=["after/**"])
            cold = {"XDG_CACHE_HOME": str(box / "cold")}
            box.run(*words, "right", writes=["right/**", "cold/**"], env=cold)
            box.expect(weights_of(box / "before") != weights_of(box / "right"), "the case changes nothing")
            same = weights_of(box / "after") == weights_of(box / "right")
            box.expect(same, "features of photos that are no more were used without a word")

        made.add(name, work)

    for how in ("in place", "renamed over"):
        for which in ("all", "one", "half"):

            def change(box: Box, photos: list[Path], how: str = how, which: str = which) -> None:
                chosen = {"all": photos, "one": photos[3:4], "half": photos[::2]}[which]
                for path in chosen:
                    put(path, other_photo(path, box.dice), how)

            case(f"{which}, {how}", change)
            case(f"{which}, {how}, partial", change, "--set", "backbone.freeze=partial")

    def swapped(box: Box, photos: list[Path]) -> None:
        one, two = photos[:2]
        size = max(one.stat().st_size, two.stat().st_size)
        # made equally long before the first run would be another case: here the names alone change places
        a, b = one.read_bytes().ljust(size, b"\0"), two.read_bytes().ljust(size, b"\0")
        facts = one.stat()
        one.write_bytes(b)
        two.write_bytes(a)
        for path in (one, two):
            os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    case("two photos changed places", swapped)

    def restored(box: Box, photos: list[Path]) -> None:
        """A folder that is put in the place of the other, as a restore from a backup does it."""
        folder = photos[0].parent
        other = folder.with_name("other")
        shutil.copytree(folder, other)
        for path in sorted(other.glob("*.jpg")):
            put(path, other_photo(path, box.dice), "in place")
        shutil.rmtree(folder)
        os.rename(other, folder)

    case("the folder was restored from another", restored)

    def linked(box: Box) -> None:
        """The images are a link, which leads elsewhere now."""
        box.get("photos")
        os.rename(box / "photos" / "images", box / "one")
        shutil.copytree(box / "one", box / "two")
        for path in sorted((box / "two").glob("*.jpg")):
            put(path, other_photo(path, box.dice), "in place")
        os.symlink("../one", box / "photos" / "images")
        words = ["train", "photos", *QUICK, "--out"]
        box.run(*words, "before", writes=["before/**"])
        (box / "photos" / "images").unlink()
        os.symlink("../two", box / "photos" / "images")
        box.run(*words, "after", writes=["after/**"])
        box.run(*words, "right", writes=["right/**", "cold/**"], env={"XDG_CACHE_HOME": str(box / "cold")})
        box.expect(weights_of(box / "after") == weights_of(box / "right"), "features of the other folder were used")

    made.add("the images are a link that leads elsewhere now", linked)

    def truncated(box: Box) -> None:
        """A photo that has become unreadable is said, and not taken from the cache."""
        box.get("photos")
        words = ["train", "photos", *QUICK, "--set", "data.max_bad_share=0.5", "--out"]
        box.run(*words, "before", writes=["before/**"])
        path = box / "photos" / "images" / "photo002.jpg"
        put(path, b"\0" * path.stat().st_size, "in place")
        box.run(*words, "after", writes=["after/**"])
        listed = (box / "after" / "bad_images.csv").read_text() if (box / "after" / "bad_images.csv").is_file() else ""
        box.expect("photo002" in listed, "an unreadable photo was taken from the cache")

    made.add("a photo became unreadable", truncated)
    return made

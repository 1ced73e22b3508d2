"""Image files that are damaged, lie, or have strange names."""

from __future__ import annotations

import csv
import io
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hostile.box import RAW, Box, finite
from hostile.case import Collection
from hostile.kit import QUICK
from hostile.strange import mutated
from PIL import Image

MB = 1 << 20
MUTATED = 84
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")


def groups() -> Iterator[Collection]:
    yield _damaged()
    yield _names()


def _encoded(box: Box, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.open(box.kit.one_photo).convert("RGB").save(buffer, kind, **options)
    return buffer.getvalue()


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _png(width: int, height: int, bits: int = 1, colour: int = 0, data: bytes = b"") -> bytes:
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", head)
        + _chunk(b"IDAT", data or zlib.compress(b""))
        + _chunk(b"IEND", b"")
    )


def _png_bomb(side: int) -> bytes:
    packer = zlib.compressobj(9)
    row = bytes(1 + (side + 7) // 8)
    return _png(side, side, data=b"".join(packer.compress(row) for _ in range(side)) + packer.flush())


def _damaged() -> Collection:
    made = Collection("image files")

    def one(name: str, make: Callable[[Box], bytes], codes: tuple[int, ...] = (0, 1), suffix: str = ".jpg") -> None:
        def work(box: Box) -> None:
            box.get("run")
            box.write(f"odd{suffix}", make(box))
            said = box.run("predict", "run", f"odd{suffix}", "--json", codes=codes, memory=400 * MB, cpu=10)
            found = said.json()
            box.expect(finite(found) and len(found) == 1, "not one answer of numbers")
            box.expect(
                bool(found[0].get("error")) == (said.code == 1), "exit code 1 is for no image that could be read"
            )
            if said.code == 0:
                box.expect(found[0]["labels"], "no labels and no error")

        made.add(name, work)

    bad = (1,)
    whole = (0,)
    one("0 bytes", lambda box: b"", bad)
    one("1 byte", lambda box: b"\xff", bad)
    one("zeros", lambda box: bytes(100_000), bad)
    one("noise", lambda box: box.dice.randbytes(50_000), bad)
    one("an HTML page", lambda box: b"<!doctype html><title>404</title>", bad)
    one("text", lambda box: b"moved\n", bad)
    one("an SVG", lambda box: b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>', bad)
    one("PostScript", lambda box: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/etc/passwd) (r) file\n", bad)
    one("a PDF", lambda box: b"%PDF-1.4\n", bad)
    one("an MP4", lambda box: b"\0\0\0\x18ftypmp42" + bytes(100), bad)
    one("a ZIP", lambda box: b"PK\3\4" + bytes(100), bad)
    one("a pickle", lambda box: b"\x80\x04\x95" + bytes(100), bad)
    one("a bomb of 89 megapixels", lambda box: _png_bomb(9434), bad)
    one("a bomb of 179 megapixels", lambda box: _png_bomb(13380), bad)
    one("a header of 4 gigapixels", lambda box: _png(63246, 63246), bad)
    one("a header of 2^31 columns", lambda box: _png(2**31 - 1, 1), bad)
    one("a header without columns", lambda box: _png(0, 10), bad)
    one("a PNG of text chunks", lambda box: _with_text(_encoded(box, "PNG"), 60), (0, 1))
    one("a PNG with a profile that is a bomb", lambda box: _with_profile(_encoded(box, "PNG")), (0, 1))
    one(
        "a GIF whose canvas is huge",
        lambda box: b"GIF89a" + struct.pack("<HH", 65535, 65535) + b"\x80\0\0" + bytes(60),
        bad,
    )
    one("a PPM of 10^10 pixels", lambda box: b"P6 100000 100000 255\n", bad)
    one("a PPM of negative size", lambda box: b"P6 -8 8 255\n" + bytes(300), bad)
    one(
        "a BMP of 2^31 rows",
        lambda box: b"BM" + struct.pack("<IHHIIiiHHIIiiII", 99, 0, 0, 54, 40, 9, 2**31 - 1, 1, 24, 0, 0, 0, 0, 0, 0),
        bad,
    )
    one("a TIFF whose directory is a circle", lambda box: b"II*\0\x08\0\0\0\x00\x00\x08\0\0\0", bad)
    one("a JPEG and 20 MB of zeros", lambda box: _encoded(box, "JPEG") + bytes(20 * MB), whole)
    one("a JPEG header and 20 MB of ff", lambda box: b"\xff\xd8\xff\xe0\0\2" + b"\xff" * (20 * MB), bad)
    for kind in FORMATS:
        for share in (10, 50, 90):
            one(
                f"{kind} cut at {share} %",
                lambda box, k=kind, s=share: _encoded(box, k)[: len(_encoded(box, k)) * s // 100],
                (0, 1) if kind in ("GIF", "TIFF") else bad,
            )
        one(f"{kind} named .jpg", lambda box, k=kind: _encoded(box, k), whole)
    for suffix in (".png", ".gif", ".tif", ".webp", ".bmp", ".JPG", ".jpeg"):
        one(f"a JPEG named {suffix}", lambda box: _encoded(box, "JPEG"), whole, suffix)
    for mode in ("L", "LA", "P", "1", "RGBA", "CMYK", "I;16"):

        def odd_mode(box: Box, mode: str = mode) -> bytes:
            image = Image.open(box.kit.one_photo).convert("L" if mode == "I;16" else mode)
            if mode == "I;16":
                image = image.convert("I;16")
            buffer = io.BytesIO()
            image.save(buffer, "TIFF" if mode == "CMYK" else "PNG")
            return buffer.getvalue()

        one(f"mode {mode}", odd_mode, whole)
    for size in ((1, 1), (1, 20000), (20000, 1), (2, 3)):

        def sized(box: Box, size: tuple[int, int] = size) -> bytes:
            buffer = io.BytesIO()
            Image.new("RGB", size, (20, 90, 200)).save(buffer, "PNG")
            return buffer.getvalue()

        one(f"{size[0]} × {size[1]}", sized, whole)
    for number in range(MUTATED):
        kind = FORMATS[number % len(FORMATS)]
        one(f"mutated {number:02d} {kind}", lambda box, k=kind: mutated(_encoded(box, k), box.dice))

    def special(name: str, prepare: Callable[[Box], Any]) -> None:
        for command in ("predict", "explain", "predict --csv", "predict a folder"):

            def work(box: Box, command: str = command) -> None:
                box.get("run")
                box.get("photo.jpg", "in/photo.jpg")
                prepare(box)
                words: list[str] = ["predict", "run", "in/odd.jpg", "in/photo.jpg"]
                if command == "explain":
                    words[0] = "explain"
                elif command == "predict --csv":
                    words += ["--csv", "out.csv"]
                elif command == "predict a folder":
                    words = ["predict", "run", "in"]
                said = box.run(*words, codes=[0, 1, 2], writes=["explanations/**", "out.csv"], memory=400 * MB, cpu=15)
                box.expect("root:x" not in said.said, "a file that is no image is shown")

            made.add(f"{name}: {command}", work)

    special("a pipe", lambda box: os.mkfifo(box / "in" / "odd.jpg"))
    special("a folder", lambda box: (box / "in" / "odd.jpg").mkdir())
    special("a link to /dev/zero", lambda box: os.symlink("/dev/zero", box / "in" / "odd.jpg"))
    special("a link to itself", lambda box: os.symlink("odd.jpg", box / "in" / "odd.jpg"))
    special("a dangling link", lambda box: os.symlink("nothing", box / "in" / "odd.jpg"))
    special("a socket", _socket)
    special("unreadable", lambda box: (box.write("in/odd.jpg", b"x"), (box / "in" / "odd.jpg").chmod(0)))
    return made


def _socket(box: Box) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as one:
        here = os.getcwd()
        os.chdir(box / "in")
        one.bind("odd.jpg")
        os.chdir(here)


def _with_text(png: bytes, megabytes: int) -> bytes:
    bomb = b"note\0\0" + zlib.compress(bytes(megabytes * MB), 9)
    return png[:33] + _chunk(b"zTXt", bomb) * 3 + png[33:]


def _with_profile(png: bytes) -> bytes:
    return png[:33] + _chunk(b"iCCP", b"icc\0\0" + zlib.compress(bytes(100 * MB), 9)) + png[33:]


NAMES: dict[str, bytes] = {
    "a newline": b"one\ntwo.jpg",
    "a carriage return": b"one\rtwo.jpg",
    "an escape sequence": b"\x1b[2J\x1b]0;owned\x07red.jpg",
    "C1 characters": "\x9b2Jred\x85.jpg".encode(),
    "no UTF-8": b"caf\xe9.jpg",
    "a broken UTF-8": b"\xc3\x28\xff\xfe.jpg",
    "a surrogate in UTF-8": b"\xed\xa0\x80.jpg",
    "a quote and commas": b'a"b,c;d|e.jpg',
    "a formula": b"=cmd()|'x'!A1.jpg",
    "markup": b"<script>alert(1)<_script>.jpg",
    "an option": b"--json.jpg",
    "blanks": b"  two  blanks  .jpg",
    "right to left": "\u202egpj.exe.jpg".encode(),
    "255 bytes": b"x" * 251 + b".jpg",
    "a backslash": b"a\\b\\..\\c.jpg",
    "a percent": b"%s%n%00.jpg",
    "rich markup": b"[red]not[_red][link=x].jpg",
    "a tab": b"a\tb.jpg",
    "emoji": "🦊.jpg".encode(),
    "decomposed": "e\u0301.jpg".encode(),
    "delete": b"a\x7fb.jpg",
    "braces": b"{0}{x}$HOME`id`.jpg",
}


def _names() -> Collection:
    made = Collection("file names")

    def place(box: Box, name: bytes) -> bytes:
        (box / "in").mkdir(exist_ok=True)
        path = os.path.join(os.fsencode(box / "in"), name)
        with open(path, "wb") as file:
            file.write(box.kit.one_photo.read_bytes())
        return b"in/" + name

    def case(kind: str, name: bytes, command: str) -> None:
        def work(box: Box) -> None:
            box.get("tasks" if command == "predict --overlay" else "run")
            photo = place(box, name)
            if command == "predict":
                said = box.run("predict", "run", photo)
                box.expect(len(said.out.splitlines()) == 1, "one image, more than one line")
            elif command == "predict --json":
                found = box.run("predict", "run", photo, "--json").json()
                box.expect(len(found) == 1 and found[0].get("labels"), "not one answer")
            elif command == "predict --csv":
                box.run("predict", "run", photo, "--csv", "out.csv", writes=["out.csv"])
                _one_row(box, box / "out.csv")
            elif command == "predict --label-studio":
                box.run("predict", "run", photo, "--label-studio", "out.json", writes=["out.json", "label_config.xml"])
                box.expect(len(box.json_file("out.json")) == 1, "not one task")
            elif command == "explain":
                box.run("explain", "run", photo, "--label", "red", "--json", writes=["explanations/**"]).json()
            elif command == "predict --overlay":
                words = ["predict", "tasks", photo, "--task", "objects", "--overlay", "seen"]
                box.run(*words, writes=["seen/**"])
            elif command == "a folder":
                box.run("predict", "run", "in", "--json").json()
            elif command == "broken":
                with open(os.path.join(os.fsencode(box.path), photo), "wb") as file:
                    file.write(b"broken")
                box.run("predict", "run", photo, codes=[1])
            elif command == "--out":
                box.run(
                    "explain", "run", photo, "--out", b"out-" + name[:200], codes=[0, 2], writes=["out-*", "out-*/**"]
                )

        made.add(f"{kind}: {command}", work)

    always = ("predict", "predict --csv", "predict --label-studio")
    others = ("predict --json", "explain", "predict --overlay", "a folder", "broken", "--out")
    worst = ("a newline", "an escape sequence", "C1 characters", "no UTF-8", "255 bytes")
    for number, (kind, name) in enumerate(NAMES.items()):
        chosen = others if kind in worst else (others[number % 6], others[(number + 3) % 6])
        for command in (*always, *chosen):
            case(kind, name, command)

    def data(kind: str, name: bytes, command: str) -> None:
        def work(box: Box) -> None:
            for label in ("red", "blue"):
                folder = os.path.join(os.fsencode(box.path), b"photos", label.encode())
                os.makedirs(folder)
                for number in range(6):
                    source = box.kit.photos / "images" / f"photo{number + 6 * (label == 'red'):03d}.jpg"
                    with open(os.path.join(folder, b"%d.jpg" % number), "wb") as file:
                        file.write(source.read_bytes())
            os.rename(
                os.path.join(os.fsencode(box.path), b"photos/red/0.jpg"),
                os.path.join(os.fsencode(box.path), b"photos/red/" + name),
            )
            words: list[str] = {
                "data check": ["data", "check", "photos", "--json", "check.json", "--html", "check.html"],
                "data split": ["data", "split", "photos", "--out", "parts.csv"],
                "data convert": ["data", "convert", "photos", "out.csv", "--to", "csv"],
                "train": ["train", "photos", *QUICK, "--kind", "single_label", "--out", "new"],
            }[command]
            box.run(
                *words,
                codes=[0, 1, 2] if command == "data check" else [0, 2],
                writes=["check.*", "parts.csv", "out.csv", "new/**"],
            )
            if (box / "check.json").exists():
                box.json_file("check.json")

        made.add(f"{kind} in the data: {command}", work)

    for kind in (
        "a newline",
        "an escape sequence",
        "C1 characters",
        "no UTF-8",
        "a formula",
        "markup",
        "right to left",
    ):
        for command in ("data check", "data split", "data convert", "train"):
            data(kind, NAMES[kind], command)
    return made


def _one_row(box: Box, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    rows = list(csv.reader(io.StringIO(text)))
    box.expect(
        len(rows) == 2 and len(rows[1]) == len(rows[0]), f"{len(rows)} rows in the CSV for a header and an image"
    )
    box.expect(rows[1][0][:1] not in ("=", "+", "@", "-", "\t", "\r"), "a cell that a spreadsheet would compute")
    box.expect(not RAW.search(rows[1][1]), "a control character in the labels")

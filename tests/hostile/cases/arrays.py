"""What a program hands to the Python API as an image: right scores, or an error; never labels for nothing."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hostile.box import Box
from hostile.case import Collection
from PIL import Image

REFUSED = "refused"
CLOSE = 0.02  # scores of the same picture in another type


def groups() -> Iterator[Collection]:
    yield _types()
    yield _shapes()
    yield _one_or_many()


def _predictor(several: bool) -> Any:
    import manylabel as ml

    if not several:
        return ml.Predictor.load("run").predict
    loaded = ml.Predictor.load("tasks")
    return lambda images: loaded.predict(images, "labels")


def ask(images: Callable[[], Any], several: bool = False) -> Any:
    """In a process of its own: the scores of each image by label, the word `refused`, or {"error": …}."""
    import manylabel as ml

    predict = _predictor(several)
    try:
        answers = predict(images())
    except (ml.ManylabelError, TypeError, ValueError, OSError) as error:
        return REFUSED if str(error) else "refused without a reason"
    answers = answers if isinstance(answers, list) else [answers]
    return [
        {"error": one.error} if one.error else {label.label: label.score for label in one.labels} for one in answers
    ]


def _pixels() -> np.ndarray:
    return np.asarray(Image.open("photo.jpg").convert("RGB"))


def _grey() -> np.ndarray:
    return np.stack([np.asarray(Image.open("photo.jpg").convert("L"))] * 3, axis=-1)


def _prepare(box: Box, several: bool) -> None:
    box.get("seeing-tasks" if several else "seeing", "tasks" if several else "run")
    box.get("photo.jpg")


def _distance(one: dict[str, float], other: dict[str, float]) -> float:
    return max(abs(one[label] - other[label]) for label in one)


def _refused(found: Any) -> bool:
    return found == REFUSED or (isinstance(found, list) and len(found) == 1 and bool(found[0].get("error")))


def _types() -> Collection:
    """The same picture in every type of number: the scores of the picture, or a refusal."""
    made = Collection("arrays of every type")
    scales: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "0…255": lambda p: p,
        "0…1": lambda p: p / 255,
        "0…65535": lambda p: p.astype(np.int64) * 257,
        "-1…1": lambda p: p / 127.5 - 1,
        "a little beyond 0…1": lambda p: np.where(p == p.max(), 1.01, p / 255) - 0.01 * (p == 0),
        "a little beyond 0…255": lambda p: np.where(p == p.max(), 258.0, p),
        "0…300": lambda p: np.where(p == p.max(), 300, p.astype(np.int64)),
        "0…4095": lambda p: p.astype(np.int64) * 16,
        "0 or 1": lambda p: p > 127,
    }
    plans = [(name, "0…255") for name in ("uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64")]
    plans += [(name, scale) for name in ("float16", "float32", "float64") for scale in ("0…255", "0…1", "-1…1")]
    plans += [(name, "0…65535") for name in ("uint16", "int32", "uint32")]
    plans += [(name, f"a little beyond {one}") for name in ("float16", "float32") for one in ("0…1", "0…255")]
    plans += [(name, "0…300") for name in ("int16", "uint16", "int32", "int64", "float32")]
    plans += [(name, "0…4095") for name in ("uint16", "int32")]
    plans += [(name, "0 or 1") for name in ("int16", "uint16", "int32", "int64")]
    plans += [
        ("bool", "0…1"),
        ("complex64", "0…1"),
        ("object", "0…255"),
        (">u2", "0…255"),
        (">i4", "0…255"),
        ("U3", "0…255"),
    ]

    def case(name: str, convert: Callable[[], Any], several: bool, plain: Callable[[], np.ndarray] = _pixels) -> None:
        """`plain`: what the picture is in 8 bits of red, green and blue."""

        def work(box: Box) -> None:
            _prepare(box, several)
            right = box.python(lambda: ask(lambda: [plain()], several))[0]
            black = box.python(lambda: ask(lambda: [np.zeros((72, 96, 3), np.uint8)], several))[0]
            box.expect(
                _distance(right, black) > 2 * CLOSE,
                "the case shows nothing: a black picture has the scores of the picture",
            )
            found = box.python(lambda: ask(convert, several))
            if _refused(found):
                return
            box.expect(len(found) == 1, f"{len(found)} answers for one picture")
            near = _distance(found[0], right)
            box.expect(near < CLOSE, f"other scores than the picture's ({near:.4f})")

        made.add(f"{name}{' (tasks)' * several}", work)

    for kind, scale in plans:
        for several in (False, True):
            plain = _pixels if kind != "bool" else lambda: (_pixels() > 0).astype(np.uint8) * 255
            case(f"{kind} {scale}", lambda k=kind, s=scale: scales[s](_pixels()).astype(k), several, plain)
    for kind in ("uint8", "uint16", "int32", "float32"):
        case(
            f"grey {kind} 0…255",
            lambda k=kind: np.asarray(Image.open("photo.jpg").convert("L")).astype(k),
            False,
            _grey,
        )
        case(
            f"grey with one channel {kind}",
            lambda k=kind: np.asarray(Image.open("photo.jpg").convert("L")).astype(k)[..., None],
            False,
            _grey,
        )
    for mode in ("L", "LA", "P", "RGBA", "CMYK", "YCbCr", "LAB", "HSV", "I", "F", "I;16", "1", "RGBX", "La", "RGBa"):

        def picture(mode: str = mode) -> Any:
            image = Image.open("photo.jpg").convert("RGB")
            if mode in ("I", "F", "I;16"):
                return Image.fromarray(
                    np.asarray(image.convert("L")).astype({"I": "i4", "F": "f4", "I;16": "u2"}[mode])
                )
            if mode in ("La", "RGBa"):
                return image.convert("LA" if mode == "La" else "RGBA").convert(mode)
            return image.convert(mode)

        plain = _grey if mode in ("L", "LA", "La", "I", "F", "I;16") else _pixels
        if mode in ("P", "1"):  # fewer colours are another picture
            plain = lambda mode=mode: np.asarray(Image.open("photo.jpg").convert("RGB").convert(mode).convert("RGB"))  # noqa: E731
        case(f"a picture of mode {mode}", picture, False, plain)
        if mode in ("I", "F", "I;16", "RGBA", "CMYK"):
            case(f"a picture of mode {mode}", picture, True, plain)
    # where numbers are no colours at all, nothing can be said
    for name, value in {"NaN": np.nan, "infinity": np.inf, "-5": -5.0, "1e30": 1e30}.items():
        for several in (False, True):

            def senseless(box: Box, value: float = value, several: bool = several) -> None:
                _prepare(box, several)
                found = box.python(lambda: ask(lambda: np.full((40, 40, 3), value, np.float32), several))
                box.expect(_refused(found), f"labels for a picture of {value}")

            made.add(f"a picture of {name}{' (tasks)' * several}", senseless)
    return made


def _shapes() -> Collection:
    made = Collection("crops and shapes")
    refused: dict[str, tuple[int, ...]] = {
        "no rows": (0, 40, 3),
        "no columns": (40, 0, 3),
        "nothing": (0, 0, 3),
        "no channels": (40, 40, 0),
        "empty": (0,),
        "a scalar": (),
        "one dimension": (1200,),
        "five channels": (40, 40, 5),
        "five dimensions": (1, 1, 40, 40, 3),
        "channels first": (3, 40, 40),
        "grey without rows": (0, 40),
    }
    for name, shape in refused.items():
        for several in (False, True):

            def empty(box: Box, shape: tuple[int, ...] = shape, several: bool = several) -> None:
                _prepare(box, several)
                found = box.python(lambda: ask(lambda: np.full(shape, 128, np.uint8), several))
                box.expect(_refused(found), f"labels for an array of shape {shape}")

            made.add(f"an array of {name}{' (tasks)' * several}", empty)

            def among(box: Box, shape: tuple[int, ...] = shape, several: bool = several) -> None:
                _prepare(box, several)
                found = box.python(lambda: ask(lambda: [_pixels(), np.full(shape, 128, np.uint8), _pixels()], several))
                if found == REFUSED:
                    return
                box.expect(len(found) == 3, f"{len(found)} answers for three pictures")
                box.expect(bool(found[1].get("error")), f"labels for an array of shape {shape}")
                box.expect(not found[0].get("error") and found[0] == found[2], "the others' answers differ")

            made.add(f"an array of {name} among others{' (tasks)' * several}", among)
    for several in (False, True):

        def with_alpha(box: Box, several: bool = several) -> None:
            """Grey and alpha: white shows through."""
            _prepare(box, several)
            grey, alpha = np.meshgrid(np.arange(0, 240, 6, np.uint8), np.arange(0, 240, 6, np.uint8))
            seen = np.rint(grey * (alpha / 255.0) + 255 - alpha.astype(float)).astype(np.uint8)
            right = box.python(lambda: ask(lambda: [np.stack([seen] * 3, -1)], several))[0]
            other = box.python(lambda: ask(lambda: [np.stack([grey] * 3, -1)], several))[0]
            box.expect(_distance(right, other) > 2 * CLOSE, "the case shows nothing: white is not seen")
            found = box.python(lambda: ask(lambda: [np.stack([grey, alpha], -1)], several))[0]
            box.expect(_distance(right, found) < CLOSE, f"other scores than on white ({_distance(right, found):.4f})")

        def batch(box: Box, several: bool = several) -> None:
            """Four dimensions: several images, each with an answer of its own."""
            _prepare(box, several)
            found = box.python(lambda: ask(lambda: np.stack([_pixels(), _pixels()[::-1]]), several))
            right = box.python(lambda: ask(lambda: [_pixels(), np.ascontiguousarray(_pixels()[::-1])], several))
            box.expect(
                _distance(right[0], right[1]) > CLOSE / 4, "the case shows nothing: two images with the same scores"
            )
            box.expect(found == right, "not the scores of the two images")
            among = box.python(lambda: ask(lambda: [_pixels(), np.stack([_pixels()] * 2)], several))
            box.expect(_distance(found[0], among[0]) < CLOSE / 10, "the other image of the list has other scores")
            box.expect(among[1].get("error"), "several images are taken for one of a list")

        def of_none(box: Box, several: bool = several) -> None:
            _prepare(box, several)
            found = box.python(lambda: ask(lambda: np.zeros((0, 40, 40, 3), np.uint8), several))
            box.expect(found in ([], REFUSED), f"answers for a batch without images: {found}")

        made.add(f"an array of grey and alpha{' (tasks)' * several}", with_alpha)
        made.add(f"an array of a batch{' (tasks)' * several}", batch)
        made.add(f"an array of a batch of none{' (tasks)' * several}", of_none)
    crops: dict[str, tuple[int, int, int, int]] = {
        "without pixels": (10, 10, 10, 10),
        "without width": (10, 10, 10, 40),
        "without height": (10, 10, 40, 10),
    }
    for name, place in crops.items():
        for several in (False, True):

            def crop(box: Box, place: tuple[int, int, int, int] = place, several: bool = several) -> None:
                _prepare(box, several)
                found = box.python(lambda: ask(lambda: Image.open("photo.jpg").crop(place), several))
                box.expect(_refused(found), "labels for a crop without pixels")

            made.add(f"a crop {name}{' (tasks)' * several}", crop)
    for side in (1, 2, 3, 7):
        for several in (False, True):

            def small(box: Box, side: int = side, several: bool = several) -> None:
                _prepare(box, several)
                found = box.python(lambda: ask(lambda: np.full((side, side, 3), 90, np.uint8), several))
                box.expect(len(found) == 1, "not one answer")

            made.add(f"{side} × {side} pixels{' (tasks)' * several}", small)
    for name, make in {
        "a view backwards": lambda: _pixels()[:, ::-1],
        "a view with steps": lambda: _pixels()[::2, ::2],
        "columns first in memory": lambda: np.asfortranarray(_pixels()),
        "read-only": lambda: _read_only(_pixels()),
        "a masked array": lambda: np.ma.masked_array(_pixels(), mask=False),
        "a matrix": lambda: np.asmatrix(_pixels()[..., 0]),
        "a memory map": lambda: _mapped(_pixels()),
    }.items():

        def view(box: Box, make: Callable[[], Any] = make) -> None:
            _prepare(box, False)
            right = box.python(lambda: ask(lambda: [np.ascontiguousarray(np.asarray(make()))]), writes=["map.bin"])
            found = box.python(lambda: ask(make), writes=["map.bin"])
            box.expect(found in (right, REFUSED), "other scores than the same numbers in order")

        made.add(name, view)
    return made


def _read_only(pixels: np.ndarray) -> np.ndarray:
    pixels = pixels.copy()
    pixels.setflags(write=False)
    return pixels


def _mapped(pixels: np.ndarray) -> np.ndarray:
    made = np.memmap("map.bin", np.uint8, "w+", shape=pixels.shape)
    made[:] = pixels
    return made


def _one_or_many() -> Collection:
    """One image: an answer or an exception. Several: an answer for each, with an error where there is one."""
    made = Collection("one image or many")

    def one(
        name: str, make: Callable[[], Any], expected: str, several: bool, needs: Callable[[Box], Any] | None = None
    ) -> None:
        def work(box: Box) -> None:
            _prepare(box, several)
            if needs is not None:
                needs(box)
            right = box.python(lambda: ask(lambda: ["photo.jpg"], several))
            found = box.python(lambda: ask(make, several))
            if expected == "exception":
                box.expect(found == REFUSED, f"no exception: {str(found)[:200]}")
            elif expected == "right or exception":
                box.expect(
                    found in (right, REFUSED), f"neither the photo's labels nor an exception: {str(found)[:200]}"
                )
            elif expected == "right":
                box.expect(found == right, f"not the photo's labels: {str(found)[:200]}")
            else:
                box.expect(isinstance(found, list), f"no answers: {found}")
                kinds = ["error" if answer.get("error") else "labels" for answer in found]
                box.expect(" ".join(kinds) == expected, f"{kinds}, not {expected}")

        made.add(f"{name}{' (tasks)' * several}", work)

    def tensor() -> Any:
        import torch

        return torch.from_numpy(_pixels().copy())

    plans: dict[str, tuple[Callable[[], Any], str]] = {
        "a path": (lambda: Path("photo.jpg"), "right"),
        "text": (lambda: "photo.jpg", "right"),
        "bytes": (lambda: Path("photo.jpg").read_bytes(), "right"),
        "an open file": (lambda: open("photo.jpg", "rb"), "right"),  # noqa: SIM115
        "a file in memory": (lambda: io.BytesIO(Path("photo.jpg").read_bytes()), "right"),
        "a bytearray": (lambda: bytearray(Path("photo.jpg").read_bytes()), "right or exception"),
        "a memoryview": (lambda: memoryview(Path("photo.jpg").read_bytes()), "right or exception"),
        "a list of a bytearray": (lambda: [bytearray(Path("photo.jpg").read_bytes())], "labels"),
        "a tensor [H, W, 3]": (tensor, "exception"),
        "a tensor [3, H, W]": (lambda: tensor().permute(2, 0, 1), "right or exception"),
        "a tensor of floats": (lambda: tensor().permute(2, 0, 1).float() / 255, "right or exception"),
        "a tensor of a batch": (lambda: tensor().permute(2, 0, 1)[None], "right or exception"),
        "a generator": (lambda: (name for name in ["photo.jpg"]), "right"),
        "a tuple": (lambda: ("photo.jpg", "photo.jpg"), "labels labels"),
        "a set": (lambda: {"photo.jpg"}, "right or exception"),
        "nothing in a list": (list, ""),
        "a missing file": (lambda: "missing.jpg", "exception"),
        "a missing path": (lambda: Path("missing.jpg"), "exception"),
        "a folder": (lambda: "run", "exception"),
        "an empty text": (lambda: "", "exception"),
        "a text with NUL": (lambda: "a\0b.jpg", "exception"),
        "an address": (lambda: "https://example.org/a.jpg", "exception"),
        "a file of text": (lambda: "notes.txt", "exception"),
        "an empty file": (lambda: "empty.jpg", "exception"),
        "a broken photo": (lambda: "broken.jpg", "exception"),
        "no bytes": (lambda: b"", "exception"),
        "bytes of noise": (lambda: b"\1\2\3" * 50, "exception"),
        "None": (lambda: None, "exception"),
        "a number": (lambda: 7, "exception"),
        "a mapping": (lambda: {"image": "photo.jpg"}, "exception"),
        "an object": (object, "exception"),
        "a type": (lambda: np.ndarray, "exception"),
        "a list with a missing file": (lambda: ["photo.jpg", "missing.jpg"], "labels error"),
        "a list of one missing file": (lambda: ["missing.jpg"], "error"),
        "a list with a folder": (lambda: ["run", "photo.jpg"], "error labels"),
        "a list with None": (lambda: ["photo.jpg", None], "labels error"),
        "a list with a number": (lambda: ["photo.jpg", 5], "labels error"),
        "a list with a broken photo": (lambda: ["broken.jpg", "photo.jpg"], "error labels"),
        "a list with an array of nothing": (lambda: ["photo.jpg", np.zeros((0, 0, 3), np.uint8)], "labels error"),
        "a file that was closed": (lambda: _closed(), "exception"),
        "a file opened for text": (lambda: open("notes.txt"), "exception"),  # noqa: SIM115
        "a pipe": (lambda: "pipe.jpg", "exception"),
        "a device without end": (lambda: "/dev/zero", "exception"),
        "a device": (lambda: "/dev/null", "exception"),
        "a link in a circle": (lambda: "circle.jpg", "exception"),
    }

    def files(box: Box) -> None:
        box.write("notes.txt", "no image\n")
        box.write("empty.jpg", b"")
        box.write("broken.jpg", (box / "photo.jpg").read_bytes()[:300])
        os.mkfifo(box / "pipe.jpg")
        os.symlink("circle.jpg", box / "circle.jpg")

    for name, (make, expected) in plans.items():
        for several in (False, True):
            one(name, make, expected, several, files)

    for size in (0, -1, 1.5, "8", None, float("nan"), True, 10**12):

        def batch(box: Box, size: Any = size) -> None:
            _prepare(box, False)

            def work() -> Any:
                import manylabel as ml

                try:
                    predictor = ml.Predictor(ml.load_bundle("run"), batch_size=size)
                    return [len(one.labels) for one in predictor.predict(["photo.jpg"])]
                except (ml.ManylabelError, TypeError, ValueError):
                    return REFUSED

            found = box.python(work)
            fine = (REFUSED,) if not (size is True or size == 10**12) else (REFUSED, [4])
            box.expect(found in fine, f"answers with batch_size={size}: {found}")

        made.add(f"batch_size={size}", batch)

    def call(name: str, work: Callable[[Any], Any]) -> None:
        def case(box: Box) -> None:
            _prepare(box, False)
            box.get("tasks")

            def attempt() -> Any:
                import manylabel as ml

                try:
                    work(ml)
                except (ml.ManylabelError, TypeError, ValueError):
                    return REFUSED
                return "taken"

            box.expect(box.python(attempt) == REFUSED, "it was taken")

        made.add(name, case)

    call("Predictor.load of a missing folder", lambda ml: ml.Predictor.load("missing"))
    call("Predictor.load of None", lambda ml: ml.Predictor.load(None))
    call("Predictor.load of a photo", lambda ml: ml.Predictor.load("photo.jpg"))
    call("an unknown task of one task", lambda ml: ml.Predictor.load("run").predict("photo.jpg", "lables"))
    call("the labels of several tasks", lambda ml: ml.Predictor.load("tasks").labels)
    call("an unknown task", lambda ml: ml.Predictor.load("tasks").predict("photo.jpg", "lables"))
    call(
        "a score of NaN",
        lambda ml: ml.Predictor.load("tasks").predict("photo.jpg", "objects", float("nan")),
    )
    call("a score of 2", lambda ml: ml.Predictor.load("tasks").predict("photo.jpg", "objects", 2.0))
    call("load_data of None", lambda ml: ml.load_data(None))
    call("load_data of a photo", lambda ml: ml.load_data("photo.jpg"))
    call("train on nothing", lambda ml: ml.train(out="new"))
    call("train on None", lambda ml: ml.train(None, out="new"))
    call("train with an unknown section", lambda ml: ml.train("photo.jpg", out="new", haed="linear"))
    call("evaluate of nothing", lambda ml: ml.evaluate("missing"))
    call("other labels of a model that knows no words", lambda ml: ml.Predictor.load("run").for_labels(["cat"]))
    return made


def _closed() -> Any:
    file = open("photo.jpg", "rb")  # noqa: SIM115
    file.close()
    return file

"""Bytes to pixels, and nowhere else: an upright RGB image, or a DecodeError that says why not.

Pixels as stored: colour profiles are not applied, CMYK is converted by formula. Transparent parts become white.
Of an animation or a multi-page file the first picture is read.
Grey values of more than 8 bits are scaled, never clipped: see `_eight_bit`.
"""

from __future__ import annotations

import io
import math
import os
import re
import stat
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import numpy as np
from PIL import ExifTags, Image, ImageFile, JpegImagePlugin

from manylabel.error import DecodeError

Source = str | os.PathLike[str] | bytes | BinaryIO

FORMATS = {  # what we read, and how it is called in a sentence; none of these starts another program
    "JPEG": "JPEG",
    "PNG": "PNG",
    "WEBP": "WebP",
    "GIF": "GIF",
    "BMP": "BMP",
    "TIFF": "TIFF",
    "PPM": "PPM",
    "JPEG2000": "JPEG 2000",
    "AVIF": "AVIF",
}
NOT_IMAGES = (  # how files begin that are often found where an image was expected
    (rb"(\xef\xbb\xbf)?\s*<(!doctype html|html|head|body|!--)", "it starts like an HTML page"),
    (rb"(\xef\xbb\xbf)?\s*<(\?xml|svg)", "it starts like SVG or XML"),
    (rb"\s*[{\[]", "it starts like JSON"),
    (rb"version https://git-lfs", "it is a Git LFS pointer; run git lfs pull"),
    (rb"%PDF", "it is a PDF"),
    (rb"%!PS", "it is PostScript"),
    (rb"PK\x03\x04", "it is a ZIP archive"),
    (rb"\x1f\x8b", "it is compressed with gzip"),
    (rb"....ftyp(hei|hev)", "it is HEIC; convert it to JPEG"),
    (rb"....ftyp", "it starts like a video"),
    (rb"\x00+$", "it starts with zeros"),
)
PYTHON_DECODERS = {"ppm", "ppm_plain", "bmp_rle"}  # Pillow decodes these in Python, at about 2 s a megapixel
HEADER_READS = 100_000  # Pillow seeks a header byte by byte; more than this is a large damaged file, not a header
LARGEST_FILE = 1 << 30  # bytes of an image
MOST_SCANS = 100  # a progressive JPEG has about ten; each costs a pass over the image but takes only a few bytes
WHITES = (1.0, 255.0, 65535.0)
OVERSHOOT = 1 / 8  # of the lightest pixel, by which sharp filters go beyond black and white
DARKEST = 1 / 16  # of white, which the lightest pixel reaches
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class _Jpeg(JpegImagePlugin.JpegImageFile):
    """A JPEG's first picture and no more: Pillow's own way fails when EXIF or the index of an MPO is damaged."""

    def _read_dpi_from_exif(self) -> None:
        pass


Image.init()  # once, here: otherwise Pillow loads its readers at the first image, perhaps in several threads
READERS = {name: Image.OPEN[name] for name in FORMATS if name in Image.OPEN}
READERS["JPEG"] = (_Jpeg, READERS["JPEG"][1])


class TooLarge(DecodeError):
    """An image, but more of it than we want to read."""


@dataclass(frozen=True)
class ImageFacts:
    """What the header says; width and height are those of the upright image."""

    width: int
    height: int
    format: str
    mode: str


def decode(source: Source, *, at_least: int | None = None, max_megapixels: float = 50.0) -> Image.Image:
    """An upright RGB image from a path, bytes or a binary stream (read from its start, left open).

    With `at_least`, a JPEG may come 2, 4 or 8 times smaller, but its short side is never made smaller than that.
    """
    with _opened(source, max_megapixels) as image:
        turn = TURNS.get(_orientation(image))  # before loading, which may lose it
        if image.format == "JPEG":
            _refuse_many_scans(image)
            if at_least:
                image.draft(None, (at_least, at_least))
        if image.format == "PNG":
            _check_png(image)
        image.load()
        rgb = to_rgb(image)
        if turn is not None:
            rgb = rgb.transpose(turn)
        rgb.info.clear()  # an orientation left behind would be applied twice by the next reader
        return rgb


def describe(source: Source, *, max_megapixels: float = 50.0) -> ImageFacts:
    """Size and kind of an image, without decoding its pixels; refuses what decode refuses by its header."""
    with _opened(source, max_megapixels) as image:
        width, height = image.size[::-1] if _orientation(image) >= 5 else image.size
        return ImageFacts(width, height, image.format or "", image.mode)


def decode_indices(source: Source, *, max_megapixels: float = 50.0) -> np.ndarray:
    """The stored values of an image of labels (palette or grey), not its colours: [height, width] uint8."""
    with _opened(source, max_megapixels) as image:
        if image.mode not in ("P", "L", "1"):
            raise DecodeError(f"an image of labels has one 8-bit channel; this one is {image.mode}")
        if image.format == "PNG":
            _check_png(image)
        image.load()
        return np.array(image, np.uint8)


@contextmanager
def _opened(source: Source, limit: float) -> Iterator[ImageFile.ImageFile]:
    """The image with its header read; every failure, also in the caller's block, leaves as a DecodeError."""
    name = None
    try:
        with _stream(source) as stream:
            name = _format_of(stream.read(64))
            yield _open_as(name, stream, limit)
    except DecodeError:
        raise
    except Exception as error:  # whatever a hostile file provokes, MemoryError included
        raise DecodeError(_reason(error, FORMATS[name] if name else "file", limit)) from error


def check_file_size(size: int) -> None:
    """50 megapixels need less, however they are stored."""
    if size > LARGEST_FILE:
        raise DecodeError(f"a file of {size / 1e9:.1f} GB, over the limit of {LARGEST_FILE / 1e9:.1f} GB")


@contextmanager
def _stream(source: Source) -> Iterator[BinaryIO]:
    if isinstance(source, (bytes, bytearray, memoryview)):
        yield io.BytesIO(source)
    elif isinstance(source, (str, os.PathLike)):
        facts = os.stat(source)
        if stat.S_ISDIR(facts.st_mode):
            raise DecodeError("is a folder")
        if not stat.S_ISREG(facts.st_mode):  # opening a pipe would wait for ever
            raise DecodeError("not a regular file")
        check_file_size(facts.st_size)
        with open(source, "rb") as file:
            yield file
    else:
        stream = source if source.seekable() else io.BytesIO(source.read())
        stream.seek(0)
        yield stream


def _format_of(head: bytes) -> str:
    """The format these first bytes announce; the file's name plays no part."""
    if not head:
        raise DecodeError("empty file (0 bytes)")
    for name, (_, accept) in READERS.items():
        answer = accept(head[:16]) if accept else False
        if isinstance(answer, str):
            raise DecodeError(f"{FORMATS[name]} image, which the installed Pillow was built without")
        if answer:
            return name
    for start, meaning in NOT_IMAGES:
        if re.match(start, head, re.IGNORECASE | re.DOTALL):
            raise DecodeError(f"not an image ({meaning})")
    raise DecodeError("not an image of a format that can be read")


class _Patience:
    """A stream that ends the search for a header after HEADER_READS reads."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.left: float = HEADER_READS

    def read(self, size: int = -1) -> bytes:
        self.left -= 1
        if self.left < 0:
            raise DecodeError("damaged file (no end of the image header found)")
        return self.stream.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _open_as(name: str, stream: BinaryIO, limit: float) -> ImageFile.ImageFile:
    """What Image.open does, without its own size check: that one warns, and cannot be silenced for one thread only."""
    patient = _Patience(stream)
    file = cast(BinaryIO, patient)
    file.seek(0)
    if name == "GIF":  # Pillow would allocate a frame while it reads the header
        _refuse_large(_gif_size(file), limit)
        file.seek(0)
    image = READERS[name][0](file, "")
    _refuse_large(image.size, limit)
    if name == "TIFF":  # tiles are decoded whole, also when they are larger than the image
        tags = image.tag_v2  # type: ignore[attr-defined]
        _refuse_large((int(tags.get(322, 1)), int(tags.get(323, 1))), limit)
    slow = PYTHON_DECODERS.intersection(tile[0] for tile in image.tile)
    if slow and math.prod(image.size) > 1e6:
        raise TooLarge(f"{FORMATS[name]} of a kind that is too slow to read above 1 megapixel; convert it to PNG")
    patient.left = math.inf
    return image


def _refuse_large(size: tuple[int, int], limit: float) -> None:
    megapixels = math.prod(size) / 1e6
    if megapixels > limit:
        raise TooLarge(f"{megapixels:.1f} megapixels, over the limit of {limit:g}")


def _gif_size(file: BinaryIO) -> tuple[int, int]:
    """The canvas, or the first frame where that reaches beyond it."""
    width, height, flags = struct.unpack("<6xHHB2x", file.read(13))
    file.seek(3 << (flags & 7) + 1 if flags & 128 else 0, os.SEEK_CUR)
    while (kind := file.read(1)) != b",":
        if kind in (b"", b";"):
            raise EOFError
        if kind == b"!":  # an extension: its label, then blocks up to an empty one
            file.read(1)
            while length := int.from_bytes(file.read(1)):
                file.seek(length, os.SEEK_CUR)
    left, top, across, down = struct.unpack("<4H", file.read(8))
    return max(width, left + across), max(height, top + down)


def _refuse_many_scans(image: ImageFile.ImageFile) -> None:
    """A JPEG of 200 kB can ask for thousands of passes over 50 megapixels."""
    file = cast(BinaryIO, image.fp)
    position = file.tell()  # behind the header of the first scan
    file.seek(0)
    data = file.read()
    file.seek(position)
    if data.count(b"\xff\xda") <= MOST_SCANS:  # nearly always; the rest may be a video behind the image
        return
    scans = 1
    marker = re.compile(rb"\xff[\xc0-\xcf\xd8-\xfe]")  # those that are followed by a length
    while (match := marker.search(data, position)) and match[0] != b"\xff\xd9":
        scans += match[0] == b"\xff\xda"
        position = match.end() + int.from_bytes(data[match.end() : match.end() + 2])
    if scans > MOST_SCANS:
        raise DecodeError(f"JPEG with {scans} scans, over the limit of {MOST_SCANS}")


def _check_png(image: ImageFile.ImageFile) -> None:
    """Pillow does not look at the checksums of the pixel data, and damage there may inflate to other pixels."""
    file = cast(BinaryIO, image.fp)
    position = file.tell()
    file.seek(image.tile[0].offset - 8)
    while True:
        length, kind = struct.unpack(">I4s", file.read(8).ljust(8, b"\0"))
        data = file.read(length + 4) if kind == b"IDAT" else b""
        if len(data) < length + 4:  # no pixel data, or cut off, which the decoder will find out
            break
        if zlib.crc32(kind + data[:-4]) != int.from_bytes(data[-4:]):
            raise DecodeError("damaged PNG (wrong checksum)")
    file.seek(position)


def _orientation(image: Image.Image) -> int:
    """1 to 8 from EXIF or XMP; 1 when it is missing or damaged."""
    if image.format == "TIFF":  # Pillow turns these itself
        return 1
    try:
        # Not image.getexif(): for PNG that decodes the pixels first, in search of EXIF behind them.
        value = Image.Image.getexif(image).get(ExifTags.Base.Orientation)
    except Exception:  # EXIF is a small file of its own and can be damaged in as many ways; the pixels are what counts
        return 1
    return value if isinstance(value, int) and value in TURNS else 1


def upright_rgb(image: Image.Image, grey: Callable[[np.ndarray], np.ndarray] | None = None) -> Image.Image:
    """An image that somebody else opened, as decode() would have given it; `grey`: how wide grey values are scaled."""
    try:
        turn = TURNS.get(_orientation(image))
        rgb = to_rgb(image, grey)
        return rgb if turn is None else rgb.transpose(turn)
    except DecodeError:
        raise
    except Exception as error:  # its pixels may still be in a file
        raise DecodeError(_reason(error, FORMATS.get(image.format or "", "image"), math.inf)) from error


def to_rgb(image: Image.Image, grey: Callable[[np.ndarray], np.ndarray] | None = None) -> Image.Image:
    if image.mode == "F" or image.mode.startswith("I"):
        values = np.asarray(image)  # [H, W]
        eight = _eight_bit(values, image.format == "TIFF" and image.mode == "I") if grey is None else grey(values)
        transparent = image.info.get("transparency")
        if isinstance(transparent, int):
            eight[values == transparent] = 255
        return Image.fromarray(eight).convert("RGB")
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        white = Image.new("RGB", image.size, "white")
        white.paste(rgba, mask=rgba.getchannel("A"))
        return white
    return image.convert("RGB")


def _eight_bit(values: np.ndarray, wide: bool) -> np.ndarray:
    """Grey values of any type as uint8.

    The scale is fixed where the range tells what white is, so that a dark photo stays dark: integers up to 65535 keep
    their high byte, as 16-bit colours do, unless the type is `wide` (32 bits) and none is above 255 (from there to 4095
    nobody can tell which it is); of numbers with a fraction `white_of` tells.
    Any other range, such as a height map, is stretched so that its smallest value is black and its largest white.
    """
    if values.dtype.kind == "f":
        values = np.where(np.isfinite(values), values, 0).astype(np.float64)
    low, high = float(values.min()), float(values.max())
    if values.dtype.kind == "f":
        white = white_of(low, high)
    else:
        unclear = wide and 255 < high < DARKEST * 65535
        white = 65535.0 if low >= 0 and high <= 65535 and not unclear else None
    if white is None:
        values, white = values.astype(np.float64) - low, high - low or 1.0
    if values.dtype.kind == "f":
        return share_of_white(values, white)
    return values.astype(np.uint8) if wide and high <= 255 else high_byte(values)


def high_byte(values: np.ndarray) -> np.ndarray:
    """Integers of 16 bits as those of 8."""
    return (values >> 8).astype(np.uint8)


def white_of(low: float, high: float) -> float | None:
    """What is white where floats go from `low` to `high`: 1, 255 or 65535; None where two of them may be, or none is.

    Sharp filters go a little beyond black and white where they resize. And the lightest pixel is not nearly black: of
    0 … 5 nobody can tell whether it is a dark picture of 0 … 255 or a light one of 0 … 1.
    """
    if low < -OVERSHOOT * high:
        return None
    fits = (white for white in WHITES if high <= white * (1 + OVERSHOOT))
    return next((white for white in fits if white == WHITES[0] or high >= white * DARKEST), None)


def share_of_white(values: np.ndarray, white: float) -> np.ndarray:
    """Numbers 0 … white as 0 … 255; what goes beyond is black or white."""
    return np.rint(np.clip(values.astype(np.float64) * (255.0 / white), 0, 255)).astype(np.uint8)


def _reason(error: Exception, name: str, limit: float) -> str:
    """A few words for a person, without the path: the caller knows it."""
    if isinstance(error, OSError) and error.strerror:
        known = {FileNotFoundError: "file not found", NotADirectoryError: "file not found"}
        return known.get(type(error), error.strerror.lower())
    if isinstance(error, MemoryError):
        return f"{name} that needs more memory than is free"
    if isinstance(error, (Image.DecompressionBombError, Image.DecompressionBombWarning)):
        return f"over the limit of {limit:g} megapixels"
    text = " ".join(str(error).split())
    if isinstance(error, (EOFError, struct.error)) or re.search("truncated|not enough|only got", text, re.IGNORECASE):
        return f"truncated {name}"
    if re.search(r"decoder|data stream|parsing failed|missing dimensions|^\d*$", text, re.IGNORECASE):  # says little
        return f"damaged or truncated {name}"
    return f"damaged {name} ({text[:80]})"

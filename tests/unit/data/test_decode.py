"""decode(): every kind of source and pixel becomes upright RGB, every refusal says why."""

from __future__ import annotations

import io
import os
import re
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, features

from manylabel.data.decode import MOST_SCANS, ImageFacts, decode, describe
from manylabel.error import DecodeError

RED, GREEN, BLUE, YELLOW = (220, 30, 40), (20, 200, 60), (30, 60, 210), (240, 220, 20)
FORMATS = ["JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM", "JPEG2000"]
if features.check("avif"):
    FORMATS.append("AVIF")


def quarters(width: int = 64, height: int = 48) -> Image.Image:
    """Red, green above blue, yellow: shows any turn or mirror."""
    image = Image.new("RGB", (width, height), RED)
    image.paste(GREEN, (width // 2, 0, width, height // 2))
    image.paste(BLUE, (0, height // 2, width // 2, height))
    image.paste(YELLOW, (width // 2, height // 2, width, height))
    return image


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def corners(image: Image.Image) -> list[tuple[int, int, int]]:
    """The four quarters' colours in reading order."""
    width, height = image.size
    places = [(width // 4, height // 4), (3 * width // 4, height // 4)]
    places += [(x, 3 * height // 4) for x, _ in places]
    return [image.getpixel(place) for place in places]  # type: ignore[misc]


def assert_close(found: Any, wanted: Any, tolerance: int = 12) -> None:
    assert np.abs(np.asarray(found, int) - np.asarray(wanted, int)).max() <= tolerance, (found, wanted)


def grey_row(image: Image.Image) -> list[int]:
    pixels = np.asarray(image)  # [1, W, 3]
    assert (pixels[..., 0] == pixels[..., 1]).all()
    assert (pixels[..., 1] == pixels[..., 2]).all()
    return pixels[0, :, 0].tolist()


def png(width: int, height: int, depth: int, colour: int, rows: bytes, *chunks: tuple[bytes, bytes]) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    body = b"".join(chunk(*c) for c in chunks) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + head + body


# ── formats and sources ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_picture(kind: str) -> None:
    data = encoded(quarters(), kind)
    image = decode(data)
    assert (image.mode, image.size) == ("RGB", (64, 48))
    assert_close(corners(image), [RED, GREEN, BLUE, YELLOW])
    facts = describe(data)
    assert (facts.width, facts.height, facts.format) == (64, 48, kind)


class OneWay(io.RawIOBase):
    """A stream that cannot seek, such as a network response."""

    def __init__(self, data: bytes) -> None:
        self.inner = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self.inner.readinto(buffer)


def test_path_bytes_and_streams_give_the_same_pixels(tmp_path: Path) -> None:
    data = encoded(quarters(), "JPEG")
    path = tmp_path / "a.jpg"
    path.write_bytes(data)
    started = io.BytesIO(data)
    started.read(100)  # a stream is read from its start, wherever it stands
    wanted = decode(data).tobytes()
    for source in (path, str(path), bytearray(data), started, io.BufferedReader(OneWay(data))):
        assert decode(source).tobytes() == wanted  # type: ignore[arg-type]
    assert not started.closed


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_no_file_stays_open(tmp_path: Path) -> None:
    kept = []
    before = len(os.listdir("/proc/self/fd"))
    for kind in FORMATS:
        good, bad = tmp_path / f"good.{kind}", tmp_path / f"bad.{kind}"
        good.write_bytes(encoded(quarters(), kind))
        bad.write_bytes(good.read_bytes()[:-60])
        kept.append(decode(good))
        describe(good)
        with pytest.raises(DecodeError):
            decode(bad)
    assert len(os.listdir("/proc/self/fd")) == before
    assert all(image.getpixel((0, 0)) for image in kept)  # pixels are there without the file


def test_the_content_decides_not_the_extension(tmp_path: Path) -> None:
    path = tmp_path / "photo.eps"
    path.write_bytes(encoded(quarters(), "WEBP"))
    assert describe(path).format == "WEBP"
    assert_close(corners(decode(path)), [RED, GREEN, BLUE, YELLOW])


def test_many_threads_at_once() -> None:
    files = [encoded(quarters(), kind) for kind in FORMATS] * 4
    wanted = [decode(data).tobytes() for data in files]
    with ThreadPoolExecutor(8) as pool:
        assert [image.tobytes() for image in pool.map(decode, files)] == wanted


# ── orientation ────────────────────────────────────────────────────────────────────────────────────────────────────

UPRIGHT = {  # what the four quarters become when a viewer honours each orientation
    1: [RED, GREEN, BLUE, YELLOW],
    2: [GREEN, RED, YELLOW, BLUE],
    3: [YELLOW, BLUE, GREEN, RED],
    4: [BLUE, YELLOW, RED, GREEN],
    5: [RED, BLUE, GREEN, YELLOW],
    6: [BLUE, RED, YELLOW, GREEN],
    7: [YELLOW, GREEN, BLUE, RED],
    8: [GREEN, YELLOW, RED, BLUE],
}


@pytest.mark.parametrize("orientation", UPRIGHT)
@pytest.mark.parametrize("kind", [k for k in FORMATS if k in ("JPEG", "PNG", "WEBP", "TIFF", "AVIF")])
def test_exif_orientation(kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(quarters(), kind, exif=exif)
    image = decode(data)
    assert_close(corners(image), UPRIGHT[orientation])
    assert image.size == ((48, 64) if orientation >= 5 else (64, 48))
    facts = describe(data)
    assert (facts.width, facts.height) == image.size
    assert not image.info  # nothing left that would turn it again
    assert not image.getexif()


@pytest.mark.parametrize("value", [0, 9, 65535])
def test_an_orientation_that_does_not_exist_is_ignored(value: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = value
    assert_close(corners(decode(encoded(quarters(), "JPEG", exif=exif))), UPRIGHT[1])


def test_describe_does_not_read_the_pixels_of_a_png() -> None:
    data = encoded(quarters(), "PNG")
    assert describe(data[: data.index(b"IDAT") + 8]) == ImageFacts(64, 48, "PNG", "RGB")


# ── pixels ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP", "JPEG2000"])
def test_transparency_becomes_white(kind: str) -> None:
    image = Image.new("RGBA", (16, 16), (255, 0, 0, 0))
    image.paste((0, 0, 255, 255), (8, 0, 16, 16))
    options = {"lossless": True} if kind == "WEBP" else {}
    result = decode(encoded(image, kind, **options))
    assert result.getpixel((2, 2)) == (255, 255, 255)
    assert result.getpixel((12, 2)) == (0, 0, 255)


def test_half_transparent_is_mixed_with_white() -> None:
    for mode, colour, wanted in (("RGBA", (255, 0, 0, 128), (255, 127, 127)), ("LA", (0, 128), (127, 127, 127))):
        assert_close(decode(encoded(Image.new(mode, (4, 4), colour), "PNG")).getpixel((1, 1)), wanted, 1)


def test_palette_with_transparency() -> None:
    palette = (b"PLTE", bytes([255, 0, 0, 0, 255, 0, 0, 0, 255]))
    data = png(3, 1, 8, 3, b"\0\0\1\2", palette, (b"tRNS", bytes([0, 128])))
    row = np.asarray(decode(data))[0]
    assert_close(row, [(255, 255, 255), (127, 255, 127), (0, 0, 255)], 1)
    gif = Image.new("P", (8, 8), 0)
    gif.putpalette([10, 20, 30, 200, 100, 50])
    gif.putpixel((3, 3), 1)
    result = decode(encoded(gif, "GIF", transparency=0))
    assert result.getpixel((0, 0)) == (255, 255, 255)
    assert result.getpixel((3, 3)) == (200, 100, 50)


def test_a_transparent_colour_without_alpha_channel() -> None:
    rgb = png(2, 1, 8, 2, b"\0" + bytes([10, 20, 30, 40, 50, 60]), (b"tRNS", struct.pack(">3H", 10, 20, 30)))
    assert np.asarray(decode(rgb))[0].tolist() == [[255, 255, 255], [40, 50, 60]]
    grey = png(3, 1, 16, 0, b"\0" + struct.pack(">3H", 0, 0x4000, 0xFFFF), (b"tRNS", struct.pack(">H", 0x4000)))
    assert grey_row(decode(grey)) == [0, 255, 255]


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_cmyk(kind: str) -> None:
    assert_close(corners(decode(encoded(quarters().convert("CMYK"), kind))), [RED, GREEN, BLUE, YELLOW])


def test_black_and_white_and_grey() -> None:
    bits = Image.new("1", (4, 1))
    bits.putpixel((2, 0), 1)
    for data in (encoded(bits, "PNG"), encoded(bits, "TIFF", compression="group4"), encoded(bits, "PPM")):
        assert grey_row(decode(data)) == [0, 0, 255, 0]
    assert grey_row(decode(encoded(Image.new("L", (2, 1), 77), "PNG"))) == [77, 77]


def test_sixteen_bits_keep_their_high_byte() -> None:
    values = np.array([[0, 255, 256, 0x8000, 0xFFFF]], np.uint16)
    image = Image.fromarray(values)
    files = [encoded(image, "TIFF"), encoded(image, "TIFF", compression="tiff_lzw"), encoded(image, "PPM")]
    files.append(png(5, 1, 16, 0, b"\0" + values.astype(">u2").tobytes()))
    for data in files:
        assert grey_row(decode(data)) == [0, 0, 1, 128, 255]


def test_big_endian_sixteen_bit_tiff() -> None:
    pixels = struct.pack(">3H", 0, 0x8000, 0xFFFF)
    tags = {256: 3, 257: 1, 258: 16, 259: 1, 262: 1, 273: 8, 277: 1, 278: 1, 279: 6}
    directory = struct.pack(">H", len(tags)) + b"".join(struct.pack(">HHIHxx", t, 3, 1, v) for t, v in tags.items())
    assert grey_row(decode(b"MM\0*" + struct.pack(">I", 14) + pixels + directory + bytes(4))) == [0, 128, 255]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (np.array([[0, 0x8000, 0xFFFF]], np.int32), [0, 128, 255]),  # 16 bits in a 32-bit file
        (np.array([[0, 50_000, 100_000]], np.int32), [0, 128, 255]),  # stretched
        (np.array([[-10, 0, 10]], np.int32), [0, 128, 255]),
        (np.array([[0, 0.5, 1]], np.float32), [0, 128, 255]),
        (np.array([[0.0, 0.1, 0.2]], np.float32), [0, 26, 51]),  # a dark photo stays dark
        (np.array([[0, 128, 255]], np.float32), [0, 128, 255]),
        (np.array([[0, 32768, 65535]], np.float32), [0, 128, 255]),
        (np.array([[-0.05, 0.5, 1.01]], np.float32), [0, 128, 255]),  # a filter went beyond
        (np.array([[0, 128, 260]], np.float32), [0, 128, 255]),
        (np.array([[0, 150, 300]], np.float32), [0, 128, 255]),  # not black
        (np.array([[-3e38, 0, 3e38]], np.float32), [0, 128, 255]),
        (np.array([[np.nan, np.inf, 1]], np.float32), [0, 0, 255]),
        (np.array([[1e6, 1e6, 1e6]], np.float32), [0, 0, 0]),
    ],
)
def test_wide_grey_values_are_scaled_not_clipped(values: np.ndarray, wanted: list[int]) -> None:
    assert grey_row(decode(encoded(Image.fromarray(values), "TIFF"))) == wanted


@pytest.mark.parametrize("kind", ["MPO", *(k for k in FORMATS if k in ("GIF", "PNG", "WEBP", "TIFF", "AVIF"))])
def test_the_first_picture_of_many(kind: str) -> None:
    data = encoded(quarters(), kind, save_all=True, append_images=[Image.new("RGB", (64, 48), "black")] * 2)
    assert_close(corners(decode(data)), [RED, GREEN, BLUE, YELLOW])


# ── smaller JPEGs ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("size", "at_least", "wanted"),
    [
        ((1600, 1200), 224, (400, 300)),
        ((1600, 1200), 300, (400, 300)),
        ((1600, 1200), 301, (800, 600)),
        ((1600, 1200), 150, (200, 150)),
        ((1600, 1200), 10, (200, 150)),  # 8 is the most a JPEG can be reduced
        ((1600, 1200), 1200, (1600, 1200)),
        ((100, 80), 224, (100, 80)),  # never enlarged
        ((1, 4000), 224, (1, 4000)),
    ],
)
def test_jpeg_is_decoded_small_but_not_too_small(size: tuple[int, int], at_least: int, wanted: tuple[int, int]) -> None:
    data = encoded(quarters(*size), "JPEG")
    assert decode(data, at_least=at_least).size == wanted
    assert decode(data).size == size


def test_small_decoding_keeps_colours_and_orientation() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    image = decode(encoded(quarters(1024, 768), "JPEG", exif=exif), at_least=96)
    assert image.size == (96, 128)
    assert_close(corners(image), UPRIGHT[6])


# ── refusals ───────────────────────────────────────────────────────────────────────────────────────────────────────


def refusal(source: Any, **options: Any) -> str:
    with pytest.raises(DecodeError) as caught:
        decode(source, **options)
    reason = str(caught.value)
    assert 0 < len(reason) < 140
    assert "\n" not in reason
    return reason


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"", "empty file (0 bytes)"),
        (b"<!DOCTYPE html><html>", "not an image (it starts like an HTML page)"),
        (b"\xef\xbb\xbf\r\n <HTML>", "not an image (it starts like an HTML page)"),
        (b'<?xml version="1.0"?><svg>', "not an image (it starts like SVG or XML)"),
        (b'{"error": "gone"}', "not an image (it starts like JSON)"),
        (b"version https://git-lfs.github.com/spec/v1\n", "not an image (it is a Git LFS pointer; run git lfs pull)"),
        (b"%PDF-1.7", "not an image (it is a PDF)"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "not an image (it is HEIC; convert it to JPEG)"),
        (bytes(5000), "not an image (it starts with zeros)"),
        (b"hello", "not an image of a format that can be read"),
    ],
)
def test_what_is_no_image_is_named(data: bytes, wanted: str) -> None:
    assert refusal(data) == wanted
    with pytest.raises(DecodeError, match=re.escape(wanted)):
        describe(data)


def test_places_that_cannot_be_read(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "is a folder"
    assert refusal(tmp_path / "none.jpg") == "file not found"
    assert "null" in refusal("a\0b.jpg")
    os.mkfifo(tmp_path / "pipe.jpg")
    assert refusal(tmp_path / "pipe.jpg") == "not a regular file"


def test_permission_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.jpg"
    path.write_bytes(b"x")

    def refuse(*_: Any, **__: Any) -> None:  # the superuser may read anything, so the system cannot be asked
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("builtins.open", refuse)
    assert refusal(path) == "permission denied"


@pytest.mark.parametrize("kind", ["ICO", "PCX", "TGA", "SGI", "EPS", "DDS"])
def test_formats_off_the_list_are_refused(kind: str) -> None:
    assert refusal(encoded(quarters(), kind)).startswith("not an image")


def test_the_limit_can_be_set_and_is_inclusive() -> None:
    data = encoded(Image.new("L", (1000, 1000)), "PNG")
    assert decode(data, max_megapixels=1.0).size == (1000, 1000)
    assert refusal(data, max_megapixels=0.999) == "1.0 megapixels, over the limit of 0.999"
    with pytest.raises(DecodeError, match=r"over the limit of 0\.5$"):
        describe(data, max_megapixels=0.5)


def test_the_reason_does_not_hold_the_path(tmp_path: Path) -> None:
    bad = {"a.jpg": encoded(quarters(), "JPEG")[:300], "b.png": b"<html>", "c.tif": b"II*\0" + bytes(9)}
    for name, data in bad.items():
        path = tmp_path / name
        path.write_bytes(data)
        assert str(tmp_path) not in refusal(path)
        assert name not in refusal(path)


class Broken(io.BytesIO):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def read(self, size: int | None = -1) -> bytes:
        raise self.error


def test_only_decode_errors_escape() -> None:
    assert "odd" in refusal(Broken(RuntimeError("odd")))
    assert "memory" in refusal(Broken(MemoryError()))
    assert refusal(Broken(RecursionError()))
    assert refusal(Broken(OSError(5, "Input/output error", "/secret/path"))) == "input/output error"
    with pytest.raises(KeyboardInterrupt):
        decode(Broken(KeyboardInterrupt()))


def many_scans(extra: int) -> bytes:
    data = encoded(quarters(16, 16), "JPEG", progressive=True)
    last = data.rindex(b"\xff\xda")
    return data[:-2] + data[last:-2] * extra + b"\xff\xd9"


def test_jpeg_with_thousands_of_scans() -> None:
    plain = many_scans(0)
    room = MOST_SCANS - plain.count(b"\xff\xda")
    assert decode(many_scans(room)).size == (16, 16)
    assert refusal(many_scans(room + 1)) == f"JPEG with {MOST_SCANS + 1} scans, over the limit of {MOST_SCANS}"
    assert decode(plain + b"\xff\xda\0\2" * 1000).size == (16, 16)  # what follows the image does not count
    hidden = plain[:-2] + b"\xff\xfe\0\x06\xff\xd9\0\0" + many_scans(200)[len(plain) - 2 :]  # an end inside a comment
    assert "scans" in refusal(hidden)


def test_the_pixel_limit_of_pillow_is_left_alone() -> None:
    before = Image.MAX_IMAGE_PIXELS
    assert refusal(png(20_000, 20_000, 1, 0, b"")) == "400.0 megapixels, over the limit of 50"
    assert before == Image.MAX_IMAGE_PIXELS

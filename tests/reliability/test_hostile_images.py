"""IM1 to IM3: hostile files give the right pixels or a DecodeError with a reason, quickly and in little memory."""

from __future__ import annotations

import io
import logging
import struct
import subprocess
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, features

from manylabel.data.decode import decode, describe
from manylabel.error import DecodeError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's remarks about damaged metadata

Colour = tuple[int, int, int]
RED, GREEN, BLUE, YELLOW = (220, 30, 40), (20, 200, 60), (30, 60, 210), (240, 220, 20)
QUARTERS = (RED, GREEN, BLUE, YELLOW)
AVIF = ("AVIF",) if features.check("avif") else ()
SLOWEST = 2.0  # seconds of the processor


@dataclass(frozen=True)
class Case:
    """A file and what must come of it: four colours, a reason, or (both given) either of them."""

    name: str
    data: bytes
    colours: tuple[Colour, ...] | None = None
    reason: str | None = None
    size: tuple[int, int] | None = None

    def check(self, path: Path) -> None:
        path.write_bytes(self.data)
        started = time.process_time()
        image, reason = outcome(path)
        assert time.process_time() - started < SLOWEST
        if image is None:
            assert self.reason is not None, f"refused: {reason}"
            assert self.reason in reason
            assert path.name not in reason
            return
        assert self.colours is not None, "decoded"
        assert image.mode == "RGB"
        assert image.size == (self.size or (64, 48))
        facts = describe(path)
        assert (facts.width, facts.height) == image.size
        assert np.abs(np.subtract(quarter_colours(image), self.colours)).max() <= 16, quarter_colours(image)


def outcome(source: Path | bytes, at_least: int | None = None) -> tuple[Image.Image | None, str]:
    """The image, or none and the reason; any other exception is the test's failure."""
    try:
        return decode(source, at_least=at_least), ""
    except DecodeError as error:
        return None, str(error)


def quarter_colours(image: Image.Image) -> list[Colour]:
    x, y = image.width // 4, image.height // 4
    return [image.getpixel(at) for at in ((x, y), (3 * x, y), (x, 3 * y), (3 * x, 3 * y))]  # type: ignore[misc]


def quarters(width: int = 64, height: int = 48) -> Image.Image:
    image = Image.new("RGB", (width, height), RED)
    image.paste(GREEN, (width // 2, 0, width, height // 2))
    image.paste(BLUE, (0, height // 2, width // 2, height))
    image.paste(YELLOW, (width // 2, height // 2, width, height))
    return image


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def patched(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) == 1
    return data.replace(old, new)


def noisy(width: int = 64, height: int = 48) -> Image.Image:
    """The quarters with a little noise, so that compressed data is long enough to be cut."""
    pixels = np.asarray(quarters(width, height)).astype(int)
    pixels += np.random.default_rng(0).integers(-4, 5, pixels.shape)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


@cache
def ordinary_files() -> dict[str, bytes]:
    """One sound file of every kind we read; all show the quarters."""
    image, black = noisy(), Image.new("RGB", (64, 48))
    several: dict[str, Any] = {"save_all": True, "append_images": [black, black.point(lambda v: v + 9)]}
    files = {
        "jpeg": encoded(image, "JPEG", quality=95),
        "jpeg-progressive": encoded(image, "JPEG", quality=95, progressive=True),
        "mpo": encoded(image, "MPO", quality=95, **several),
        "png": encoded(image, "PNG"),
        "png-palette": encoded(image.quantize(128), "PNG"),
        "apng": encoded(image, "PNG", **several),
        "gif": encoded(image, "GIF"),
        "gif-animated": encoded(image, "GIF", **several),
        "bmp": encoded(image, "BMP"),
        "bmp-palette": encoded(image.quantize(128), "BMP"),
        "webp": encoded(image, "WEBP", quality=95),
        "webp-lossless": encoded(image, "WEBP", lossless=True),
        "webp-animated": encoded(image, "WEBP", quality=95, **several),
        "tiff": encoded(image, "TIFF"),
        "tiff-lzw": encoded(image, "TIFF", compression="tiff_lzw"),
        "tiff-deflate": encoded(image, "TIFF", compression="tiff_adobe_deflate"),
        "tiff-jpeg": encoded(image, "TIFF", compression="jpeg", quality=95),
        "tiff-packbits": encoded(image, "TIFF", compression="packbits"),
        "ppm": encoded(image, "PPM"),
        "jp2": encoded(image, "JPEG2000"),
        "j2k": encoded(image, "JPEG2000", no_jp2=True),
    }
    return files | ({"avif": encoded(image, "AVIF", quality=95)} if AVIF else {})


def truncated() -> Iterator[Case]:
    for name, data in ordinary_files().items():
        yield Case(f"{name}-whole", data, QUARTERS)
        for share in (10, 50, 90, 99):
            # Of several pictures the first may be complete; a PNG may lack no more than its checksum.
            whole_first = any(word in name for word in ("animated", "apng", "mpo")) and share >= 50
            may_be_right = whole_first or (name.startswith("png") and share == 99)
            cut = data[: len(data) * share // 100]
            yield Case(f"{name}-cut-at-{share}", cut, QUARTERS if may_be_right else None, name_in_reason(name))


def name_in_reason(name: str) -> str:
    names = {"mpo": "JPEG", "apng": "PNG", "webp": "WebP", "jp2": "JPEG 2000", "j2k": "JPEG 2000"}
    short = name.split("-")[0]
    return names.get(short, short.upper())


def turned() -> Iterator[Case]:
    a, b, c, d = QUARTERS
    upright = {1: (a, b, c, d), 2: (b, a, d, c), 3: (d, c, b, a), 4: (c, d, a, b)}
    upright |= {5: (a, c, b, d), 6: (c, a, d, b), 7: (d, b, c, a), 8: (b, d, a, c)}
    for kind in ("JPEG", "PNG", "WEBP", "TIFF", *AVIF):
        for orientation, colours in upright.items():
            exif = Image.Exif()
            exif[0x0112] = orientation
            size = (48, 64) if orientation >= 5 else (64, 48)
            yield Case(f"{kind}-exif-{orientation}", encoded(quarters(), kind, exif=exif), colours, size=size)


def ycck() -> bytes:
    """A JPEG whose CMYK is stored as YCCK: stored in CMYK places, then the Adobe marker is told so."""
    inverse = Image.eval(quarters(), lambda v: 255 - v)
    planes = [Image.eval(plane, lambda v: 255 - v) for plane in inverse.convert("YCbCr").split()]
    data = encoded(Image.merge("CMYK", (*planes, Image.new("L", inverse.size))), "JPEG", quality=95)
    marker = data.index(b"Adobe")
    assert data[marker + 11] == 0
    return data[: marker + 11] + b"\2" + data[marker + 12 :]


def bad_metadata() -> Iterator[Case]:
    image = quarters()
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 1, "x" * 40
    raw = exif.tobytes()
    damaged = {
        "empty": b"Exif\0\0",
        "garbage": b"Exif\0\0" + bytes(range(1, 200)),
        "cut": raw[:-20],
        "far-offset": raw[:10] + b"\xff\xff\xff\x7f" + raw[14:],
        "many-entries": raw[:14] + b"\xff\xff" + raw[16:],
    }
    for kind in ("JPEG", "PNG", "WEBP"):
        for name, data in damaged.items():
            yield Case(f"{kind}-exif-{name}", encoded(image, kind, exif=data), QUARTERS)
    for kind in ("JPEG", "PNG", "WEBP", "TIFF"):
        for name, profile in {"short": b"x", "garbage": bytes(range(256)) * 20}.items():
            yield Case(f"{kind}-icc-{name}", encoded(image, kind, icc_profile=profile), QUARTERS)
    for name, offset in {"in-the-pixels": 1000, "past-the-end": 4_000_000_000}.items():
        pointer = Image.Exif()
        pointer[0x8768] = offset  # renamed below to the tag that says where EXIF is; Pillow would not write it
        data = patched(encoded(image, "TIFF", exif=pointer), struct.pack("<H", 0x8768), struct.pack("<H", 0x8769))
        yield Case(f"tiff-exif-{name}", data, QUARTERS)


def unusual_pixels() -> Iterator[Case]:
    image = quarters()
    grey = tuple((value,) * 3 for value in (40, 100, 160, 220))
    shades = Image.new("L", (64, 48))
    for value, box in zip((40, 100, 160, 220), ((0, 0), (32, 0), (0, 24), (32, 24)), strict=True):
        shades.paste(value, (*box, box[0] + 32, box[1] + 24))
    wide = np.asarray(shades).astype(np.uint16) * 257
    for kind in ("PNG", "TIFF", "PPM", "JPEG2000"):
        yield Case(f"{kind}-16-bit", encoded(Image.fromarray(wide), kind), grey)
    yield Case("tiff-32-bit", encoded(Image.fromarray(wide.astype(np.int32)), "TIFF"), grey)
    yield Case("tiff-float", encoded(Image.fromarray((wide / 65535).astype(np.float32)), "TIFF"), grey)
    yield Case("pfm-float", encoded(Image.fromarray((wide / 65535).astype(np.float32)), "PPM"), grey)
    for kind in ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM", "JPEG2000", *AVIF):
        yield Case(f"{kind}-grey", encoded(shades, kind), grey)
    yield Case("jpeg-cmyk", encoded(image.convert("CMYK"), "JPEG", quality=95), QUARTERS)
    yield Case("tiff-cmyk", encoded(image.convert("CMYK"), "TIFF"), QUARTERS)
    yield Case("jpeg-ycck", ycck(), QUARTERS)
    yield Case("tiff-lab", encoded(image.convert("LAB"), "TIFF"), QUARTERS)
    yield Case("ppm-odd-maximum", b"P6 64 48 85\n" + bytes(round(v / 3) for v in image.tobytes()), QUARTERS)

    hidden = image.convert("RGBA")
    hidden.paste((9, 9, 9, 0), (0, 0, 32, 24))  # the first quarter is transparent
    on_white = ((255, 255, 255), GREEN, BLUE, YELLOW)
    for kind in ("PNG", "GIF", "TIFF", "WEBP", "JPEG2000", *AVIF):
        yield Case(f"{kind}-alpha", encoded(hidden, kind), on_white)
    yield Case("png-palette-alpha", encoded(hidden.quantize(16), "PNG"), on_white)
    grey_alpha = Image.merge("LA", (shades, hidden.getchannel("A")))
    yield Case("png-grey-alpha", encoded(grey_alpha, "PNG"), ((255, 255, 255), *grey[1:]))
    bits = shades.point(lambda v: 255 if v > 130 else 0, "1")
    black, white = (0, 0, 0), (255, 255, 255)
    for kind in ("PNG", "TIFF", "BMP", "PPM"):
        yield Case(f"{kind}-1-bit", encoded(bits, kind), (black, black, white, white))


def unusual_sizes() -> Iterator[Case]:
    for kind in ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM", "JPEG2000", *AVIF):
        yield Case(f"{kind}-1x1", encoded(Image.new("RGB", (1, 1), GREEN), kind), (GREEN,) * 4, size=(1, 1))
    for kind in ("JPEG", "PNG", "GIF", "BMP", "TIFF", "PPM"):
        for size in ((1, 65000), (65000, 1)):
            data = encoded(Image.new("RGB", size, BLUE), kind)
            yield Case(f"{kind}-{size[0]}x{size[1]}", data, (BLUE,) * 4, size=size)


def wrong_content() -> Iterator[Case]:
    files = ordinary_files()
    yield Case("empty", b"", reason="empty file (0 bytes)")
    yield Case("one-byte", b"\xff", reason="not an image")
    yield Case("html", b"<!DOCTYPE html>\n<html><body>404</body></html>", reason="it starts like an HTML page")
    yield Case("text", b"The image has moved.\n", reason="not an image")
    yield Case("zeros", bytes(100_000), reason="it starts with zeros")
    yield Case("postscript", encoded(quarters(), "EPS"), reason="PostScript")
    yield Case("icon", encoded(quarters(), "ICO"), reason="not an image")
    yield Case("zip", b"PK\3\4" + bytes(100), reason="ZIP")
    for name, start in {"jpeg": 4, "png": 8, "gif": 6, "bmp": 2, "tiff": 4, "webp": 16, "ppm": 2, "jp2": 12}.items():
        yield Case(f"{name}-magic-only", files[name][:start], reason=name_in_reason(name))
    for name in ("png", "gif", "jp2", "tiff-lzw", "tiff-deflate"):  # in the others zeros are valid data
        zeros = files[name][: len(files[name]) // 8].ljust(len(files[name]), b"\0")
        yield Case(f"{name}-zeros-after-an-eighth", zeros, reason=name_in_reason(name))
    for name in ("png", "png-palette", "apng"):
        place = files[name].index(b"IDAT") + 200
        flipped = files[name][:place] + bytes([files[name][place] ^ 1]) + files[name][place + 1 :]
        yield Case(f"{name}-one-bit-flipped", flipped, reason="PNG")
    yield Case("jpeg-and-20-MB-of-zeros", b"\xff\xd8\xff\xe0" + bytes(20_000_000), reason="damaged")
    yield Case("jpeg-and-20-MB-of-ff", b"\xff\xd8\xff\xe0\0\2" + b"\xff" * 20_000_000, reason="damaged")
    yield Case("ppm-and-20-MB-of-spaces", b"P6" + b" " * 20_000_000, reason="damaged")
    yield Case("png-of-empty-chunks", files["png"][:33] + chunk(b"abCd", b"") * 500_000, reason="damaged")
    yield Case("jpeg-then-a-video", files["jpeg"] + np.random.default_rng(0).bytes(9_000_000), QUARTERS)
    yield Case("ppm-negative", b"P6 -8 8 255\n" + bytes(300), reason="PPM")
    yield Case("jp2-header-lies", lying_jp2(), reason="JPEG 2000")
    yield Case("bmp-run-length-7000x7000", run_length_bmp(7000), reason="too slow to read")


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def lying_jp2() -> bytes:
    """10 × 10 in the box, 2000 × 2000 in the code stream."""
    data = encoded(Image.new("L", (2000, 2000)), "JPEG2000")
    place = data.index(b"ihdr") + 4
    return data[:place] + struct.pack(">II", 10, 10) + data[place + 8 :]


def run_length_bmp(side: int) -> bytes:
    """Two bytes for a pixel, two for the rest of the line."""
    data = b"\1\1\0\0" * side
    start = 14 + 40 + 1024
    info = struct.pack("<IiiHHIIiiII", 40, side, side, 1, 8, 1, len(data), 0, 0, 256, 0)
    return b"BM" + struct.pack("<IHHI", start + len(data), 0, 0, start) + info + bytes(1024) + data


CASES = [
    case
    for group in (truncated, turned, bad_metadata, unusual_pixels, unusual_sizes, wrong_content)
    for case in group()
]


def test_there_are_at_least_two_hundred_different_files() -> None:
    assert len({case.data for case in CASES}) >= 200
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_right_pixels_or_a_reason(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path / "some image.jpg")  # mostly the wrong extension


# ── IM2: bombs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def png_bomb(side: int) -> bytes:
    """A black and white PNG of side × side pixels, as small as deflate makes it."""
    packer = zlib.compressobj(9)
    row = bytes(1 + (side + 7) // 8)
    pixels = b"".join(packer.compress(row) for _ in range(side)) + packer.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", png_header(side)) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def png_header(side: int) -> bytes:
    return struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)


def gif_bomb(canvas: int, frame: int, disposal: int) -> bytes:
    """A frame that is to be cleared makes a careless reader allocate it with the header."""
    head = b"GIF89a" + struct.pack("<HH", canvas, canvas) + b"\x80\0\0" + bytes(6)
    control = b"!\xf9\4" + bytes([disposal << 2 | 1, 0, 0, 0]) + b"\0"
    return head + control + b"," + struct.pack("<HHHH", 0, 0, frame, frame) + b"\0\2\2\x4c\1\0;"


def tiff_tile_bomb(side: int) -> bytes:
    """An image of 100 × 100 in one tile of side × side."""
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(bytes(side)) for _ in range(side)) + packer.flush()
    tags = {256: 100, 257: 100, 258: 8, 259: 8, 262: 1, 277: 1, 322: side, 323: side, 324: 134, 325: len(data)}
    directory = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", t, 4, 1, v) for t, v in tags.items())
    return b"II*\0" + struct.pack("<I", 8) + directory + bytes(4) + data


def webp_bomb(side: int) -> bytes:
    """An extended WebP with an empty canvas of side × side."""
    size = struct.pack("<I", side - 1)[:3]
    chunks = b"VP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + size + size + b"ANIM" + struct.pack("<IIH", 6, 0, 0)
    frame = bytes(6) + bytes(6) + bytes(4)
    still = encoded(Image.new("RGB", (1, 1)), "WEBP")[12:]
    chunks += b"ANMF" + struct.pack("<I", len(frame) + len(still)) + frame + still
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WEBP" + chunks


@cache
def bombs() -> dict[str, tuple[bytes, str]]:
    """Bomb → its bytes and the refusal's beginning."""
    jpeg = encoded(Image.new("L", (258, 259)), "JPEG")
    bmp = encoded(Image.new("RGB", (258, 259)), "BMP")
    jp2 = encoded(Image.new("L", (258, 259)), "JPEG2000")
    return {
        "png-89": (png_bomb(9434), "89.0 megapixels"),
        "png-179": (png_bomb(13380), "179.0 megapixels"),
        "png-4000": (png_bomb(64)[:8] + chunk(b"IHDR", png_header(63246)) + png_bomb(64)[33:], "4000.1 megapixels"),
        "gif-canvas": (gif_bomb(9434, 1, 2), "89.0 megapixels"),
        "gif-frame-cleared": (gif_bomb(1, 13000, 2), "169.0 megapixels"),
        "gif-frame-restored": (gif_bomb(1, 10000, 3), "100.0 megapixels"),
        "jpeg": (patched(jpeg, struct.pack(">HH", 259, 258), struct.pack(">HH", 10000, 10000)), "100.0 megapixels"),
        "bmp": (patched(bmp, struct.pack("<ii", 258, 259), struct.pack("<ii", 10000, 10000)), "100.0 megapixels"),
        "jp2": (jp2.replace(struct.pack(">II", 259, 258), struct.pack(">II", 10000, 10000)), "100.0 megapixels"),
        "ppm": (b"P6 10000 10000 255\n", "100.0 megapixels"),
        "tiff-tile": (tiff_tile_bomb(8000), "64.0 megapixels"),
        "webp-100": (webp_bomb(10000), "100.0 megapixels"),
        "webp-268": (webp_bomb(16383), ""),
    }


def test_bombs_are_small_files() -> None:
    made = bombs()
    assert len(made["png-89"][0]) <= 11 * 1024
    assert len(made["png-179"][0]) <= 22 * 1024


@pytest.mark.parametrize("name", bombs())
@pytest.mark.parametrize("reader", [decode, describe])
def test_bombs_are_refused_from_the_header_at_once(name: str, reader: Callable[[bytes], object]) -> None:
    data, beginning = bombs()[name]
    times = []
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for _ in range(3):
            started = time.process_time()
            with pytest.raises(DecodeError) as caught:
                reader(data)
            times.append(time.process_time() - started)
    assert "over the limit of 50" in str(caught.value)
    assert str(caught.value).startswith(beginning)
    assert min(times) <= 0.050
    assert not heard


MEMORY_PROBE = """
import resource, sys
from pathlib import Path
from manylabel.data.decode import decode
from manylabel.error import DecodeError

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

decode(Path(sys.argv[1]))
before = peak()
for path in sys.argv[2:]:
    try:
        decode(Path(path))
    except DecodeError:
        continue
    sys.exit(f"{path} was decoded")
print(peak() - before)
"""


def test_bombs_take_no_memory(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    paths = [tmp_path / "sound.png"]
    paths[0].write_bytes(encoded(quarters(), "PNG"))
    for name, (data, _) in bombs().items():
        paths.append(tmp_path / name)
        paths[-1].write_bytes(data)
    command = [sys.executable, "-c", MEMORY_PROBE, *map(str, paths)]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert grown <= 20 * 2**20


# ── IM3: fuzzing ───────────────────────────────────────────────────────────────────────────────────────────────────


def mutated(data: bytes, random: np.random.Generator) -> bytes:
    """One to eight small injuries, half of them near the start, where the header is."""
    hurt = bytearray(data)
    for _ in range(random.integers(1, 9)):
        place = int(random.integers(len(hurt) if random.random() < 0.5 else min(len(hurt), 120)))
        width = int(random.integers(1, 33))
        match random.integers(5):
            case 0:
                hurt[place] = random.integers(256)
            case 1:
                hurt[place] ^= 1 << int(random.integers(8))
            case 2:
                hurt[place : place + 4] = random.choice(np.frombuffer(b"\0\xff\x7f\x80", np.uint8)).tobytes() * 4
            case 3:
                hurt[place:place] = hurt[place : place + width]
            case 4:
                del hurt[place : place + width]
        hurt = hurt or bytearray(b"\0")
    return bytes(hurt)


def resealed(data: bytes) -> bytes:
    """A PNG whose checksums are right again, so that the injury gets past them."""
    whole, place = data[:8], 8
    while place + 8 <= len(data):
        end = place + 8 + int.from_bytes(data[place : place + 4])
        whole += chunk(data[place + 4 : place + 8], data[place + 8 : end])
        place = end + 4
    return whole


@pytest.mark.parametrize("name", ordinary_files())
def test_mutated_files_only_raise_decode_errors(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    data = ordinary_files()[name]
    random = np.random.default_rng([*name.encode()])
    slowest, refused = 0.0, 0
    for turn in range(300):
        hurt = mutated(data, random)
        if "png" in name and turn % 4:
            hurt = resealed(hurt)
        started = time.process_time()
        image, reason = outcome(hurt, at_least=24 if turn % 2 else None)
        slowest = max(slowest, time.process_time() - started)
        assert reason or (image is not None and image.mode == "RGB")
        refused += image is None
    assert slowest < SLOWEST
    assert refused > 0  # the injuries do hurt

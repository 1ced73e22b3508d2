"""What a caller may give as an image, and how each becomes an upright RGB picture, or a DecodeError that says why not.

An image file: its path, its bytes (bytes, bytearray, a memoryview of them), or a binary stream. See `decode`.
A PIL image: turned as its EXIF data says, white behind what is transparent.
An array [H, W], [H, W, 1] (grey), [H, W, 2] (grey and alpha), [H, W, 3] (RGB) or [H, W, 4] (RGBA); its channels come last.
A tensor [H, W], [1, H, W], [2, H, W], [3, H, W] or [4, H, W] as torchvision has them; its channels come first.
Several images: any iterable of these, or one array [B, H, W, C], or one tensor [B, C, H, W].

What is white in an array, a tensor, or a PIL image of mode I, I;16 or F that was not just read from a file:
    bool            True
    uint8           255
    uint16          65535, where a value is above 4095
    other integers  255, where the highest value is 16 … 255; 65535 where it is 4096 … 65535
    floats          1, where the highest value is at most 1.125; 255 where it is 16 … 287; 65535 where it is 4096 … 73727
Anything between is refused (a mask of 0 and 1, 12 bits in a type of 16), for what is white there can only be guessed, and
a wrong guess is a black picture; all 0 is black. Floats that go a little beyond black and white, as a bicubic filter leaves
them, are clipped: down to an eighth of the highest value below 0, and up to an eighth above white.
NaN, infinity, other values below 0 or above 65535, other types, other shapes and images without pixels are refused.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, TypeGuard

import numpy as np
from PIL import Image

from manylabel.data.decode import DARKEST, OVERSHOOT, decode, describe, high_byte, share_of_white, upright_rgb, white_of
from manylabel.data.shard.packed import PackedImage
from manylabel.error import DataError, DecodeError


class Tensor(Protocol):
    """A torch tensor, as far as we use it: where torch is not installed there are none, and images are read all the same."""

    @property
    def shape(self) -> Any: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def layout(self) -> Any: ...
    def detach(self) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...


ImageLike = (
    str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO | Image.Image | np.ndarray | Tensor | PackedImage
)
ENCODED = (bytes, bytearray, memoryview)
KINDS = "a path, the bytes of an image file, a binary stream, a PIL image, an array or a tensor"


@dataclass(frozen=True)
class GivenImage:
    """An image and what it is called; its picture, or why there is none."""

    given: Any
    name: str
    picture: Image.Image | None = None
    error: str | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the upright image, whose picture may have been decoded smaller."""
        assert self.picture is not None
        try:
            if isinstance(self.given, PackedImage):
                return self.given.source.describe(self.given.key)
            if isinstance(self.given, (Image.Image, np.ndarray)) or is_tensor(self.given):
                return self.picture.size
            facts = describe(self.given)
        except DecodeError:
            return self.picture.size
        return facts.width, facts.height


def read_images(images: ImageLike | Iterable[ImageLike], at_least: int | None = None) -> Iterator[GivenImage]:
    """Each image in order. Among several, one that cannot be read says why in `error`; one alone raises a DecodeError.

    With `at_least`, a JPEG may come smaller, see `decode`.
    """
    several, alone = as_several(images)
    for number, image in enumerate(several):
        found = read_image(image, number, at_least)
        if alone and found.error is not None:
            raise DecodeError(f"{found.name}: {found.error}")
        yield found


def read_image(image: ImageLike, number: int = 0, at_least: int | None = None) -> GivenImage:
    """One image, the `number`th of its list, which names what has no name of its own."""
    name = f"image {number + 1}"
    if isinstance(image, PackedImage):
        name = image.name
    elif isinstance(image, (str, os.PathLike)):
        name = os.fsdecode(image)
    try:
        return GivenImage(image, name, _picture(image, at_least))
    except (DecodeError, OSError) as error:
        return GivenImage(image, name, error=str(error))


def is_tensor(image: Any) -> TypeGuard[Tensor]:
    """Whoever has a tensor has imported torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(image, torch.Tensor)


def as_several(images: Any) -> tuple[Iterable[Any], bool]:
    """The images, and whether it was one alone."""
    if isinstance(images, (str, os.PathLike, *ENCODED, Image.Image, PackedImage)) or hasattr(images, "read"):
        return [images], True
    pixels = _as_pixels(images)
    if pixels is not None:
        return (list(pixels), False) if pixels.ndim == 4 else ([pixels], True)
    if isinstance(images, Mapping) or not isinstance(images, Iterable):
        raise DataError(f"{_a(images)} is not an image, nor a list of images; an image is {KINDS}")
    return images, False


def _as_pixels(image: Any) -> np.ndarray | Tensor | None:
    """An array or a tensor, also of another library; None for anything else, a column of file names too."""
    if is_tensor(image):
        return image
    if not hasattr(image, "__array__") or isinstance(image, Image.Image):
        return None
    array = np.asarray(image)
    return None if array.dtype.kind in "OUST" and array.ndim == 1 else array


def _picture(image: Any, at_least: int | None) -> Image.Image:
    if isinstance(image, PackedImage):
        return image.read(at_least)
    if isinstance(image, Image.Image):
        _check_pixels(*image.size)
        return upright_rgb(image, None if image.format else to_eight_bits)
    if isinstance(image, memoryview) and (image.ndim != 1 or image.itemsize != 1):
        raise DecodeError("a memoryview of pixels; give the array itself, or the bytes of an image file")
    if isinstance(image, ENCODED):
        return decode(bytes(image), at_least=at_least)
    if isinstance(image, (str, os.PathLike)):
        if os.path.isdir(image):
            raise DecodeError(
                "is a folder; for all images in it give find_images(folder) (manylabel.inference.images), or name its files"
            )
        return decode(image, at_least=at_least)
    if hasattr(image, "read"):
        if isinstance(image, io.TextIOBase):
            raise DecodeError('a file that was opened as text; open it with mode "rb"')
        return decode(image, at_least=at_least)
    pixels = _as_pixels(image)
    if pixels is None:
        raise DecodeError(f"{_a(image)} is not an image; an image is {KINDS}")
    return _of_pixels(pixels)


def _of_pixels(pixels: np.ndarray | Tensor) -> Image.Image:
    """The picture of an array (channels last) or a tensor (channels first)."""
    shape, first = tuple(pixels.shape), is_tensor(pixels)
    what = "tensor" if first else "array"
    if len(shape) not in (2, 3):
        raise DecodeError(f"{what} of shape {shape}; an image has height and width, and perhaps channels")
    height, width = shape[-2:] if first else shape[:2]
    channels, other = (1, 0) if len(shape) == 2 else (shape[0], shape[2]) if first else (shape[2], shape[0])
    if not 1 <= channels <= 4 and 1 <= other <= 4:
        order = (
            "[channels, height, width]: .permute(2, 0, 1)"
            if first
            else "[height, width, channels]: .transpose(1, 2, 0)"
        )
        raise DecodeError(f"{what} of shape {shape}; its order must be {order}")
    _check_pixels(width, height)
    if not 1 <= channels <= 4:
        raise DecodeError(f"{what} of shape {shape}, with {channels} channels; an image has 1 to 4")
    array = _numpy(pixels) if is_tensor(pixels) else np.asarray(pixels)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    return upright_rgb(Image.fromarray(np.ascontiguousarray(to_eight_bits(array))))


def _numpy(tensor: Tensor) -> np.ndarray:
    """Channels last."""
    try:
        plain = tensor.detach().cpu()
        plain = plain.float() if str(plain.dtype) in ("torch.bfloat16", "torch.float16") else plain
        array: np.ndarray = plain.numpy()
    except (RuntimeError, TypeError) as error:
        raise DecodeError(f"tensor of type {tensor.dtype}, {tensor.layout}, which cannot be read as pixels") from error
    return array.transpose(1, 2, 0) if array.ndim == 3 else array


def to_eight_bits(values: np.ndarray) -> np.ndarray:
    """Pixels that come without a file, as uint8 by the rules above."""
    kind = values.dtype.kind
    if values.dtype == np.uint8:
        return values
    if kind == "b":
        return values.astype(np.uint8) * np.uint8(255)
    if kind not in "iuf":
        raise DecodeError(f"pixels of type {values.dtype}; they must be integers, floats or bool")
    low, high = values.min(), values.max()  # NaN if one is
    if not np.isfinite(low) or not np.isfinite(high):
        raise DecodeError("a pixel is NaN or infinite")
    spare = OVERSHOOT if kind == "f" else 0.0
    if low < -spare * high:
        raise DecodeError(f"a pixel is {low:g}; none may be below 0 (give pixels as they were before normalisation)")
    if high > 65535 * (1 + spare):
        raise DecodeError(f"a pixel is {high:g}; the highest possible is 65535")
    return _floats(values, float(low), float(high)) if kind == "f" else _integers(values, int(high))


def _floats(values: np.ndarray, low: float, high: float) -> np.ndarray:
    white = white_of(low, high)
    if white is None:
        raise _unclear(values, high, "floats of 0 … 1, or uint8")
    return share_of_white(values, white)


def _integers(values: np.ndarray, high: int) -> np.ndarray:
    if high == 0 or high >= DARKEST * 65536:
        return high_byte(values)
    sixteen = values.dtype.kind == "u" and values.dtype.itemsize == 2
    if sixteen or not DARKEST * 256 <= high <= 255:
        raise _unclear(values, high, "uint8, or bool for a mask" if high == 1 else "uint8, or uint16 of 0 … 65535")
    return values.astype(np.uint8)


def _unclear(values: np.ndarray, high: float, better: str) -> DecodeError:
    return DecodeError(
        f"its {values.dtype} pixels reach {high:g}, which does not tell what is white; give {better}, so that it is not "
        "read as black"
    )


def _check_pixels(width: int, height: int) -> None:
    if not width or not height:
        raise DecodeError(f"has no pixels: {width} wide, {height} high")


def _a(image: Any) -> str:
    return "None" if image is None else f"an object of type {type(image).__name__}"

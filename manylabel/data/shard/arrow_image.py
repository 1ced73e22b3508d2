"""Images in the cells of an Arrow table, as Parquet files and Hugging Face `datasets` keep them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manylabel.data.file_stamp import file_stamp
from manylabel.error import DataError, DecodeError

IMAGE_COLUMNS = ("image", "img", "images", "jpg", "jpeg", "png", "webp", "image_bytes", "bytes", "photo", "picture")


def need_pyarrow(what: str) -> Any:
    """The library, imported only where it is needed: it takes a while."""
    try:
        import pyarrow
    except ImportError as error:
        raise DataError(f'{what} needs pyarrow: pip install "manylabel[parquet]"') from error
    return pyarrow


def stored_features(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """What `datasets` wrote about the columns into a schema; {} where it did not."""
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, ValueError, TypeError, RecursionError):
        return {}
    return features if isinstance(features, dict) else {}


def holds_images(kind: Any) -> bool:
    """Binary cells, or a struct with a field 'bytes' of them."""
    from pyarrow import types

    if types.is_struct(kind):
        at = kind.get_field_index("bytes")
        return at >= 0 and holds_images(kind.field(at).type) and not types.is_struct(kind.field(at).type)
    return types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)


def image_column(schema: Any, features: Mapping[str, Any], ignored: tuple[str, ...], path: Path) -> str | None:
    """The column with the images; None where there is none."""
    leave = {name.lower() for name in ignored}
    able = [field.name for field in schema if holds_images(field.type) and field.name.lower() not in leave]
    told = [name for name in able if _type_of(features.get(name)) == "Image"]
    for choice in (told, [name for name in able if name.lower() in IMAGE_COLUMNS], able):
        usual = [name for name in choice if name.lower() in IMAGE_COLUMNS[:2]]
        if len(choice) == 1 or len(usual) == 1:
            return (usual if len(usual) == 1 else choice)[0]
        if choice:
            named = " and ".join(map(repr, choice))
            raise DataError(
                f"{path}: columns {named} all hold images; leave out all but one with "
                f"--set 'data.ignore_columns=[{', '.join(choice[1:])}]'"
            )
    return None


def _type_of(feature: Any) -> str:
    return str(feature.get("_type", "")) if isinstance(feature, Mapping) else ""


@dataclass(frozen=True)
class Cells:
    """Cells of a column → bytes. A cell may name a file in one of `folders` instead of holding an image."""

    folders: tuple[Path, ...]

    def image(self, cell: Any) -> bytes:
        """The encoded image of a cell; DecodeError if there is none."""
        path = None
        if isinstance(cell, Mapping):
            cell, path = cell.get("bytes"), cell.get("path")
        if isinstance(cell, bytes) and cell:
            return cell
        if isinstance(path, str) and path:
            return self._file(path)
        raise DecodeError("empty image cell")

    def stamp(self, name: Any) -> str:
        """Text that changes when the file of this name does; '' where there is none."""
        path = self._place(name) if isinstance(name, str) and name else None
        return "" if path is None else file_stamp(path)

    def _file(self, name: str) -> bytes:
        path = self._place(name)
        if path is not None:
            try:
                return path.read_bytes()
            except OSError as error:
                raise DecodeError(f"cannot read {path}: {error.strerror}") from error
        raise DecodeError(
            f"the cell holds no image but the name of a file, {name[:200]!r}, which is not in the folder of the data; "
            "name its folder with --set data.images=FOLDER"
        )

    def _place(self, name: str) -> Path | None:
        """Only in the folder of the data, or the one that the user named: a table may come from a stranger."""
        for folder in self.folders:
            with suppress(OSError, ValueError):  # no name of a file at all
                if os.path.isfile(os.path.join(folder, name)):  # before what is slow: most cells hold their image
                    home = os.path.realpath(folder)
                    path = os.path.realpath(os.path.join(home, name))
                    if os.path.commonpath([home, path]) == home:
                        return Path(path)
        return None


def file_names(column: Any) -> Any:
    """The field 'path' of a column of structs, without a look at the images; None where there is none."""
    pyarrow = need_pyarrow("a column of images")
    kind = column.type
    at = kind.get_field_index("path") if pyarrow.types.is_struct(kind) else -1
    if at < 0:
        return None
    return pyarrow.chunked_array([chunk.field(at) for chunk in column.chunks], kind.field(at).type)


def row_key(part: str, row: int) -> str:
    """'train-00000/0000017': the image in row 17 (from 0) of a part."""
    return f"{part}/{row:07d}"


def part_and_row(key: str) -> tuple[str, int]:
    part, _, row = key.rpartition("/")
    if not row.isascii() or not row.isdigit():
        raise DecodeError(f"there is no {key!r} in the shards")
    return part, int(row)

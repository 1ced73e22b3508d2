"""The labels of a Label Studio project in their order, where its labelling config lies beside the export."""

from __future__ import annotations

from pathlib import Path

from manylabel.data.read.xml_file import parse_xml
from manylabel.error import DataError

CONFIG_NAME = "label_config.xml"


def configured_labels(folder: Path, found: set[str]) -> tuple[str, ...] | None:
    """Those of the config, then any others that were found; None without a config."""
    path = folder / CONFIG_NAME
    if not path.is_file():
        return None
    try:
        root = parse_xml(path)
    except DataError as error:
        raise DataError(f"{path} is no labelling config; mend it or delete it: {error}") from None
    values = (element.get("value", "").strip() for element in root.iter() if element.tag in ("Choice", "Label"))
    names = dict.fromkeys(value for value in values if value)
    return (*names, *sorted(found - names.keys()))

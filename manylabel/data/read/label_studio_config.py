"""The labels of a Label Studio project in their order, where its labelling config lies beside the export."""

from __future__ import annotations

from pathlib import Path

from manylabel.error import DataError

CONFIG_NAME = "label_config.xml"


def configured_labels(folder: Path, found: set[str]) -> tuple[str, ...] | None:
    """Those of the config, then any others that were found; None without a config."""
    path = folder / CONFIG_NAME
    if not path.is_file():
        return None
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import parse

    try:
        root = parse(path).getroot()
    except (ParseError, DefusedXmlException, UnicodeError, OSError) as error:
        raise DataError(f"{path} is no labelling config ({str(error)[:80]}); mend it or delete it") from None
    values = (element.get("value", "").strip() for element in root.iter() if element.tag in ("Choice", "Label"))
    names = dict.fromkeys(value for value in values if value)
    return (*names, *sorted(found - names.keys()))

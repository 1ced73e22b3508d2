"""XML from strangers: nothing in it is fetched or expanded, and errors name the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from manylabel.error import DataError

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

LARGEST_XML = 10 << 20  # bytes


def parse_xml(file: Path) -> Element:
    """The root of a small file; definitions of entities and references to other files are refused."""
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import ParseError, parse

    try:
        if not file.is_file():  # opening a pipe would wait for ever
            raise DataError(f"cannot read {file}: it is not there, or no file")
        if file.stat().st_size > LARGEST_XML:
            raise DataError(f"{file} has more than {LARGEST_XML >> 20} MiB; that is no file of labels for this format")
        return parse(file, forbid_dtd=True).getroot()
    except DefusedXmlException:
        raise DataError(
            f"{file} defines a document type or entities, which labels have no need of and which can be an attack; "
            "delete the <!DOCTYPE …> part if you trust the file"
        ) from None
    except ParseError as error:
        raise DataError(f"{file}, row {error.position[0]}: cut off or no valid XML; export it again") from None
    except (LookupError, ValueError) as error:  # an encoding that nobody knows, or text that is not in it
        raise DataError(f"{file}: its text encoding cannot be read ({error}); save it as UTF-8") from None
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from error

"""YAML from strangers: plain values only."""

from __future__ import annotations

from typing import Any

import yaml

from manylabel.error import DataError


class _PlainLoader(yaml.SafeLoader):
    """Refuses references inside the file: a few lines of them can stand for more than fits in memory."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark
            raise yaml.composer.ComposerError(None, None, "a reference '*…' or '<<'; write the value out", mark)
        return super().compose_node(parent, index)


def parse_yaml(text: str, where: str) -> Any:
    """The value of a YAML text; errors say `where` it stands and in which row."""
    try:
        return _PlainLoader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        row = f", row {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise DataError(f"{where}{row}: no valid YAML ({error.problem}); mend it") from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise DataError(f"{where}: no valid YAML ({' '.join(str(error).split())[:100]}); mend it") from None

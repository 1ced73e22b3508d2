"""YAML from anywhere: plain values, finite, shallow, and no larger than they are written."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import yaml

from manylabel.error import DataError, ManylabelError
from manylabel.storage.plain_file import KB, read_text

MOST_VALUES = 20_000  # of a recipe, references written out
MOST_OF_LABELS = 300_000  # of a file that lists labels and what is known about them
DEEPEST = 50
LONGEST_NUMBER = 100  # characters; minutes and seconds (1:20:30) of thousands of digits take for ever

Parser: Any
if yaml.__with_libyaml__:
    Parser = (yaml.cyaml.CParser,)  # type: ignore[attr-defined]
else:  # pragma: no cover (the wheels have it)
    from yaml.parser import Parser as _Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    Parser = (Reader, Scanner, _Parser)


class _Loader(yaml.composer.Composer, *Parser, yaml.constructor.SafeConstructor, yaml.resolver.Resolver):  # type: ignore[misc]
    """Counts what references (*name, <<) stand for: a few lines of them can stand for more than fits in memory."""

    def __init__(self, text: str, most: int, references: bool) -> None:
        for parser in Parser:
            parser.__init__(self, *([text] if parser is Parser[0] else []))
        yaml.composer.Composer.__init__(self)
        yaml.constructor.SafeConstructor.__init__(self)
        yaml.resolver.Resolver.__init__(self)
        self.most, self.references = most, references
        self.values, self.depth = 0, 0
        self.sizes: dict[str, int] = {}  # values below each anchor that is complete

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        mark = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            if not self.references:
                raise yaml.composer.ComposerError(None, None, "a reference '*…' or '<<'; write the value out", mark)
            if event.anchor in self.anchors and event.anchor not in self.sizes:
                raise yaml.composer.ComposerError(None, None, "a reference to what it stands in", mark)
            self.values += self.sizes.get(str(event.anchor), 0)
        before = self.values
        self.values += 1
        self.depth += 1
        if self.values > self.most:
            raise yaml.composer.ComposerError(None, None, f"more than {self.most} values", mark)
        if self.depth > DEEPEST:
            raise yaml.composer.ComposerError(None, None, f"nested more than {DEEPEST} deep", mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        if not isinstance(event, yaml.AliasEvent) and event.anchor is not None:
            self.sizes[event.anchor] = self.values - before
        return node


def _number(construct: Any) -> Any:
    def checked(loader: Any, node: Any) -> Any:
        text = loader.construct_scalar(node)
        value = math.inf if len(text) > LONGEST_NUMBER else construct(loader, node)
        if isinstance(value, float) and not math.isfinite(value):
            raise yaml.constructor.ConstructorError(
                None, None, f"{text:.40} is no number that can be used", node.start_mark
            )
        return value

    return checked


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _number(getattr(_Loader, f"construct_yaml_{_kind}")))


def parse_yaml(
    text: str,
    where: str,
    error: type[ManylabelError] = DataError,
    *,
    most: int = MOST_VALUES,
    references: bool = True,
) -> Any:
    """The value of a YAML text; errors say `where` it stands and in which row."""
    try:
        return _Loader(text, most, references).get_single_data()
    except yaml.MarkedYAMLError as reason:
        row = f", row {reason.problem_mark.line + 1}" if reason.problem_mark else ""
        raise error(f"{where}{row}: no valid YAML ({reason.problem}); mend it") from None
    except (
        yaml.YAMLError,
        ValueError,
        TypeError,
        LookupError,
        ArithmeticError,
        RecursionError,
        AttributeError,
    ) as reason:
        raise error(f"{where}: no valid YAML ({' '.join(str(reason).split())[:100]}); mend it") from None


def read_yaml(path: Path, error: type[ManylabelError] = DataError, *, most: int = 256 * KB) -> Any:
    """The value of a YAML file of settings."""
    return parse_yaml(read_text(path, most, error), str(path), error)

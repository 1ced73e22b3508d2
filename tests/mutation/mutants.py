"""Mutants of a module: its source with one small mistake in it, as mutmut's operators make them.

mutmut itself is not used to run them: it leaves out decorated functions, class bodies and module constants, and draws
no sample. What is mutated here is all that runs, but for words and types: messages of errors, help texts of settings,
annotations and decorators. Tests pin the type of an error, not its sentence. A value that becomes None is left out as
well, and a call without its first argument: they fail wherever they are run, which says little about the tests.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators, operator_assignment

WORDY = {"option", "require"}  # calls whose first argument alone is more than words
NO_MISTAKE = {"len", "isinstance", "TypeVar"}  # calls that fail at once when they are changed, or mean nothing when run
STRICT = {"strict"}  # arguments by which code checks itself: without them nothing is different
COMMENT = re.compile(r"\s+#\s.*")
TYPE_ALIAS = re.compile(r"[A-Z]([a-z]\w*)?")


@dataclass(frozen=True)
class Mutant:
    """One mistake. `was` and `now` are the lines that differ, without comments and indentation."""

    file: str
    where: str  # the function or class it is in; "" = the module itself
    line: int
    was: str
    now: str
    lines: frozenset[int]  # that run when it runs
    code: str  # of the whole module


def mutants_of(file: str, source: str, names: Sequence[str] | None = None) -> list[Mutant]:
    """All mutants of a module, or of those functions and classes in it alone."""
    finder = _Finder(file, source, names)
    MetadataWrapper(cst.parse_module(source)).visit(finder)
    return list(dict.fromkeys(finder.found))  # two operators may make the same mistake


def inside(where: str, names: Sequence[str]) -> bool:
    """Whether a place in a module is one of these functions and classes, or in one of them."""
    return any(f"{where}.".startswith(f"{name}.") for name in names)


def sample(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """So many of them, from every file in proportion. A change in one line draws nothing else anew, nor does a new name
    of a file: a mutant's place in the queue is a function of the seed and its own lines."""
    files: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        files.setdefault(mutant.file, []).append(mutant)
    chosen: list[Mutant] = []
    for file, quota in _quotas({file: len(of) for file, of in files.items()}, count).items():
        working = (mutant for mutant in sorted(files[file], key=_place(seed)) if _compiles(mutant))
        chosen += [mutant for _, mutant in zip(range(quota), working, strict=False)]
    return chosen


def _quotas(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Whole numbers in proportion to the sizes that sum to `count`, or to all there are."""
    total = sum(sizes.values())
    count = min(count, total)
    exact = {file: count * size / max(total, 1) for file, size in sizes.items()}
    quotas = {file: int(share) for file, share in exact.items()}
    for file in sorted(sizes, key=lambda file: quotas[file] - exact[file])[: count - sum(quotas.values())]:
        quotas[file] += 1
    return quotas


def _place(seed: int) -> Callable[[Mutant], str]:
    return lambda m: hashlib.sha256("\0".join((str(seed), m.where, m.was, m.now)).encode()).hexdigest()


def _compiles(mutant: Mutant) -> bool:
    try:
        compile(mutant.code, mutant.file, "exec", dont_inherit=True)
    except SyntaxError:  # `return` outside of a function, for example
        return False
    return True


class _Finder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, file: str, source: str, names: Sequence[str] | None) -> None:
        super().__init__()
        self.file, self.source, self.names = file, source, names
        self.module = cst.parse_module(source)  # to write nodes by
        self.begins = [0]
        for line in source.splitlines(keepends=True):
            self.begins.append(self.begins[-1] + len(line))
        self.path: list[str] = []
        self.statements: list[cst.CSTNode] = []
        self.left_out: set[cst.CSTNode] = set()
        self.found: list[Mutant] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if node in self.left_out or _means_nothing(node, module=not self.path):
            return False
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self.path.append(node.name.value)
        if isinstance(node, cst.BaseStatement):
            self.statements.append(node)
        if isinstance(node, cst.Call):
            wordy = isinstance(node.func, cst.Name) and node.func.value in WORDY
            self.left_out |= set(node.args[1:]) if wordy else {a for a in node.args if a.keyword and _checks(a)}
        if self.names is None or inside(".".join(self.path), self.names):
            for mutated in _mistakes(node):
                self._add(node, mutated)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef) and self.path:
            self.path.pop()
        if self.statements and self.statements[-1] is original_node:
            self.statements.pop()

    def _add(self, node: cst.CSTNode, mutated: cst.CSTNode) -> None:
        place = self._range(node)
        start, end = (self.begins[at.line - 1] + at.column for at in (place.start, place.end))
        code = self.source[:start] + self.module.code_for_node(mutated) + self.source[end:]
        was, now = _difference(self.source, code)
        if was == now:
            return
        statement = self._range(self.statements[-1])
        lines = set(range(place.start.line, place.end.line + 1)) | {statement.start.line}
        if isinstance(self.statements[-1], cst.SimpleStatementLine | cst.FunctionDef):  # a default belongs to its body
            lines |= set(range(statement.start.line, statement.end.line + 1))
        line = place.start.line
        self.found.append(Mutant(self.file, ".".join(self.path), line, was, now, frozenset(lines), code))

    def _range(self, node: cst.CSTNode) -> CodeRange:
        found: Any = self.get_metadata(PositionProvider, node)
        return found


def _mistakes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.SimpleString) and (" " in node.value or not node.value.isascii()):
        return  # words for people
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in WORDY:
        return
    for kind, operator in mutation_operators:
        if isinstance(node, kind) and operator is not operator_assignment:
            yield from (mutated for mutated in operator(node) if not _tells_little(node, mutated))


def _tells_little(node: cst.CSTNode, mutated: cst.CSTNode) -> bool:
    """A call that lost an argument of STRICT or another than its last, or that got None in its place; a word in capitals."""
    if isinstance(mutated, cst.SimpleString):
        return "XX" not in mutated.value
    if not (isinstance(node, cst.Call) and isinstance(mutated, cst.Call)):
        return False
    given = [arg for arg in node.args if arg.keyword is None]
    lost = [arg for arg in node.args if arg not in mutated.args]
    last = given[-1] if len(given) > 1 and len(mutated.args) < len(node.args) else None
    return any(_checks(arg) or (arg in given and arg is not last) for arg in lost)


def _checks(argument: cst.Arg) -> bool:
    return argument.keyword is not None and argument.keyword.value in STRICT


def _means_nothing(node: cst.CSTNode, module: bool) -> bool:
    """What is not run, or only to say something."""
    match node:
        case cst.Annotation() | cst.Decorator() | cst.Raise() | cst.Import() | cst.ImportFrom() | cst.FormattedString():
            return True
        case cst.ConcatenatedString():
            return True
        case cst.Call(func=cst.Name(value=name)):
            return name in NO_MISTAKE
        case cst.Expr(value=cst.BaseString()):
            return True  # a docstring
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            return module and (bool(TYPE_ALIAS.fullmatch(name)) or name == "__all__")
    return False


def _difference(source: str, code: str) -> tuple[str, str]:
    """The lines that differ, on both sides."""
    was, now = ([" ".join(COMMENT.sub("", line).split()) for line in text.splitlines()] for text in (source, code))
    while was and now and was[0] == now[0]:
        was, now = was[1:], now[1:]
    while was and now and was[-1] == now[-1]:
        was, now = was[:-1], now[:-1]
    return "\n".join(was), "\n".join(now)

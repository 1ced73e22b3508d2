"""What is mutated, and with which tests: `targets.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml
from mutation.mutants import Mutant, inside, mutants_of

LIST = Path(__file__).with_name("targets.yaml")


@dataclass(frozen=True)
class Targets:
    """`code`: patterns of files, and of each the functions and classes that are meant (none = all)."""

    code: dict[str, tuple[str, ...] | None]
    tests: tuple[str, ...]
    without: tuple[str, ...]

    @classmethod
    def read(cls, path: Path = LIST) -> Targets:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
        code = {pattern: names and tuple(names) for pattern, names in given["code"].items()}
        return cls(code, tuple(given["tests"]), tuple(given.get("without") or ()))

    def mutants(self, tree: Path) -> list[Mutant]:
        """All mutants of that tree's code. A pattern or a name that finds nothing is an error: code has moved."""
        found: list[Mutant] = []
        for pattern, names in self.code.items():
            files = sorted(path.relative_to(tree).as_posix() for path in tree.glob(pattern))
            of = [m for file in files for m in mutants_of(file, (tree / file).read_text(encoding="utf-8"), names)]
            lost = [name for name in names or () if not any(inside(m.where, [name]) for m in of)]
            if not of or lost:
                raise SystemExit(
                    f"targets.yaml: {pattern} {', '.join(lost)} has nothing to mutate; has the code moved?"
                )
            found += of
        return found

    def check(self, tree: Path) -> None:
        """A test that is no more is an error as well."""
        for test in (*self.tests, *self.without):
            if not (tree / test.split("::")[0]).exists():
                raise SystemExit(f"targets.yaml: there is no {test}")

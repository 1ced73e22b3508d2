"""One run of tests in a fork, with modules as they are on disk or with other source in their place."""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

OPTIONS = ("-x", "-q", "-m", "not slow and not nightly and not foreign", "-p", "no:cacheprovider", "-p", "no:randomly")


@dataclass
class Seen:
    """What a run of the unchanged code shows: which tests ran which lines, and how long each took."""

    seconds: dict[str, float] = field(default_factory=dict)  # by test
    tests: dict[str, dict[int, list[str]]] = field(default_factory=dict)  # by file and line
    modules: list[str] = field(default_factory=list)  # of others than the tree, in the order of their import

    def add(self, other: Seen) -> None:
        self.seconds |= other.seconds
        for file, lines in other.tests.items():
            for line, tests in lines.items():
                self.tests.setdefault(file, {}).setdefault(line, []).extend(tests)


def passes(tree: Path, tests: Sequence[str], place: Path, codes: Mapping[str, str]) -> int:
    """pytest's exit code for these tests, in this order, with other source in the place of some files' own."""
    _prepare(tree, place.parent)
    for file, code in codes.items():
        sys.meta_path.insert(0, _InPlace(tree, file, code))
    order = {test: number for number, test in enumerate(tests)}
    files = list(dict.fromkeys(test.split("::")[0] for test in tests))
    return _pytest(tree, files, place, _Only(order))


def look(tree: Path, tests: Sequence[str], place: Path, files: Sequence[str], without: Sequence[str], to: Path) -> int:
    """Run those tests on the unchanged code and write what was `Seen` of these files."""
    from coverage import Coverage  # here: it is no part of a trial

    os.environ["COVERAGE_CORE"] = "ctrace"  # the one that knows which test it is in
    _prepare(tree, place.parent)
    coverage = Coverage(data_file=None, include=[str(tree / file) for file in files], config_file=False)
    watch = _Watch(coverage.switch_context)
    coverage.start()
    result = _pytest(tree, [*tests, *(f"--ignore={path}" for path in without)], place, watch)
    coverage.stop()
    data = coverage.get_data()
    seen = Seen(watch.seconds, modules=_others(tree))
    for file in files:
        lines = data.contexts_by_lineno(str(tree / file))
        seen.tests[file] = {line: [test for test in found if test] for line, found in lines.items()}
    to.write_bytes(pickle.dumps(seen))
    return result


def collect(tree: Path, tests: Sequence[str], place: Path, to: Path) -> int:
    """Import all that those tests import, and write down what of it is not of the tree."""
    _prepare(tree, place.parent)
    result = _pytest(tree, [*tests, "--collect-only"], place, None)
    to.write_bytes(pickle.dumps(Seen(modules=_others(tree))))
    return result


def _pytest(tree: Path, arguments: Sequence[str], place: Path, plugin: Any) -> int:
    folder = [f"--rootdir={tree}", f"--confcutdir={tree}", "-c", str(tree / "pyproject.toml"), f"--basetemp={place}"]
    try:
        return int(pytest.main([*arguments, *OPTIONS, *folder], plugins=[plugin] if plugin else []))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _prepare(tree: Path, scratch: Path) -> None:
    """This process sees the package of that tree, leaves nothing elsewhere, and its tests are the same every time."""
    import torch
    from hypothesis import HealthCheck, Phase, settings

    os.chdir(tree)
    os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
    sys.path.insert(0, str(tree))
    torch.set_num_threads(1)
    torch.set_num_threads = lambda _: None  # every fork has one core
    settings.register_profile(
        "mutation",
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],  # a smaller example of a mistake would only cost time
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("mutation")


def _others(tree: Path) -> list[str]:
    """Names of the imported modules that are not of the tree."""
    inside = [(name, str(getattr(module, "__file__", None) or "")) for name, module in sys.modules.items()]
    return [name for name, path in inside if path and not path.startswith(str(tree))]


class _Only:
    """Just these tests, in this order: those that are most likely to fail come first."""

    def __init__(self, order: dict[str, int]) -> None:
        self.order = order

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda i: self.order[i.nodeid])


class _Watch:
    """Tells coverage which test runs, and takes its time."""

    def __init__(self, begins: Callable[[str], None]) -> None:
        self.begins, self.seconds = begins, dict[str, float]()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.begins(item.nodeid)
        start = time.perf_counter()
        try:
            return (yield)  # type: ignore[return-value]
        finally:
            self.seconds[item.nodeid] = time.perf_counter() - start
            self.begins("")


class _InPlace(MetaPathFinder):
    """Finds one module of the tree with other source than its file has. Nothing is written."""

    def __init__(self, tree: Path, file: str, code: str) -> None:
        self.name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self.path, self.code = str(tree / file), code

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        return spec_from_file_location(fullname, self.path, loader=_Given(fullname, self.path, self.code))


class _Given(SourceFileLoader):
    def __init__(self, fullname: str, path: str, code: str) -> None:
        super().__init__(fullname, path)
        self.code = code

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.code, self.path, "exec", dont_inherit=True)

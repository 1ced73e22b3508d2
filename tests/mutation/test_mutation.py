"""The tool that tries mutants: what it makes, draws, lists, and whether it tells a killed one from one that survives."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from mutation import session
from mutation.mutants import Mutant, mutants_of, sample
from mutation.session import Trials, copied, table
from mutation.survivors import entry, explained, key_of, outdated
from mutation.targets import Targets

SOURCE = '''"""A module."""

from __future__ import annotations

SHARE = 0.5


def half(values: list[float], low: float = 0.0) -> float | None:
    """Half of the sum of what is above `low`."""
    if low < 0:
        raise ValueError(f"{low + 1} is below 0")
    return SHARE * sum(value for value in values if value > low)  # above, not at


def countdown(n: int) -> int:
    while n > 0:
        n = n - 1
    return n
'''

TESTS = """
import pytest
from shop.price import countdown, half


def test_half():
    assert half([2.0, 4.0]) == 3.0
    with pytest.raises(ValueError):
        half([], -1.0)


def test_countdown():
    assert countdown(3) == 0
"""


def pairs(mutants: list[Mutant]) -> set[tuple[str, str]]:
    return {(mutant.was, mutant.now) for mutant in mutants}


def test_mutants_are_mistakes_in_what_runs() -> None:
    found = mutants_of("shop/price.py", SOURCE)
    assert ("SHARE = 0.5", "SHARE = 1.5") in pairs(found)
    assert ("if low < 0:", "if low <= 0:") in pairs(found)
    assert any("value >= low" in now for _, now in pairs(found))
    touched = {mutant.line for mutant in found}
    assert touched == {5, 8, 10, 12, 16, 17}  # no docstring, import or message; of line 8 the default
    assert not any("None" in now and "None" not in was for was, now in pairs(found))
    assert not any("#" in text for pair in pairs(found) for text in pair)


def test_a_mutant_is_the_module_with_one_line_changed() -> None:
    for mutant in mutants_of("shop/price.py", SOURCE):
        compile(mutant.code, "price.py", "exec")
        was, now = SOURCE.splitlines(), mutant.code.splitlines()
        assert [i for i, (a, b) in enumerate(zip(was, now, strict=True), start=1) if a != b] == [mutant.line]


def test_parts_of_a_module() -> None:
    assert {mutant.where for mutant in mutants_of("shop/price.py", SOURCE, ["countdown"])} == {"countdown"}
    assert not mutants_of("shop/price.py", SOURCE, ["count"])


def test_a_sample_hardly_changes_with_the_code() -> None:
    mutants = [replace(m, file=file) for file in ("a.py", "b.py") for m in mutants_of("", SOURCE)]
    mutants += [replace(m, file="c.py") for m in mutants_of("", SOURCE.replace("SHARE", "PART"), ["half"])]
    drawn = sample(mutants, 12, seed=3)
    assert len(drawn) == 12
    assert len({m.file for m in drawn}) == 3
    assert drawn == sample(mutants, 12, seed=3) != sample(mutants, 12, seed=4)
    renamed = sample([replace(m, file="d.py" if m.file == "a.py" else m.file) for m in mutants], 12, seed=3)
    assert sorted(m.code for m in renamed) == sorted(m.code for m in drawn)
    assert len(sample(mutants, 10_000, seed=0)) == len(mutants)


def test_the_list_of_survivors(tmp_path: Path) -> None:
    known, other = mutants_of("shop/price.py", SOURCE)[:2]
    path = tmp_path / "survivors.yaml"
    path.write_text(entry(known).replace("why: ''", "why: it is the same"))
    assert explained(path) == {key_of(known): "it is the same"}
    assert outdated(explained(path), [known, other]) == []
    assert outdated(explained(path), [other]) == [key_of(known)]
    path.write_text(entry(known))
    with pytest.raises(SystemExit, match="entry 1: it needs"):
        explained(path)


def test_the_targets_are_there() -> None:
    targets = Targets.read()
    targets.check(session.HERE)
    assert len(targets.mutants(session.HERE)) > 1000


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with one module, and a test of it that does not look closely."""
    tree = tmp_path / "work"
    for name, text in {
        "shop/__init__.py": "",
        "shop/price.py": SOURCE,
        "tests/test_price.py": TESTS,
        "pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['slow: long']\n",
        ".gitignore": "__pycache__/\n.hypothesis/\n",
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    return tree


@pytest.mark.nightly
def test_what_no_test_notices_survives(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = Targets({"shop/*.py": None}, ("tests",), ())
    (tmp_path / "scratch").mkdir()
    with copied(shop, tmp_path / "copy") as tree:
        mutants = targets.mutants(tree)
        trials = Trials(tree, tmp_path / "scratch", workers=2)
        trials.watch(targets, ["shop/price.py"])
        trials.extra = 20.0  # of a mutant that never ends; a busy machine must not take others for one
        found = {(mutant.was, mutant.now): outcome for mutant, outcome in trials.of(mutants)}
        by_line = {mutant.line: trials.tests_of(mutant) for mutant in mutants}
    assert by_line[17][0].endswith("test_countdown")
    assert by_line[12][0].endswith("test_half")
    assert found["SHARE = 0.5", "SHARE = 1.5"] == "killed"
    assert found["if low < 0:", "if low <= 0:"] == "killed"
    assert found["n = n - 1", "n = n + 1"] == "timeout"
    assert found["while n > 0:", "while n > 1:"] == "killed"
    at = "return SHARE * sum(value for value in values if value {} low)"
    assert found[at.format(">"), at.format(">=")] == "survived"
    assert (shop / "shop/price.py").read_text() == SOURCE
    assert not (tmp_path / "copy").exists()
    shown = table({mutant: found[mutant.was, mutant.now] for mutant in mutants})
    assert f"{len(mutants):>7}" in shown


@pytest.mark.slow
def test_tests_must_pass_on_the_code_as_it_is(shop: Path, tmp_path: Path) -> None:
    (shop / "tests/test_price.py").write_text(TESTS.replace("== 3.0", "== 4.0"))
    (tmp_path / "scratch").mkdir()
    with copied(shop, tmp_path / "copy") as tree, pytest.raises(SystemExit, match="do not pass on the code as it is"):
        Trials(tree, tmp_path / "scratch", workers=1).watch(Targets({}, ("tests",), ()), ["shop/price.py"])


def test_code_that_has_moved_is_told(shop: Path) -> None:
    with pytest.raises(SystemExit, match=r"shop/cost\.py  has nothing to mutate"):
        Targets({"shop/cost.py": None}, ("tests",), ()).mutants(shop)
    with pytest.raises(SystemExit, match=r"shop/price\.py third has nothing"):
        Targets({"shop/price.py": ("half", "third")}, ("tests",), ()).mutants(shop)
    with pytest.raises(SystemExit, match="there is no tests/test_cost"):
        Targets({}, ("tests/test_cost.py",), ()).check(shop)

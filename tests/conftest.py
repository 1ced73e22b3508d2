"""What every test stands on: a machine of its own (home, caches, no network, one thread), small real files on disk,
tiny models with random weights, and runs that are trained once and then only looked at."""

from __future__ import annotations

import csv
import os
import random
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HOME = Path(tempfile.mkdtemp(prefix="manylabel-tests-"))  # before a library looks for its own folder
os.environ |= {
    "HOME": str(HOME),
    "XDG_CACHE_HOME": str(HOME / "cache"),
    "MANYLABEL_CACHE": str(HOME / "cache" / "manylabel"),
    "HF_HOME": str(HOME / "cache" / "huggingface"),
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}

import no_network  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from command import TINY  # noqa: E402
from hypothesis import settings  # noqa: E402
from net.tables import ANEW, Watch  # noqa: E402
from PIL import Image  # noqa: E402

from manylabel import console  # noqa: E402
from manylabel.data import file_stamp  # noqa: E402

SHARED = Path(__file__).parents[2] / "shared" / "data"
COLOURS = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 220), "white": (240, 240, 240)}
TABLES = Watch()
TABLES.install()
settings.register_profile("patient", settings(), deadline=None)  # an example may meet a busy moment of the machine
settings.load_profile("patient")


# --- every test alone ------------------------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    torch.set_num_threads(1)
    no_network.install()


def pytest_unconfigure() -> None:
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(autouse=True)
def _alone(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A feature cache of its own, the same random numbers whatever ran before, nothing said aside."""
    monkeypatch.setenv("MANYLABEL_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr(console, "QUIET", True)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every file had been there for a while: one that was written just now is not taken for unchanged."""
    monkeypatch.setattr(file_stamp, "YOUNG", -1.0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """What the test's data mean must not have changed either (net/tables.py)."""
    TABLES.begin(str(item.config._tmp_path_factory.getbasetemp()))  # type: ignore[attr-defined]
    result = yield
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        return result
    if ANEW:
        TABLES.keep(item.nodeid)
        return result
    if TABLES.is_new(item.nodeid) and not item.get_closest_marker("slow"):
        item.warn(pytest.PytestWarning("the tables that this test reads are not frozen yet: make freeze"))
    changes = TABLES.differences(item.nodeid)
    assert not changes, "if this is meant, run `make freeze` and say it in CHANGELOG.md: " + "; ".join(changes)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before -m and -k take some away. Whoever names single tests, or asks for those that failed, sees parts of files."""
    if not any("::" in argument for argument in config.args) and not config.getoption("lf", False):
        TABLES.collected = {item.nodeid for item in items}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[Any]:
    """Where all tools are promised (MANYLABEL_ALL_TOOLS=1, as in CI), a test that skips for want of one has failed."""
    report = yield
    if report.skipped and os.environ.get("MANYLABEL_ALL_TOOLS") and item.get_closest_marker("tool"):
        report.outcome, report.longrepr = "failed", f"skipped, though every tool should be here: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How to run alone what failed."""
    stats = terminalreporter.stats
    failed = dict.fromkeys(report.nodeid for kind in ("failed", "error") for report in stats.get(kind, ()))
    if failed:
        terminalreporter.section("run alone what failed", "-")
    for test in failed:
        terminalreporter.write_line(alone(test, terminalreporter.config.rootpath))


def alone(test: str, root: Path) -> str:
    """The command that runs it from there, whatever its marks and characters."""
    python = Path(sys.executable)
    python = python.relative_to(root) if python.is_relative_to(root) else python
    return shlex.join([str(python), "-m", "pytest", "-p", "no:randomly", "-m", "", test])


def pytest_sessionfinish(session: pytest.Session) -> None:
    if ANEW and not hasattr(session.config, "workeroutput"):
        TABLES.write()
    elif ANEW:
        session.config.workeroutput |= {"tables": TABLES.anew, "collected": sorted(TABLES.collected)}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """What a worker of pytest-xdist has seen."""
    told = getattr(node, "workeroutput", {})
    TABLES.anew |= told.get("tables", {})
    TABLES.collected |= set(told.get("collected", ()))


# --- small real files ------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny_settings() -> list[str]:
    """--set values for a model that trains in seconds."""
    return list(TINY)


def write_photos(folder: Path, count: int, seed: int = 0) -> list[list[str]]:
    """`count` photos of coloured patches, each with the labels of its colours; returns the labels of each."""
    rng = np.random.default_rng(seed)
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rows = []
    for i in range(count):
        labels = [name for name in COLOURS if rng.random() < 0.4]
        pixels = rng.integers(90, 130, (72, 96, 3)).astype(np.uint8)
        for name in labels:
            y, x = rng.integers(0, 48), rng.integers(0, 72)
            pixels[y : y + 24, x : x + 24] = COLOURS[name]
        Image.fromarray(pixels).save(folder / "images" / f"photo{i:03d}.jpg", quality=92)
        rows.append(labels)
    return rows


def write_csv(path: Path, rows: list[list[str]], header: list[str]) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_labelled_photos(folder: Path, count: int) -> Path:
    """Photos and the labels.csv that belongs to them."""
    labels = write_photos(folder, count)
    rows = [[f"photo{i:03d}.jpg", "|".join(names)] for i, names in enumerate(labels)]
    write_csv(folder / "labels.csv", rows, ["file_name", "labels"])
    return folder


@pytest.fixture(scope="session")
def photos_to_look_at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as people have it: images/ and a labels.csv without a split. For all tests, so none may change it."""
    return write_labelled_photos(tmp_path_factory.mktemp("all") / "photos", 48)


@pytest.fixture
def photos(photos_to_look_at: Path, tmp_path: Path) -> Path:
    """The same for one test, which may do with it what it likes."""
    return Path(shutil.copytree(photos_to_look_at, tmp_path / "photos"))


@pytest.fixture(scope="session")
def trained(photos_to_look_at: Path) -> Path:
    """The folder of a finished run on those photos. For all tests, so none may change it."""
    from manylabel import run  # only here: TABLES stands before the door that this one goes through

    out = photos_to_look_at.parent / "run"
    run.train(str(photos_to_look_at), out=out, settings=[*TINY, "train.epochs=1", "data.workers=0"])
    return out


@pytest.fixture
def colours(tmp_path: Path) -> Path:
    """Folders red/, green/, blue/, white/ of twelve photos each."""
    rng = np.random.default_rng(0)
    for name, colour in COLOURS.items():
        folder = tmp_path / "colours" / name
        folder.mkdir(parents=True)
        for i in range(12):
            pixels = rng.integers(90, 130, (64, 64, 3)).astype(np.uint8)
            pixels[8:56, 8:56] = colour
            Image.fromarray(pixels).save(folder / f"{i:02d}.png")
    return tmp_path / "colours"


@pytest.fixture
def make_csv(tmp_path: Path) -> Callable[[str], Path]:
    """A data folder with three real images a.jpg, b.jpg, c.jpg and the given text as labels.csv."""

    def make(text: str) -> Path:
        folder = tmp_path / "data"
        folder.mkdir(exist_ok=True)
        for i, name in enumerate("abc"):
            Image.new("RGB", (40, 30), (60 * i, 90, 120)).save(folder / f"{name}.jpg")
        path = folder / "labels.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return make


@pytest.fixture
def coco_small() -> Path:
    folder = SHARED / "coco14-small"
    if not folder.is_dir():
        pytest.skip("needs the real COCO sample beside the repository (../shared/data/coco14-small)")
    return folder

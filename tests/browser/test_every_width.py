"""Every page that we write, on a phone and on a wide screen: nothing is cut off, nothing is said on the console."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import manylabel
from headless import assert_fits, needs_browser, picture
from small_tasks import SMALL

pytestmark = needs_browser
WIDTHS = [390, 1400]


@pytest.fixture(scope="session")
def check_page(photos_to_look_at: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("check") / "check.html"
    done = manylabel("data", "check", photos_to_look_at, "--html", page)
    assert done.returncode == 0, done.stderr
    return page


@pytest.fixture(scope="session")
def pages(trained: Path, check_page: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By the commands that write them."""
    from manylabel import run

    folder = tmp_path_factory.mktemp("pages")
    hard = manylabel("hard", trained, "--html", folder / "hard.html")
    assert hard.returncode == 0, hard.stderr
    for name in ("experts", "dense"):
        settings = ["train.steps=2", f"backbone.options.experts.sharing={name}"]
        run.train(out=folder / name, recipe=SMALL, settings=settings)
    both = manylabel("compare", folder / "experts", folder / "dense", "--out", folder)
    assert both.returncode == 0, both.stderr
    return {
        "report": trained / "report.html",
        "check": check_page,
        "hard": folder / "hard.html",
        "several": folder / "experts" / "report.html",
        "comparison": folder / "comparison.html",
    }


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["report", "check", "hard", "several", "comparison"])
def test_a_page_fits(pages: dict[str, Path], name: str, width: int) -> None:
    assert_fits(pages[name], width)


def test_a_phone_sees_the_figures_first(pages: dict[str, Path]) -> None:
    """Above the fold of a phone there is more than a title: words all over it."""
    rows = picture(pages["report"], 390, 844).std(axis=1)
    assert (rows > 5).mean() > 0.3

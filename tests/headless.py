"""Pages in a real browser without a window: what it shows, what a script finds in it, and words that try to do harm."""

from __future__ import annotations

import atexit
import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
needs_browser = [
    pytest.mark.tool,
    pytest.mark.skipif(BROWSER is None, reason="needs a browser: apt-get install chromium"),
]
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
HOSTILE = [
    "<script>window.hacked=1;alert(1)</script>",
    '"><img src=x onerror="window.hacked=1">',
    "</script><svg onload=window.hacked=1>",
    "' onmouseover='window.hacked=1",
    "a & b &lt;i&gt;",
    "line\u2028and\u2029paragraph",
    "שלום كلب",
    "\u202egnp.evil",
    "🐶🇬🇧",
    "x" * 1000,
]


def _close(end: Callable[[], object], owner: int) -> None:
    """Not from a forked child, which would close the browser of all tests after it."""
    if os.getpid() == owner:
        end()


@cache
def _browser() -> Browser:
    """One for all tests of this process; every page has a profile of its own."""
    driver = sync_playwright().start()
    atexit.register(_close, driver.stop, os.getpid())
    browser = driver.chromium.launch(executable_path=BROWSER, args=FLAGS)
    atexit.register(_close, browser.close, os.getpid())
    return browser


@contextmanager
def opened(page: Path, width: int = 1280, height: int = 900, dark: bool = False) -> Iterator[Page]:
    """The page as it is, with its policy and no network; any fault of a script and any word on the console fails."""
    faults: list[str] = []
    context = _browser().new_context(
        viewport={"width": width, "height": height}, offline=True, color_scheme="dark" if dark else "light"
    )
    try:
        tab = context.new_page()
        tab.on("pageerror", lambda error: faults.append(str(error)))
        tab.on("console", lambda said: faults.append(f"{said.type}: {said.text}"))
        tab.goto(page.as_uri())
        yield tab
        assert faults == []
        assert tab.evaluate("'hacked' in window") is False
    finally:
        context.close()


def dom(page: Path) -> str:
    """The page after its scripts have run."""
    with opened(page) as tab:
        return tab.content()


def ask(page: Path, script: str, width: int = 1280) -> Any:
    """What a script returns in the page; $ and $$ find elements."""
    with opened(page, width) as tab:
        found = "const $ = s => document.querySelector(s), $$ = s => [...document.querySelectorAll(s)];"
        return tab.evaluate(f"() => {{ {found} {script} }}")


def picture(page: Path, width: int = 1280, height: int = 2400, dark: bool = False, whole: bool = False) -> np.ndarray:
    """What is seen, in grey; `whole`: however long the page is."""
    with opened(page, width, height, dark) as tab, Image.open(io.BytesIO(tab.screenshot(full_page=whole))) as image:
        return np.asarray(image.convert("L"), np.float64)  # [height, width]


def assert_light_and_dark(page: Path) -> None:
    """The page follows the system's choice, and something is drawn in both."""
    light, dark = picture(page), picture(page, dark=True)
    assert light.shape == (2400, 1280)
    assert light.mean() > 200
    assert dark.mean() < 80
    assert light.std() > 10
    assert dark.std() > 10


def assert_fits(page: Path, width: int) -> None:
    """Nothing is cut off or scrolls sideways at this width, every picture is there, and something is drawn all the way."""
    said = ask(
        page,
        """
        const wide = $$('body *').filter(node => {
          const {left, right} = node.getBoundingClientRect();
          let inside = node.closest('svg');
          for (let up = node.parentElement; up && !inside; up = up.parentElement) {
            inside = ['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(up).overflowX) && up !== document.body;
          }
          return !inside && right - left > 0 && right > innerWidth + 1;
        });
        return {inner: innerWidth, page: document.documentElement.scrollWidth, height: document.documentElement.scrollHeight,
          wide: wide.slice(0, 5).map(node => node.outerHTML.slice(0, 120)),
          broken: $$('img').filter(img => !img.naturalWidth).length};""",
        width=width,
    )
    assert said["inner"] == width
    assert said["page"] <= width
    assert said["wide"] == []
    assert said["broken"] == 0
    seen = picture(page, width, 900, whole=True)
    assert seen.shape == (said["height"], width)
    assert seen.std() > 10

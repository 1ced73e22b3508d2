"""Pages in a real browser without a window: what it shows, what a script finds in it, and words that try to do harm."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="no chromium, chromium-browser, google-chrome or chrome on PATH; install one to run these"
)
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--virtual-time-budget=4000",
]  # fmt: skip
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


def browse(page: Path, *flags: str) -> str:
    """What the browser prints for the page, with a profile of its own."""
    profile = page.parent / "profile"
    command = [str(BROWSER), *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=240, check=True)
    return done.stdout.decode("utf-8", "replace")


def ask(page: Path, script: str, width: int = 1280) -> Any:
    """What a script returns, run in a copy of the page without its policy; any fault of a script is a failure."""
    text = page.read_text(encoding="utf-8")
    text, removed = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    assert removed == 1
    watch = "<script>window.faults = []; addEventListener('error', e => faults.push(e.message));</script>"
    answer = (
        "<script>addEventListener('load', () => setTimeout(() => {"
        "const $ = s => document.querySelector(s), $$ = s => [...document.querySelectorAll(s)];"
        f"const value = (() => {{ {script} }})();"
        "const place = document.createElement('pre'); place.id = 'answer';"
        "place.textContent = JSON.stringify({value, faults, hacked: 'hacked' in window});"
        "document.body.append(place); }, 50));</script>"
    )
    copy = page.with_name("asked.html")
    copy.write_text(
        text.replace("<head>", f"<head>{watch}", 1).replace("</body>", f"{answer}</body>"), encoding="utf-8"
    )
    dom = browse(copy, f"--window-size={width},900", "--dump-dom")
    found = re.search(r'<pre id="answer">(.*?)</pre>', dom, re.S)
    assert found, "the page's script did not get as far as answering"
    said = json.loads(html.unescape(found.group(1)))
    assert said["faults"] == []
    assert said["hacked"] is False
    return said.get("value")


def assert_light_and_dark(page: Path) -> None:
    """The page follows the system's choice, and something is drawn in both."""

    def picture(*flags: str) -> np.ndarray:
        path = page.with_name("shot.png")
        browse(page, "--window-size=1280,2400", f"--screenshot={path}", *flags)
        with Image.open(path) as image:
            return np.asarray(image.convert("L"), np.float64)  # [2400, 1280]

    light, dark = picture(), picture("--force-dark-mode")
    assert light.shape == (2400, 1280)
    assert light.mean() > 200
    assert dark.mean() < 80
    assert light.std() > 10
    assert dark.std() > 10

"""The page about data in a real browser: it draws, sorts, filters, fits a phone, and hostile labels stay words."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from data_findings import findings
from headless import HOSTILE, ask, assert_light_and_dark, dom, needs_browser

from manylabel.report import write_data_page

pytestmark = needs_browser
NAMES = ["dog", "Cat", "person 10", "person 9", "tree", "boat"]
SUPPORT = [1000, 100, 40, 9, 1, 0]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data_page(findings(NAMES, SUPPORT), tmp_path_factory.mktemp("plain") / "check.html")


def test_everything_is_drawn_under_the_policy_of_the_page(plain: Path) -> None:
    shown = dom(plain)
    assert 'data-drawn="yes"' in shown
    assert len(re.findall(r'<li [^>]*data-label="', shown)) == 6
    for place in ("per-image-chart", "cooccurrence-chart", "size-chart"):
        assert re.search(rf'<div [^>]*id="{place}"[^>]*><svg [^>]*role="img"', shown), place
    assert shown.count('class="column"') == 4
    assert shown.count('class="dot"') == 2
    assert shown.count('class="cell"') == 12 + 5  # off the diagonal, and the legend


def test_bars_their_order_and_the_filter(plain: Path) -> None:
    said = ask(
        plain,
        """
        const order = () => $$('#support-list li').map(row => row.querySelector('.name').textContent);
        const parts = i => [...$(`li[data-label="${i}"]`).querySelectorAll('.part')];
        const widths = i => parts(i).map(part => parseFloat(part.style.width));
        const out = {start: order(), long: widths(0), short: widths(4), none: widths(5)};
        out.cells = [...$('li[data-label="3"]').children].map(cell => cell.textContent);
        out.title = $('li[data-label="3"]').title;
        out.rare = $$('#support-list .rare').length;
        $('[data-order=rare]').click();
        out.rarest = order();
        $('[data-order=name]').click();
        out.byName = order();
        out.pressed = $$('#support-order [aria-pressed=true]').map(button => button.dataset.order);
        $('#filter').value = 'PERSON';
        $('#filter').dispatchEvent(new Event('input'));
        out.found = order();
        out.count = $('#labels-count').textContent;
        return out;""",
    )
    assert said["start"] == NAMES
    assert said["rarest"] == NAMES[::-1]
    assert said["byName"] == ["boat", "Cat", "dog", "person 9", "person 10", "tree"]
    assert said["pressed"] == ["name"]
    assert said["found"] == ["person 9", "person 10"]
    assert said["count"].startswith("2 of 6 labels")
    assert said["long"] == pytest.approx([75, 25], abs=0.1)  # the longest bar, divided like the splits
    assert sum(said["short"]) == pytest.approx(4, abs=0.1)  # one image still shows
    assert said["none"] == [0, 0]
    assert said["cells"] == ["person 9", "", "9", "750"]
    assert said["title"] == "person 9: 9 images (7 train, 2 val); known of 750 images"
    assert said["rare"] == 3


def test_hostile_labels_stay_words_everywhere(tmp_path: Path) -> None:
    page = write_data_page(findings(HOSTILE), tmp_path / "check.html")
    said = ask(
        page,
        """
        for (const svg of $$('.chart svg')) {
          const {left, top, width, height} = svg.getBoundingClientRect();
          for (let k = 0; k < 400; k++) {
            svg.dispatchEvent(new PointerEvent('pointermove', {
              clientX: left + width * (k % 20) / 20, clientY: top + height * Math.floor(k / 20) / 20 }));
          }
        }
        const strange = $$('*').filter(node => [...node.attributes].some(a => a.name.startsWith('on')));
        return {strange: strange.length, scripts: $$('script').length, title: $('h1').textContent,
          names: $$('#support-list .name').map(name => name.textContent), tip: $('#tip').textContent,
          wide: document.documentElement.scrollWidth};""",
    )
    assert (said["strange"], said["scripts"]) == (0, 2)  # ours, and the data
    assert said["title"] == HOSTILE[0]
    assert said["names"][:9] == HOSTILE[:9]
    assert said["tip"]
    assert said["wide"] <= 1280  # not even a thousand letters make the page wider


def test_a_phone_never_scrolls_sideways(plain: Path) -> None:
    said = ask(plain, "return [document.documentElement.scrollWidth, innerWidth];", width=390)
    assert said[0] <= said[1]


def test_light_and_dark(plain: Path) -> None:
    assert_light_and_dark(plain)


@pytest.mark.slow
def test_ten_thousand_labels_load_and_are_found(tmp_path: Path) -> None:
    names = [f"label {i}" for i in range(9605)]
    counts = np.random.default_rng(0).integers(0, 900, 9605).tolist()
    page = write_data_page(findings(names, counts), tmp_path / "check.html")
    said = ask(
        page,
        """
        const rows = () => $$('#support-list li').length, out = {load: performance.now(), first: rows()};
        const scroller = $('#support-list').parentNode;
        scroller.scrollTop = 1e6;
        scroller.dispatchEvent(new Event('scroll'));
        out.scrolled = rows();
        $('#filter').value = 'label 9604';
        $('#filter').dispatchEvent(new Event('input'));
        out.found = $$('#support-list li').map(row => +row.dataset.label);
        return out;""",
    )
    assert (said["first"], said["scrolled"], said["found"]) == (200, 400, [9604])
    assert said["load"] < 60_000  # milliseconds; a second unless the machine is very busy

"""Hard instances in a real browser: bars as long as their numbers, pictures with marked labels, no sideways scrolling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hard_files import put_boxed_data, put_run
from headless import HOSTILE, ask, dom, needs_browser
from test_report_browser import APS, NAMES, SUPPORT, report

from manylabel.compare import read_run
from manylabel.hard_runs import study_runs
from manylabel.hard_runs.files import write_hard_html

pytestmark = needs_browser


def hard(names: list[str]) -> dict[str, Any]:
    labels = [
        {"label": names[0], "score": 0.05, "cost": 0.3, "state": "hard"},
        *({"label": name, "score": 0.9, "cost": 0.0, "state": "easy"} for name in names[1:]),
    ]
    return {
        "definition": "missed beside an easy one",
        **{"pairs": 90, "hard_pairs": 9, "images": 40, "images_with_several": 30, "hard_images": 8},
        "labels": [{"name": n, "support": 10, "hard": 6 - i, "share": 0.6 - i / 10} for i, n in enumerate(names[:6])],
        "sizes": [
            {"name": name, "area": "below 1 %", "pairs": 20, "hard": k, "share": k / 20}
            for name, k in (("small", 10), ("medium", 5), ("large", 0))
        ],
        "examples": [{"file": name, "thumbnail": None, "labels": labels} for name in names[:4]],
    }


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report(tmp_path_factory.mktemp("hard"), NAMES, APS, SUPPORT, hard=hard(NAMES))


def test_bars_are_as_long_as_their_shares_and_hard_labels_are_marked(plain: Path) -> None:
    said = ask(
        plain,
        """
        const long = id => $$(`#${id} .hard-bar`).map(bar => +bar.getAttribute('width'));
        const words = id => $$(`#${id} text`).map(text => text.textContent);
        return {labels: long('hard-labels-chart'), sizes: long('hard-sizes-chart'), words: words('hard-sizes-chart'),
          link: $('nav a[href="#hard"]').textContent, cards: $$('.hard-images > li').length,
          marked: $$('.hard-images > li:first-child .hard').map(li => li.querySelector('bdi').textContent)};""",
    )
    longest = said["labels"][0]
    assert said["labels"] == pytest.approx([longest * k / 6 for k in (6, 5, 4, 3, 2, 1)], abs=0.2)
    assert said["sizes"][1] == pytest.approx(said["sizes"][0] / 2, abs=0.2)
    assert len(said["sizes"]) == 2  # nothing to draw for large
    assert "50.0\u00a0% of 20" in said["words"]
    assert (said["link"], said["cards"], said["marked"]) == ("Hard", 4, ["dog"])


def test_choosing_a_kind_of_mistake_leaves_hard_images_alone(plain: Path) -> None:
    said = ask(
        plain,
        """
        $('[data-kind="missed"]').click();
        return $$('.hard-images > li').filter(li => li.hidden).length;""",
    )
    assert said == 0


def test_hostile_labels_stay_words_and_a_phone_is_wide_enough(tmp_path: Path) -> None:
    aps: list[float | None] = [50.0] * len(HOSTILE)
    page = report(tmp_path, HOSTILE, aps, [9] * len(HOSTILE), hard=hard(HOSTILE))
    said = ask(
        page,
        """
        for (const svg of $$('#hard .chart svg')) {
          const {left, top, width, height} = svg.getBoundingClientRect();
          for (let k = 0; k < 20; k++) {
            svg.dispatchEvent(new PointerEvent('pointermove', {clientX: left + width / 2, clientY: top + height * k / 20}));
          }
        }
        return {img: $$('img').length, tip: $('#tip').textContent, page: document.documentElement.scrollWidth,
          inner: innerWidth, more: $('.hard-images .more').textContent};""",
        width=390,
    )
    assert said["img"] == 0
    assert "are hard" in said["tip"]
    assert said["page"] <= said["inner"]
    assert said["more"] == f"and {len(HOSTILE) - 8} more"


def test_the_page_of_the_command_shows_pictures_under_its_policy(tmp_path: Path) -> None:
    data = put_boxed_data(tmp_path / "data", train=6, val=36)
    runs = [read_run(put_run(tmp_path / name, data, missed)) for name, missed in (("a", ("small",)), ("b", ()))]
    found, read = study_runs(*runs, labels=["tv"], resamples=100)
    write_hard_html(found, read, tmp_path / "hard.html")
    shown = dom(tmp_path / "hard.html")
    assert found["second"] is not None
    assert found["second"]["found"]
    of_label = 2 * min(5, len(found["pictured"][0]["smallest"]))
    expected = len(found["images_shown"]) + of_label + len(found["second"]["found"])
    assert shown.count('src="data:image/jpeg') == expected
    said = ask(
        tmp_path / "hard.html",
        """
        const seen = $$('img').map(img => img.naturalWidth);
        return {seen: Math.min(...seen), page: document.documentElement.scrollWidth, inner: innerWidth};""",
        width=390,
    )
    assert said["seen"] > 0
    assert said["page"] <= said["inner"]

"""What the terminal is sent: always something, in every encoding and width, and nothing of strangers that it obeys."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from command import manylabel
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from rich.table import Table

from manylabel.runtime.printable import in_one_line, printable
from manylabel.runtime.rich_console import Terminal
from manylabel.storage.json_text import to_json

ODD = "a\x1b]0;owned\x07\x9b31m\u202egpj.\u2066x\rb\x00[bold]:cat:[/bold]\udcff\U000e0041"
OBEYED = set("\x1b\x07\x9b\u202e\u2066\r\x00\udcff\U000e0041")


def _photos(folder: Path, *names: str | bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        path = folder / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            Image.new("RGB", (24, 16), (number, 90, 90)).save(file, "JPEG")
    return folder


@given(st.text() | st.text(alphabet=st.characters(categories=("Cc", "Cs", "Cf", "Zl", "Zp"))))
def test_nothing_that_a_terminal_obeys_is_printable(text: str) -> None:
    shown = printable(text)
    assert not [c for c in shown if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]
    assert not [c for c in shown if unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI")]
    assert printable(shown) == shown
    assert len(in_one_line(text).splitlines()) <= 1
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # two halves are one in JSON
    assert json.loads(to_json([text], indent=None)) == [whole]
    assert OBEYED.isdisjoint(to_json([text], indent=None))


def test_ordinary_letters_stay_as_they_are() -> None:
    for text in ("größe", "日本語", "خنزير", "👩‍🌾", "naïve · ± × –", "a\tb\nc"):
        assert printable(text) == text


def test_escape_sequences_in_what_rich_shows_are_seen_and_not_obeyed() -> None:
    file = io.StringIO()
    out = Terminal(file=file, width=200, color_system=None)
    table = Table(ODD, title=ODD)
    table.add_row(ODD)
    out.print(table)
    out.print(ODD, style="red")
    shown = file.getvalue()
    assert OBEYED.isdisjoint(shown)
    assert shown.count("[bold]:cat:[/bold]") == 4  # no markup, no emoji
    assert shown.count("\\x1b]0;owned\\x07\\x9b31m\\u202egpj.") == 4


def test_escape_sequences_in_labels_and_file_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    names = ("a\x1b[31m.jpg", "b\u202egpj.jpg", "c\x9b2J.jpg", b"\xff\xfe.jpg", "[red].jpg", "e\rf.jpg")
    data = _photos(tmp_path / "data", *(f"cat\x1b[2J/{n}" if isinstance(n, str) else b"dog/" + n for n in names))
    _photos(data / "dog", *(f"{number}.jpg" for number in range(4)))
    for command in (("check",), ("check", "--json", tmp_path / "f.json", "--html", tmp_path / "f.html")):
        done = manylabel("data", *command, data, "--set", "data.allow_markup=true")
        assert OBEYED.isdisjoint(done.stdout + done.stderr), done
        assert "Traceback" not in done.stderr
        assert done.returncode in (0, 1), done.stderr
    assert OBEYED.isdisjoint((tmp_path / "f.json").read_text())
    for wrong in ("\x1b[31mx", "x\u202e"):
        for command in (["train", wrong], ["data", "check", wrong], [wrong], ["train", f"--{wrong}"]):
            done = manylabel(*command)
            assert done.returncode == 2
            assert OBEYED.isdisjoint(done.stdout + done.stderr), done


def _run(arguments: list[str | Path], **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "manylabel", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, env={**os.environ, **environment}, timeout=120)


@pytest.mark.parametrize("columns", ["0", "junk", "1", "5", "-3", "²", "99999999999999999999"])
def test_every_width_shows_something(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("LINES", columns)
    file = io.StringIO()
    out = Terminal(file=file)
    table = Table("figure", "percent")
    table.add_row("mAP (not interpolated)", "83.21")
    out.print(table)
    assert "83.21" in file.getvalue()
    assert max(map(len, file.getvalue().splitlines())) <= 1000


def test_a_terminal_without_columns_prints(tmp_path: Path) -> None:
    data = _photos(tmp_path / "data", *(f"{kind}/{n}.jpg" for kind in ("cat", "dog") for n in range(3)))
    done = _run(["data", "check", data], COLUMNS="0")
    assert b"labels per image" in done.stdout
    done = _run(["data", "check", tmp_path / "gone"], COLUMNS="0")
    assert b"does not exist" in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_no_output_fails_for_want_of_an_encoding(tmp_path: Path, encoding: str) -> None:
    data = _photos(tmp_path / "data", *(f"{kind}/{n}.jpg" for kind in ("größe", "日本") for n in range(3)))
    done = _run(["data", "check", data], PYTHONIOENCODING=encoding)
    assert b"Traceback" not in done.stderr
    assert done.returncode in (0, 1)
    assert b"\\u65e5\\u672c" in done.stdout
    done = _run(["data", "convert", data, tmp_path / "日本.csv", "--to", "csv"], PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    done = _run(["data", "check", data], PYTHONIOENCODING="", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert b"Traceback" not in done.stderr
    assert done.returncode == 2  # names of folders are bytes there, and no labels
    assert b"holds half of a character" in done.stderr


def test_a_full_standard_output_is_one_sentence() -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "manylabel", "recipes"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == [
        "error: standard output: no space left on device; make room, or name another place"
    ]


def test_closed_streams_are_no_error() -> None:
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m manylabel recipes >&- 2>&-"], capture_output=True, timeout=120
    )
    assert done.returncode == 0


def test_a_reader_that_went_away_ends_it_quietly(tmp_path: Path) -> None:
    data = str(_photos(tmp_path / "data", *(f"{kind}/{n}.jpg" for kind in ("cat", "dog") for n in range(3))))
    gone = ["predict", "nowhere", "x.jpg"]
    plans = (["--help"], "stdout"), (["settings"], "stdout"), (["data", "check", data], "stdout"), (gone, "stderr")
    for words, stream in plans:
        away, ours = os.pipe()
        os.close(away)
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: ours}
        done = subprocess.run([sys.executable, "-m", "manylabel", *words], timeout=120, **streams)  # type: ignore[call-overload]
        os.close(ours)
        assert done.returncode == 141, words
        assert b"Error" not in (done.stderr or b"")


def test_a_ctrl_c_after_all_is_done_is_no_error() -> None:
    code = (
        "import atexit, logging, os, signal, sys\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"  # registered first: it comes last
        "import manylabel.cli\n"
        "sys.argv = ['manylabel', 'recipes']\n"
        "manylabel.cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120)
    assert done.returncode == 0
    assert not done.stderr

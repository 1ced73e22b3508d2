"""What every test stands on: no network, a failure where a promised tool is missing, a command that runs a test alone."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import alone
from no_network import is_here
from tree import HERE

TESTS = """
import pytest

@pytest.mark.tool
def test_with_a_browser():
    pytest.skip("needs a browser")

def test_of_another_system():
    pytest.skip("needs another system")

@pytest.mark.nightly
@pytest.mark.parametrize("name", ["it's $HOME; a - b"])
def test_named_strangely(name):
    assert not name
"""


HERE_TOO = ["127.0.0.1", "127.9.9.9", "::1", "::", "0.0.0.0", "::ffff:127.0.0.1", "localhost", None, ""]
ELSEWHERE = ["8.8.8.8", "::ffff:8.8.8.8", "::2", "2001:4860::8888", "127.0.0.1.example.org", "localhost.example.org"]


@pytest.mark.parametrize("host", HERE_TOO)
def test_this_machine_is_here(host: str | None) -> None:
    assert is_here(host)
    assert is_here(socket.gethostname())


@pytest.mark.parametrize("host", ELSEWHERE)
def test_others_cannot_be_reached(host: str) -> None:
    assert not is_here(host)
    assert not is_here(host.encode())
    with pytest.raises(OSError, match="tests have no network"):
        socket.create_connection((host, 80), timeout=5)
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind) as asking:
            for ask in (asking.connect, asking.connect_ex, lambda to, asking=asking: asking.sendto(b"x", to)):
                with pytest.raises(OSError, match="tests have no network"):
                    ask((host, 53))


def test_names_are_not_looked_up() -> None:
    with pytest.raises(socket.gaierror, match=r"where 'example.org' is; tests have no network"):
        socket.getaddrinfo("example.org", 80)
    assert socket.getaddrinfo("localhost", 80)
    assert socket.getaddrinfo("8.8.8.8", 80)[0][4][0] == "8.8.8.8"


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a run of the tests above, on a machine that should have every tool."""
    folder = tmp_path_factory.mktemp("tests")
    (folder / "test_it.py").write_text(TESTS, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  tool\n  nightly\naddopts = -ra -q\n", encoding="utf-8")
    promised = {**os.environ, "MANYLABEL_ALL_TOOLS": "1", "PYTHONPATH": f"{HERE / 'tests'}{os.pathsep}{HERE}"}
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:randomly"]
    done = subprocess.run(command, cwd=folder, env=promised, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_a_skip_fails_where_the_tool_is_promised(said: str) -> None:
    assert "FAILED test_it.py::test_with_a_browser" in said
    assert "skipped, though every tool should be here" in said
    assert "2 failed, 1 skipped" in said


def test_a_failure_says_how_to_run_it_alone(said: str) -> None:
    commands = [shlex.split(line) for line in said.splitlines() if line.startswith(sys.executable)]
    assert [command[1:-1] for command in commands] == [["-m", "pytest", "-p", "no:randomly", "-m", ""]] * 2
    assert commands[1][-1] == "test_it.py::test_named_strangely[it's $HOME; a - b]"


def test_the_command_fits_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/a tree/.venv/bin/python")
    assert alone("t.py::test", Path("/a tree")) == ".venv/bin/python -m pytest -p no:randomly -m '' t.py::test"
    assert alone("t.py::test", Path("/other")).startswith("'/a tree/.venv/bin/python' -m pytest")

"""Refusals, failures that pass, redirects, proxies and further addresses."""

from __future__ import annotations

import http.server
import io
import socket
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from loopback import CONTENT, PATH, QUICK, Plan, Site, archive_of, bring
from loopback import site as site
from loopback import target as target

from manylabel.data.fetch import Archive, connection
from manylabel.data.fetch import download as download_module
from manylabel.data.fetch.connection import Missing, Patience, Unreachable
from manylabel.data.fetch.download import download
from manylabel.error import DataError

LONG = Patience(first_wait=0.001, longest_wait=0.05)  # the usual number of tries, but no waiting


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_final(site: Site, target: Path, status: int) -> None:
    site.always[PATH] = Plan(status=status)
    with pytest.raises(Missing, match=f"answered {status}"):
        bring(site, target)
    assert len(site.asked) == 1


def test_an_unwell_server_is_asked_again(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    site.plans[PATH] = [Plan(status=500), Plan(status=503, headers={"Retry-After": "0"}), Plan(status=429)]
    bring(site, target)
    assert target.read_bytes() == CONTENT
    site.always[PATH] = Plan(status=500)
    said: list[str] = []
    with pytest.raises(Unreachable, match=r"answered 500 .*8 times in a row"):
        bring(site, target.with_name("again"), patience=LONG, say=said.append)
    assert len(said) == 7
    assert said[-1].endswith("answered 500 Internal Server Error; trying again in 0.05 s (8 of 8)")


def test_a_stalled_connection_times_out_and_is_taken_up(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    site.plans[PATH] = [Plan(stall=True)]
    bring(site, target, patience=Patience(tries=3, first_wait=0.001, timeout=2.0))
    assert target.read_bytes() == CONTENT
    assert len(site.asked) == 2


def test_nobody_listening(tmp_path: Path, site: Site) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        port = server.server_port
    here = f"127.0.0.1:{port}"
    site.address, said = f"http://{here}", list[str]()
    with pytest.raises(Unreachable, match=f"connection refused by {here}, 4 times in a row"):
        bring(site, tmp_path / "toy.tar", patience=LONG, say=said.append)
    why = f"http://{here}{PATH}: connection refused by {here}; trying again in"
    assert said == [f"{why} 0.001 s (2 of 4)", f"{why} 0.002 s (3 of 4)", f"{why} 0.004 s (4 of 4)"]


def test_an_unknown_name_is_soon_given_up(site: Site, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*args: object, **more: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    site.address = "http://nowhere.example"
    with pytest.raises(Unreachable, match=r"no address is known for nowhere\.example, 4 times in a row"):
        bring(site, target, patience=LONG)
    with pytest.raises(Unreachable, match="2 times in a row"):  # never more than somebody asked for
        bring(site, target, patience=replace(LONG, tries=2))


def test_a_server_that_has_answered_is_waited_for(site: Site, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.files[PATH] = CONTENT
    site.plans[PATH] = [Plan(cut_after=1_000)]
    ask, asked = download_module.request, list[str]()

    def restarting(url: str, *more: object) -> object:  # away from the second to the sixth try
        asked.append(url)
        if 1 < len(asked) < 7:
            raise connection._no_answer(url, "127.0.0.1", ConnectionRefusedError())
        return ask(url, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(download_module, "request", restarting)
    said: list[str] = []
    bring(site, target, patience=LONG, say=said.append)
    assert target.read_bytes() == CONTENT
    assert len(asked) == 7
    assert "the connection ended after 1,000 of 300,000 bytes; trying again in 0.001 s (2 of 8)" in said[0]
    assert "connection refused by 127.0.0.1; trying again in 0.032 s (7 of 8)" in said[5]


def test_the_host_that_refused_is_named_after_a_redirect(site: Site, target: Path) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        nobody = f"127.0.0.1:{server.server_port}"
    site.always[PATH] = Plan(status=302, location=f"http://{nobody}/moved")
    with pytest.raises(Unreachable, match=f"{site.address}{PATH}: connection refused by {nobody}"):
        bring(site, target)


def test_waits_grow_and_are_limited() -> None:
    patience = Patience(first_wait=1.0, longest_wait=60.0)
    assert [patience.wait(n) for n in (1, 2, 3, 7, 50)] == [1.0, 2.0, 4.0, 60.0, 60.0]
    assert patience.wait(1, asked=30.0) == 30.0
    assert patience.wait(1, asked=86_400.0) == 60.0


def test_a_redirect_is_followed(site: Site, target: Path) -> None:
    site.files["/moved"] = CONTENT
    site.always[PATH] = Plan(status=302, location="/moved")
    bring(site, target)
    assert target.read_bytes() == CONTENT


def test_redirects_in_circles_and_away_from_the_web_are_refused(site: Site, target: Path, tmp_path: Path) -> None:
    site.always[PATH] = Plan(status=302, location=PATH)
    with pytest.raises(DataError, match="redirects in circles"):
        bring(site, target)
    (tmp_path / "secret").write_bytes(CONTENT)
    for place in (f"file://{tmp_path}/secret", "ftp://127.0.0.1/x"):
        site.always[PATH] = Plan(status=302, location=place)
        with pytest.raises(DataError, match="not HTTP"):
            bring(site, target)
    for number in range(20):
        site.always[f"/{number}"] = Plan(status=302, location=f"/{number + 1}")
    site.always[PATH] = Plan(status=302, location="/0")
    with pytest.raises(DataError, match="more than 5 times"):
        bring(site, target)
    assert not target.exists()


def test_the_next_address_is_tried_when_the_first_has_it_not(site: Site, target: Path) -> None:
    site.files["/second"] = CONTENT
    archive = archive_of(CONTENT, also=(f"{site.address}/second",))
    archive = Archive(**{**archive.__dict__, "url": f"{site.address}/first"})
    said: list[str] = []
    got = download(archive, target, patience=QUICK, say=said.append, advance=lambda count: None)
    assert (got.url, site.paths()) == (f"{site.address}/second", ["/first", "/second"])
    assert "trying" in said[0]


def test_a_proxy_of_the_environment_is_used(site: Site, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", site.address)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    site.files["http://nowhere.example/data/toy.tar"] = CONTENT  # a proxy is asked for whole addresses
    download(
        archive_of(CONTENT),
        target,
        mirror="http://nowhere.example",
        patience=QUICK,
        say=lambda text: None,
        advance=lambda count: None,
    )
    assert target.read_bytes() == CONTENT


def test_an_encrypted_address_is_not_left_for_an_open_one() -> None:
    handler = connection._WebOnly()
    asked = urllib.request.Request("https://official.example/a")
    with pytest.raises(DataError, match="not encrypted"):
        handler.redirect_request(asked, io.BytesIO(), 302, "Found", {}, "http://official.example/a")
    followed = handler.redirect_request(asked, io.BytesIO(), 302, "Found", {}, "https://official.example/b")
    assert followed is not None

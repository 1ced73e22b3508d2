"""Refusals, failures that pass, redirects, proxies and further addresses."""

from __future__ import annotations

import http.server
import io
import urllib.request
from pathlib import Path

import pytest
from loopback import CONTENT, PATH, QUICK, Plan, Site, archive_of, bring
from loopback import site as site
from loopback import target as target

from manylabel.data.fetch import Archive, connection
from manylabel.data.fetch.connection import Missing, Patience, Unreachable
from manylabel.data.fetch.download import download
from manylabel.error import DataError


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
    with pytest.raises(Unreachable, match=r"answered 500 .*4 times in a row"):
        bring(site, target.with_name("again"))


def test_a_stalled_connection_times_out_and_is_taken_up(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    site.plans[PATH] = [Plan(stall=True)]
    bring(site, target, patience=Patience(tries=3, first_wait=0.001, timeout=0.3))
    assert target.read_bytes() == CONTENT
    assert len(site.asked) == 2


def test_nobody_listening(tmp_path: Path, site: Site) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        port = server.server_port
    site.address = f"http://127.0.0.1:{port}"
    with pytest.raises(Unreachable, match="refused"):
        bring(site, tmp_path / "toy.tar")


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

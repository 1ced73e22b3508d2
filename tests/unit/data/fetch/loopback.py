"""A server on this machine that can behave badly on request, and keeps a record of what it was asked and sent."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manylabel.data.fetch import Archive, DataSet, Patience
from manylabel.data.fetch.download import Downloaded, download

CONTENT = np.random.default_rng(0).bytes(300_000)
PATH = "/data/toy.tar"
QUICK = Patience(tries=4, first_wait=0.001, longest_wait=0.01, timeout=5.0)


@dataclass
class Plan:
    """How to answer one request; without any, a well-behaved server with ranges and an ETag."""

    cut_after: int | None = None  # bytes of the body before the connection is closed
    status: int | None = None
    location: str = ""
    body: bytes | None = None  # instead of the file
    length: int | None = None  # announced instead of the true length
    ranges: bool = True
    etag: str | None = None
    chunked: bool = False
    no_length: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    stall: bool = False  # after `cut_after` bytes (or none) send nothing, but do not close either


@dataclass
class Asked:
    path: str
    range: str | None
    if_range: str | None
    status: int = 0
    sent: int = 0


class Site:
    """`files` are served; `plans[path]` are used up one by one, `always[path]` is used after them."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.plans: dict[str, list[Plan]] = {}
        self.always: dict[str, Plan] = {}
        self.asked: list[Asked] = []
        self.address = ""
        self.released = threading.Event()

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    def plan(self, path: str) -> Plan:
        return self.plans[path].pop(0) if self.plans.get(path) else self.always.get(path, Plan())


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = Asked(self.path, self.headers.get("Range"), self.headers.get("If-Range"))
            site.asked.append(asked)
            plan = site.plan(self.path)
            body = site.files.get(self.path) if plan.body is None else plan.body
            status = plan.status or (200 if body is not None else 404)
            body = body or b""
            etag = plan.etag or f'"{hashlib.md5(body).hexdigest()}"'
            whole = len(body)
            if plan.ranges and asked.range and status == 200 and asked.if_range in (None, etag):
                start = int(asked.range.removeprefix("bytes=").removesuffix("-"))
                status, body = (206, body[start:]) if start < whole else (416, b"")
            asked.status = status
            self._head(plan, status, body, whole, etag)
            self._body(plan, body, asked)

        def _head(self, plan: Plan, status: int, body: bytes, whole: int, etag: str) -> None:
            self.send_response(status)
            if plan.location:
                self.send_header("Location", plan.location)
            if status in (200, 206):
                self.send_header("ETag", etag)
            if status == 206:
                self.send_header("Content-Range", f"bytes {whole - len(body)}-{whole - 1}/{whole}")
            if status == 416:
                self.send_header("Content-Range", f"bytes */{whole}")
            if plan.chunked:
                self.send_header("Transfer-Encoding", "chunked")
            elif not plan.no_length:
                self.send_header("Content-Length", str(len(body) if plan.length is None else plan.length))
            for name, value in plan.headers.items():
                self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()

        def _body(self, plan: Plan, body: bytes, asked: Asked) -> None:
            self.close_connection = True
            if plan.stall:
                self.wfile.write(body[: plan.cut_after or 0])
                self.wfile.flush()
                site.released.wait(10)
                return
            body = body if plan.cut_after is None else body[: plan.cut_after]
            asked.sent = len(body)
            try:
                if plan.chunked:
                    for at in range(0, len(body), 1000):
                        piece = body[at : at + 1000]
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    if plan.cut_after is None:
                        self.wfile.write(b"0\r\n\r\n")
                else:
                    self.wfile.write(body)
            except OSError:
                pass  # the other side had enough

        def log_message(self, *args: Any) -> None:
            pass

    return Handler


@contextmanager
def serving() -> Iterator[Site]:
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    server.daemon_threads = True
    site.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server for one test, with no proxy in between."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with serving() as running:
        yield running


def tar_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zip_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def archive_of(content: bytes, path: str = "/data/toy.tar", **more: Any) -> Archive:
    """A catalogue entry that tells the truth about `content`, unless `more` says otherwise."""
    facts: dict[str, Any] = {
        "size": len(content),
        "unpacked": max(len(content), 1),
        "checksum": f"sha256:{hashlib.sha256(content).hexdigest()}",
    }
    return Archive(f"https://official.example{path}", **{**facts, **more})


def data_set(
    *archives: Archive, name: str = "toy", expects: tuple[tuple[str | None, str], ...] = ()
) -> dict[str, DataSet]:
    licence = "everybody may do everything"
    return {name: DataSet(name, "a toy", licence, "https://official.example/licence", archives, expects)}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Where the one file goes."""
    return tmp_path / "archives" / "toy.tar"


def bring(site: Site, path: Path, archive: Archive | None = None, **more: Any) -> Downloaded:
    """Download from the site, without waiting and without a word unless `more` says otherwise."""
    told: dict[str, Any] = {"say": lambda text: None, "advance": lambda count: None, "patience": QUICK, **more}
    return download(archive or archive_of(CONTENT), path, mirror=site.address, **told)

"""One HTTP(S) request: mirrors, redirects that stay on the web, and failures sorted into passing and final ones."""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import urljoin, urlsplit

from manylabel.error import DataError
from manylabel.version import VERSION

PASSING = {408, 425, 429, 500, 502, 503, 504}  # answers that may be another one in a minute
REDIRECTS = 5


@dataclass(frozen=True)
class Patience:
    """How long to bear with a server: tries in a row without progress, waits between them, seconds per read."""

    tries: int = 8
    tries_without_host: int = 4  # while nobody has answered at all: a wrong address, or no network
    first_wait: float = 1.0
    longest_wait: float = 60.0
    timeout: float = 60.0

    def most_tries(self, no_host: bool) -> int:
        return min(self.tries, self.tries_without_host) if no_host else self.tries

    def wait(self, failures: int, asked: float = 0.0) -> float:
        """Seconds before the next try; what the server asked for counts, up to the longest wait."""
        return min(self.longest_wait, max(asked, self.first_wait * 2.0 ** (failures - 1)))


class Passing(Exception):
    """This try failed; the next may not."""

    def __init__(self, why: str, asked: float = 0.0, *, no_host: bool = False) -> None:
        super().__init__(why)
        self.asked = asked
        self.no_host = no_host  # the name is unknown, or nobody listens there


class RangeRefused(Exception):
    """The server has no such range; `total` is how long it says the file is (-1 when it does not)."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self.total = total


class Missing(DataError):
    """The server is there and says that it does not have, or does not give, this file."""


class Unreachable(DataError):
    """All tries are used up."""


def mirrored(url: str, mirror: str | None) -> str:
    """The same path on the mirror: scheme, host and an optional prefix are the mirror's."""
    if mirror is None:
        return url
    return mirror.rstrip("/") + urlsplit(url).path


def check_mirror(mirror: str | None) -> None:
    if mirror is not None and (urlsplit(mirror).scheme not in ("http", "https") or not urlsplit(mirror).netloc):
        raise DataError(f"the mirror must be an address like https://host/prefix, not {mirror!r}")


class _WebOnly(urllib.request.HTTPRedirectHandler):
    """Follows a few redirects (urllib refuses file: itself), never from an encrypted connection to an open one."""

    max_redirections = REDIRECTS
    max_repeats = 2
    followed: urllib.request.Request | None = None  # the last one

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        before, after = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if after not in ("http", "https"):
            raise DataError(f"{req.full_url} redirects to {newurl}, which is not HTTP; not followed")
        if before == "https" and after != "https":
            raise DataError(f"{req.full_url} redirects to {newurl}, which is not encrypted; not followed")
        self.followed = super().redirect_request(req, fp, code, msg, headers, newurl)
        return self.followed


def _opener(redirects: _WebOnly) -> urllib.request.OpenerDirector:
    """Only what the web needs: urllib's usual one would also read file: and ftp: addresses."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),  # http_proxy, https_proxy and no_proxy are honoured
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
        redirects,
    ):
        opener.add_handler(handler)
    return opener


def request(url: str, timeout: float, headers: dict[str, str] | None = None) -> http.client.HTTPResponse:
    """The open answer (200 or 206); Passing when it is worth another try, DataError when it is not."""
    asked = urllib.request.Request(url, headers={"User-Agent": f"manylabel/{VERSION}", **(headers or {})})
    redirects = _WebOnly()
    try:
        answer: http.client.HTTPResponse = _opener(redirects).open(asked, timeout=timeout)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416:
                total = (error.headers.get("Content-Range") or "").rpartition("/")[2]
                raise RangeRefused(int(total) if total.isdigit() else -1) from None
            if 300 <= error.code < 400:
                place = urljoin(url, error.headers.get("Location") or "")
                web = urlsplit(place).scheme in ("http", "https")
                why = f"in circles or more than {REDIRECTS} times" if web else f"to {place}, which is not HTTP"
                raise DataError(f"{url} redirects {why}; not followed") from None
            said = f"{url}: the server answered {error.code} {error.reason}"
            if error.code in PASSING:
                raise Passing(said, _seconds(error.headers.get("Retry-After"))) from None
            raise Missing(f"{said}; check the address, or give a mirror that has it") from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise DataError(f"{url}: the server's certificate cannot be trusted ({error.reason})") from None
        raise _no_answer(url, (redirects.followed or asked).host, error.reason) from None
    except (OSError, http.client.HTTPException) as error:
        raise Passing(f"{url}: {error or type(error).__name__}") from None
    if answer.status not in (200, 206):
        answer.close()
        raise DataError(f"{url}: the server answered {answer.status}, not a file")
    return answer


def _no_answer(url: str, host: str, reason: str | BaseException) -> Passing:
    """`host` is the one that was called: a proxy, or where a redirect led, may be another than the address has."""
    if isinstance(reason, ConnectionRefusedError):
        return Passing(f"{url}: connection refused by {host}", no_host=True)
    if isinstance(reason, socket.gaierror):  # also when there is no network to ask
        return Passing(f"{url}: no address is known for {host}", no_host=True)
    return Passing(f"{url}: {reason}")


def _seconds(text: str | None) -> float:
    return float(text) if text and text.isdigit() else 0.0


def read(answer: http.client.HTTPResponse, amount: int, url: str) -> bytes:
    """What has arrived, up to `amount` bytes; empty at the end (or where a counted body was cut: count it)."""
    try:
        return answer.read1(amount)
    except (OSError, http.client.HTTPException) as error:
        raise Passing(f"{url}: {error or type(error).__name__}") from None


def stated_md5(answer: http.client.HTTPResponse) -> str | None:
    """Google's storage states the md5 of the whole file with every answer."""
    for value in answer.headers.get_all("x-goog-hash") or ():
        for part in value.split(","):
            kind, _, text = part.strip().partition("=")
            if kind == "md5":
                try:
                    return f"md5:{base64.b64decode(text, validate=True).hex()}"
                except ValueError:
                    return None
    return None

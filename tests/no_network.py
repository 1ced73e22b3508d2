"""Tests have no network: this process reaches nobody but this machine, and asks nobody for the address of a name."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Host = str | bytes | None


def is_here(host: Host) -> bool:
    """Whether a name or an address is this machine's own."""
    address = _address(host)
    if address is None:
        return _text(host).lower() in ("", "localhost", socket.gethostname().lower())
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _address(host: Host) -> Address | None:
    """None for a name."""
    try:
        return ipaddress.ip_address(_text(host).partition("%")[0])
    except ValueError:
        return None


def _text(host: Host) -> str:
    return host.decode("ascii", "replace") if isinstance(host, bytes) else host or ""


def install() -> None:
    connect, connect_ex, sendto = socket.socket.connect, socket.socket.connect_ex, socket.socket.sendto
    look_up = socket.getaddrinfo

    def check(asking: socket.socket, address: Any) -> None:
        if asking.family in (socket.AF_INET, socket.AF_INET6) and not is_here(address[0]):
            raise OSError(f"a test asked for {address}; tests have no network")

    def connect_here(self: socket.socket, address: Any) -> None:
        check(self, address)
        connect(self, address)

    def connect_ex_here(self: socket.socket, address: Any) -> int:
        check(self, address)
        return connect_ex(self, address)

    def send_here(self: socket.socket, data: Any, *more: Any) -> int:
        check(self, more[-1])
        return sendto(self, data, *more)

    def look_up_here(host: Host, *more: Any, **named: Any) -> Any:
        if _address(host) is None and not is_here(host):
            raise socket.gaierror(socket.EAI_NONAME, f"a test asked where {host!r} is; tests have no network")
        return look_up(host, *more, **named)

    socket.socket.connect = connect_here  # type: ignore[method-assign]
    socket.socket.connect_ex = connect_ex_here  # type: ignore[method-assign]
    socket.socket.sendto = send_here  # type: ignore[assignment, method-assign]
    socket.getaddrinfo = look_up_here

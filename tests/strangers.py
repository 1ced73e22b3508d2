"""Files as a stranger may have written them, and the limits within which each must be read or refused."""

from __future__ import annotations

import copy
import io
import itertools
import json
import random
import re
import resource
import struct
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import yaml

RAW = "raw:"  # what follows is written as it is
MOST_SECONDS = 2.0
MOST_MEGABYTES = 200


def peak() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def now() -> float:
    status = Path("/proc/self/status")
    if not status.exists():
        return peak()
    return next(int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line.startswith("VmRSS"))


def forget_peak() -> None:
    """Let the peak begin again at what is used now, where the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def high_water() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return peak()


@contextmanager
def limits(seconds: float = MOST_SECONDS, megabytes: float = MOST_MEGABYTES) -> Iterator[None]:
    """Own time of the processor, so that a busy machine fails nothing."""
    forget_peak()
    before, started = now(), time.process_time()
    yield
    took, more = time.process_time() - started, high_water() - before
    assert took <= seconds, f"it took {took:.1f} s"
    assert more <= megabytes, f"it took {more:.0f} MB more"


# --- mutations: of real files, so that what is wrong lies deep inside ----------------------------------------------------

ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        [],
        {},
        "",
        "x" * 3000,
        "\x00\x1b[2J",
        "../../etc/passwd",
        -1,
        0,
        10**9,
        2**63,
        10**38,
        1e308,
        -1e308,
    ),
    *(RAW + "NaN", RAW + "-Infinity", RAW + "1" + 400 * "0", RAW + "1e999", RAW + "[" * 5000, RAW + '{"a":' * 120),
    *([[[[[1]]]]], {"name": {"name": []}}, ["a"] * 50, [0] * 1000, {str(i): i for i in range(300)}, 0.5, "1", "NaN"),
)
LINES = (
    *("&a [*a]", "*nobody", "<<: *a", "!!python/object/apply:os.system ['touch hacked']", ".nan", ".inf", "1:2:3:4:5"),
    *("!!int ''", "!!timestamp x", "!!binary é", "? [1, 2]\n: 3", "2001-99-99", "{" * 200, "[" * 3000, "- " * 300),
    *(
        "0x" + "f" * 5000,
        "9" * 5000,
        "!!set {a, b}",
        "!!omap [a: 1]",
        "|\n  text",
        "\t",
        "\x00",
        "1e999",
        "~",
        "[]",
        "{}",
    ),
)


def mutated(data: bytes, name: str, dice: random.Random) -> bytes:
    """The file with something wrong in it: in its bytes, or in what it says, by its kind."""
    kinds: dict[str, Callable[[bytes, random.Random], bytes]] = {
        ".json": _json,
        ".jsonl": _json_lines,
        ".yaml": _yaml,
        ".npz": _npz,
        ".npy": _npy,
        ".safetensors": _tensors,
    }
    own = kinds.get(Path(name).suffix, _bytes)
    return (own if dice.random() < 0.75 else _bytes)(data, dice)


def _bytes(data: bytes, dice: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 3, 20))):
        a, b = sorted((dice.randrange(len(changed) + 1), dice.randrange(len(changed) + 1)))
        what = dice.randrange(6)
        if what == 0 and changed:
            changed[min(a, len(changed) - 1)] = dice.randrange(256)
        elif what == 1:
            del changed[a : a + dice.choice((1, 8, 500))]
        elif what == 2:
            changed[a:a] = changed[b : b + 300]
        elif what == 3:
            changed[a:a] = dice.choice((b"\xff\xff\xff\xff", b"\x00" * 64, b'"', b"[", b"\n", b",", b"-", b"9" * 500))
        elif what == 4:
            del changed[b:]
        else:
            changed = changed[:a] + changed[b:]
    return bytes(changed)


def _text_of(value: Any) -> bytes:
    """JSON with what no JSON writer would write, where the value asks for it."""
    text = json.dumps(value, indent=1)
    return re.sub(rf'"{RAW}((?:[^"\\]|\\.)*)"', lambda found: json.loads(f'"{found[1]}"'), text).encode()


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        inside = waiting.pop()
        keys = list(inside) if isinstance(inside, dict) else range(len(inside))
        for key in keys:
            found.append((inside, key))
            if isinstance(inside[key], (dict, list)):
                waiting.append(inside[key])
    return found


def _change(value: Any, dice: random.Random) -> Any:
    if not isinstance(value, (dict, list)) or not value or dice.random() < 0.03:
        return dice.choice(ODD)
    for _ in range(dice.choice((1, 1, 1, 2, 5))):
        places = _places(value)
        if not places:
            break
        inside, key = dice.choice(places)
        what = dice.randrange(5)
        if what == 0:
            del inside[key]
        elif what == 1 and isinstance(inside, list):
            inside.append(inside[key])
        elif what == 1:
            inside[dice.choice(("x", "", "name", "é" * 300))] = inside.pop(key)
        elif what == 2:
            other, its = dice.choice(places)
            if its in other if isinstance(other, dict) else its < len(other):
                inside[key] = copy.deepcopy(other[its])
        else:
            inside[key] = copy.deepcopy(dice.choice(ODD))
    return value


def _json(data: bytes, dice: random.Random) -> bytes:
    return _text_of(_change(json.loads(data), dice))


def _json_lines(data: bytes, dice: random.Random) -> bytes:
    lines = data.splitlines()
    at = dice.randrange(len(lines))
    lines[at] = _text_of(_change(json.loads(lines[at]), dice)).replace(b"\n", b" ")
    return b"\n".join(lines) + b"\n"


def _yaml(data: bytes, dice: random.Random) -> bytes:
    if dice.random() < 0.5:
        value = _change(yaml.safe_load(data), dice)
        text: str = yaml.safe_dump(value, allow_unicode=True)
        return text.replace(RAW, "").encode()
    lines = data.decode().splitlines()
    at = dice.randrange(len(lines))
    key, colon, _ = lines[at].partition(":")
    what = dice.choice(LINES)
    lines[at] = dice.choice((f"{key}{colon} {what}", what, f"{lines[at]} {what}", f"{key}{colon} &a {what}"))
    if dice.random() < 0.3:
        letters = "abcdefghijklmnop"
        lines += ["a: &a [x, x, x, x, x, x, x, x, x]"]
        lines += [f"{b}: &{b} [{', '.join(9 * [f'*{a}'])}]" for a, b in itertools.pairwise(letters)]
    return "\n".join(lines).encode()


def _npy_header(data: bytes, dice: random.Random) -> bytes:
    start = data.find(b"{")
    end = data.find(b"\n", start)
    shape = dice.choice((b"(10000000000,)", b"(-1, 4)", b"(1, 2, 3)", b"()", b"(2**9,)", b"(99999999999999999999, 9)"))
    kind = dice.choice((b"'|O'", b"'<f8'", b"'<U1000000'", b"'<M8[D]'", b"'|V0'", b"[('a', '|O')]", b"'<U0'"))
    header = data[start:end]
    if dice.random() < 0.6:
        header = re.sub(rb"'shape': \([^)]*\)", b"'shape': " + shape, header)
    if dice.random() < 0.6:
        header = re.sub(rb"'descr': '[^']*'", b"'descr': " + kind, header)
    header = dice.choice((header, header, header.rstrip()[:-3], b"(" * 3000, b"{'shape': __import__('os')}"))
    return data[: start - 2] + struct.pack("<H", len(header) + 1) + header + data[end:]


def _npy(data: bytes, dice: random.Random) -> bytes:
    return _npy_header(data, dice)


def _npz(data: bytes, dice: random.Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    name = dice.choice(list(members))
    what = dice.randrange(7)
    if what < 3:
        members[name] = _npy_header(members[name], dice)
    elif what == 3:
        members[name] = _bytes(members[name], dice)
    elif what == 4:
        members[dice.choice(("x.npy", "../x.npy", "keys"))] = members.pop(name)
    else:  # much from little
        file = io.BytesIO()
        np.save(file, np.zeros((dice.choice((300, 4000)), 4000), dice.choice((np.float32, np.int8, "U9"))))
        members[name] = file.getvalue()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for each, content in members.items():
            packed.writestr(each, content)
    lying = bytearray(out.getvalue())
    if what == 6:  # in the directory at the end: another size than there is
        at = lying.rfind(b"PK\x01\x02") + dice.choice((20, 24, 42))
        lying[at : at + 4] = struct.pack("<I", dice.choice((0, 7, 2**31, 2**32 - 1)))
    return bytes(lying)


def _tensors(data: bytes, dice: random.Random) -> bytes:
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    name = dice.choice([key for key in header if key != "__metadata__"])
    entry, what = header[name], dice.randrange(8)
    body = bytearray(data[8 + length :])
    if what == 0:
        entry["data_offsets"] = dice.choice(([0, 2**63], [-1, 4], [8, 0], [0, 4], [], "x", [0, 10**30]))
    elif what == 1:
        entry["shape"] = dice.choice(([2**62], [2**32, 2**32], [-1], [], [0], [2**62, 0], "x", [1.5]))
    elif what == 2:
        entry["dtype"] = dice.choice(("F64", "I8", "BOOL", "F8_E4M3", "U16", "X", None, "C64", "F4"))
    elif what == 3:
        header[dice.choice(("x", "", "head.x"))] = header.pop(name)
    elif what == 4:
        header["__metadata__"] = dice.choice(({"values": "[" * 3000}, {"values": "NaN"}, {"a": 1}, None, []))
    elif what == 5:
        header = _change(header, dice)
    elif what == 6:  # numbers
        for _ in range(5):
            at = dice.randrange(max(1, len(body) - 4))
            body[at : at + 4] = struct.pack("<f", dice.choice((float("nan"), float("inf"), 3e38, -3e38, 1e-40, 1e9)))
    else:
        length = dice.choice((0, 1, 2**63, 2**31, length - 1, length + 8))
        return struct.pack("<Q", length) + data[8:]
    text = _text_of(header)
    return struct.pack("<Q", len(text)) + text + bytes(body)

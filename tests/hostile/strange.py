"""Values and bytes that a stranger puts into a file: of every kind that has broken a program before."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from manylabel.storage.atomic import sha256  # the checksum that an attacker computes as well as we do

DEEP = 100_000
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**63,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    " ",
    "\x1b[31mred",
    "\u202eevil",
    "a\nb",
    "../../next-door/diary.txt",
    "/etc/passwd",
    "x" * 100_000,
    [],
    {},
    [[]],
    {"a": {"b": None}},
    "NaN",
    -1e-320,
    "0x10",
    [None] * 1000,
)
BYTES = (
    b"\x00",
    b"\xff\xfe",
    b"\xc3\x28",
    b"[" * 300,
    b"NaN",
    b"1e999",
    b'"',
    b"\\ud800",
    b"{",
    b"\n\n",
    b"!!python/x",
    b"9" * 5000,
)
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


def deep_json(depth: int = DEEP, kind: str = "[") -> str:
    return "[" * depth + "]" * depth if kind == "[" else '{"a":' * depth + "1" + "}" * depth


def mutated(data: bytes, dice: random.Random) -> bytes:
    """The bytes with one to three accidents."""
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(data) + 1)
        kind = dice.randrange(6)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data = data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]
        elif kind == 2:
            data = data[:at] + dice.choice(BYTES) + data[at:]
        elif kind == 3:
            data = data[:at] + data[at + dice.randrange(1, 40) :]
        elif kind == 4:
            other = dice.randrange(len(data) + 1)
            data = data[:at] + data[other : other + dice.randrange(1, 200)] + data[at:]
        else:
            size = min(len(data) - at, dice.randrange(1, 64))
            data = data[:at] + bytes(size) + data[at + size :]
    return data


def with_a_strange_value(value: Any, dice: random.Random) -> Any:
    """These JSON values with one of them replaced, dropped, doubled or added to."""
    places = list(_places(value, ()))
    path = dice.choice(places)
    if not path:
        return dice.choice(VALUES)
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    kind = dice.randrange(8)
    if kind == 0 and isinstance(holder, dict):
        del holder[path[-1]]
    elif kind == 1 and isinstance(holder, list):
        holder.append(holder[path[-1]])
    elif kind == 2 and isinstance(holder, dict):
        holder[dice.choice(("new", "", "x" * 5000, "\x1b[2J", "__class__"))] = dice.choice(VALUES)
    else:
        holder[path[-1]] = dice.choice(VALUES)
    return value


def _places(value: Any, before: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    found = [before]
    if isinstance(value, dict):
        for key, one in value.items():
            found += _places(one, (*before, key))
    elif isinstance(value, list):
        for number, one in enumerate(value[:50]):
            found += _places(one, (*before, number))
    return found


# --- bundles, whose checksums a stranger writes, too ---------------------------------------------------------------------


def resum(bundle: Path) -> None:
    path = bundle / "checksums.json"
    sums = json.loads(path.read_text())
    sums["sha256"] = {name: sha256(bundle / name) for name in sums["sha256"] if (bundle / name).is_file()}
    path.write_text(json.dumps(sums))


def edit_json(bundle: Path, name: str, change: Callable[[Any], Any]) -> None:
    """`change` alters the values in place, or returns others."""
    values = json.loads((bundle / name).read_text(encoding="utf-8"))
    returned = change(values)
    (bundle / name).write_text(json.dumps(values if returned is None else returned), encoding="utf-8")
    resum(bundle)


def put(bundle: Path, name: str, content: bytes | str) -> None:
    (bundle / name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    resum(bundle)


def edit_weights(bundle: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """The tensors by their names, changed in place."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(bundle / "weights.safetensors")
    change(tensors)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, bundle / "weights.safetensors")
    resum(bundle)

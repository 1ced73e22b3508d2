"""Whether what is to be typed exists: commands, options, settings, recipes, targets of make, extras of pip.

Everything is asked of the command line itself, so a name that it no longer knows is found wherever a page still has it.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from command import manylabel
from doc_blocks import HERE
from typer.main import get_command

from manylabel.cli import app
from manylabel.exporting.export_run import TARGETS

REDIRECTION = (">", ">>", "2>", "|")  # the rest is the shell's
PLACES = ("…", "R", "NAME")  # each stands for any name
LISTED = {"--recipe": "recipes", "--head": "heads", "--backbone": "backbones", "--format": "data formats"}
REGISTRIES = ("heads", "losses", "detectors", "texts")  # these list options of parts, `settings` all others


def problems(line: str) -> list[str]:
    """What is wrong with a command, comment and all, as it stands in a page."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        return [f"no shell reads this: {error}"]
    words = words[: next((i for i, word in enumerate(words) if word in REDIRECTION), None)]
    if words[-1] == "…" and not words[-2].startswith("--"):
        words.pop()  # "and so on", not an argument
    program, rest = words[0], words[1:]
    if program.startswith(".venv/bin/") and program != ".venv/bin/manylabel":
        return [] if _is_a_tool(program) else [f"nothing that {program} comes from is in pyproject.toml"]
    checks = {"make": _make, "pip": _pip, "source": _source}
    found = checks.get(program, _ours)(rest)
    return found + unknown_extras(line)


def unknown_extras(text: str) -> list[str]:
    """Extras that a page names and pyproject.toml does not have."""
    named = [extra for group in re.findall(r"manylabel\[([\w,-]+)\]", text) for extra in group.split(",")]
    return [f"there is no extra [{extra}]" for extra in named if extra not in extras()]


def unknown_options(span: str) -> list[str]:
    """Options in a sentence of which no command knows anything, and settings that do not exist."""
    words = span.split()
    options = [word.split("=")[0] for word in words if word.startswith("--") and word != "--"]
    found = [f"no command has {option}" for option in options if option not in all_options()]
    return found + _wrong_values(words)


def help_examples() -> Iterator[tuple[str, str]]:
    """(command, example) of every example that `manylabel COMMAND --help` shows; two spaces begin what it is for."""
    for name, command in _commands(get_command(app), ()):
        for line in (command.help or "").split("\n"):
            if line.strip().startswith("manylabel "):
                yield " ".join(name) or "manylabel", line.strip().split("  ")[0]


def unknown_setting(key: str) -> bool:
    """Whether `--set key=…` names nothing; tasks are called as one likes."""
    if key == "section.key":  # how a page says that there are keys
        return False
    of_task = re.sub(r"^tasks\.\w+\.", "tasks.NAME.", key)
    part = of_task.removeprefix("tasks.NAME.")
    tasks_option = of_task != part and part.split(".")[0] in ("neck", "head", "loss", "text") and part in settings()
    is_task = re.fullmatch(r"tasks\.\w+", key) is not None  # tasks.NAME=none leaves one out
    return not (is_task or tasks_option or of_task in settings() or f"{of_task}.name" in settings())


def setting_keys(section: Any, before: str = "") -> Iterator[str]:
    """The keys of a recipe, with dots between its levels."""
    for key, value in section.items():
        if isinstance(value, dict) and value:
            yield from setting_keys(value, f"{before}{key}.")
        else:
            yield f"{before}{key}"


@cache
def listed(*command: str) -> str:
    answer = manylabel(*command)
    assert answer.returncode == 0, f"manylabel {' '.join(command)}: {answer.stderr}"
    return answer.stdout


@cache
def settings() -> frozenset[str]:
    text = "\n".join(listed(name) for name in ("settings", *REGISTRIES))
    found = re.findall(r"^\s+([\w.]+) = ", text, re.MULTILINE)
    return frozenset(re.sub(r"^detector\.", "head.", name) for name in found)  # a detector is a head


@cache
def extras() -> frozenset[str]:
    return frozenset(_project()["optional-dependencies"])


@cache
def all_options() -> frozenset[str]:
    commands = [command for _, command in _commands(get_command(app), ())]
    return frozenset(
        name for command in commands for each in command.params for name in (*each.opts, *each.secondary_opts)
    )


def _ours(words: list[str]) -> list[str]:
    """The command is there, takes these options and so many arguments, and the names in it are known."""
    if not words:
        return ["nothing follows the name of the program"]
    try:
        _parse(["1" if re.fullmatch("[A-Z]", word) else word for word in words])  # --epochs E stands for any number
    except Exception as error:  # of click, or of the copy of it that typer brings
        return [getattr(error, "message", "") or str(error) or type(error).__name__]
    return _wrong_values(words) + _unknown_choice(words)


def _parse(words: list[str]) -> None:
    """As the command line would, but for running it; a command alone is being talked about, not called."""
    command, context = get_command(app), None
    while True:
        names = getattr(command, "commands", {})
        if not names:
            break
        context = command.make_context(command.name, list(words), parent=context)
        if not words or words[0] not in names:
            raise ValueError(f"there is no command {words[0] if words else ''!r}")
        command, words = names[words[0]], words[1:]
        if not words:
            return
    command.make_context(command.name, list(words), parent=context)


def _wrong_values(words: list[str]) -> list[str]:
    found = []
    for option, value in pairwise(words):
        if option == "--set" and unknown_setting(value.split("=", 1)[0]):
            found.append(f"there is no setting {value.split('=', 1)[0]!r}")
        if option == "--set" and "=" not in value:
            found.append(f"--set takes KEY=VALUE, not {value!r}")
        known = option not in LISTED or value in PLACES or value.endswith((".yaml", ".yml"))
        if not known and value not in _names(LISTED[option], value):
            found.append(f"there is no {option.lstrip('-')} {value!r}")
        if option == "--to":
            found += [f"nothing is written as {each!r}" for each in value.split("|") if each not in _written()]
    return found


def _names(listing: str, value: str) -> set[str]:
    text = listed(*listing.split())
    if listing == "backbones" and value not in text:
        text = manylabel("backbones", value).stdout  # timm's, too many to list at once
    return {line.split()[0].rstrip(":") for line in text.split("\n") if line.strip() and not line[0].isspace()}


def _written() -> set[str]:
    """What `data convert` and `export` take for --to."""
    formats = {line.split()[0] for line in listed("data", "formats").split("\n") if line.endswith("written")}
    return formats | {*TARGETS}


def _unknown_choice(words: list[str]) -> list[str]:
    """A data set that is not there to be fetched."""
    if words[:2] != ["data", "fetch"] or len(words) < 3:
        return []
    return [] if words[2] in _names("data fetch", words[2]) else [f"there is nothing {words[2]!r} to fetch"]


def _make(words: list[str]) -> list[str]:
    text = (HERE / "Makefile").read_text(encoding="utf-8")
    wanted = [word for word in words if "=" not in word]
    return [
        f"the Makefile has no target {word}" for word in wanted if not re.search(rf"^{re.escape(word)}:", text, re.M)
    ]


def _pip(words: list[str]) -> list[str]:
    ours = [word for word in words[1:] if not word.startswith("-") and not re.match(r"(\.|manylabel)(\[|$)", word)]
    return [] if words[:1] == ["install"] and not ours else [f"pip {' '.join(words)} does not install manylabel"]


def _source(words: list[str]) -> list[str]:
    text = (HERE / "Makefile").read_text(encoding="utf-8")
    made = re.search(r"^VENV \?= (\S+)$", text, re.MULTILINE)
    return [] if made and words == [f"{made[1]}/bin/activate"] else [f"make does not make {' '.join(words)}"]


def _is_a_tool(program: str) -> bool:
    wanted = [dependency for group in _project()["optional-dependencies"].values() for dependency in group]
    return any(re.match(rf"{re.escape(program.removeprefix('.venv/bin/'))}\b", dependency) for dependency in wanted)


def _project() -> dict[str, Any]:
    return tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _commands(command: Any, name: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield name, command
    for word, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*name, word))

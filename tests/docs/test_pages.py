"""Every page, and the examples in --help: what they tell a reader to type exists. Nothing is run here."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest
import yaml
from doc_blocks import HERE, Block, blocks, pages, spans
from doc_names import help_examples, problems, setting_keys, unknown_extras, unknown_options, unknown_setting

import manylabel as ml

PAGES = {str(page.relative_to(HERE)): page for page in pages()}
TYPED = ("manylabel ", ".venv/bin/manylabel ", "make ", "pip ", "source ")


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_says_can_be_typed(name: str) -> None:
    text = PAGES[name].read_text(encoding="utf-8")
    wrong = []
    for block in blocks(text):
        check = {"shell": _shell, "python": _python, "yaml": _yaml}.get(block.kind)
        wrong += [f"{name}:{line}: {said}" for line, said in (check(block) if check else [])]
    for line, span in spans(text):
        found = problems(span) if span.startswith(TYPED) else unknown_extras(span)
        found += unknown_options(span) if span.startswith("--") else []
        wrong += [f"{name}:{line}: `{span}`: {said}" for said in found]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("command", "example"), help_examples())
def test_an_example_in_the_help_can_be_typed(command: str, example: str) -> None:
    found = problems(example)
    assert not found, f"manylabel {command} --help shows: {example}\n{found}"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("manylabel trian photos/", "no command 'trian'"),
        ("manylabel data chek photos/", "no command 'chek'"),
        ("manylabel train photos/ --haed linear", "--haed"),
        ("manylabel train photos/ --epochs many", "integer"),
        ("manylabel predict runs/mine", "IMAGES"),
        ("manylabel data check photos/   what is in it?", "unexpected extra"),
        ("manylabel train photos/ --recipe lapptop", "no recipe 'lapptop'"),
        ("manylabel train photos/ --head linaer", "no head 'linaer'"),
        ("manylabel train photos/ --backbone efficientnet_lite9", "no backbone"),
        ("manylabel train photos/ --set train.epoch=3", "no setting 'train.epoch'"),
        ("manylabel train photos/ --set tasks.a.head.stagse=3", "no setting"),
        ("manylabel train photos/ --set train.epochs", "KEY=VALUE"),
        ("manylabel data convert a b --to voc", "written as 'voc'"),
        ("manylabel data fetch cifar", "'cifar' to fetch"),
        ("manylabel train 'photos/", "no shell"),
        ("make coffee", "no target coffee"),
        ("pip install tagger", "does not install"),
        ('pip install "manylabel[mini]"', "no extra [mini]"),
        ("manylabel texts   # pip install manylabel[minilm,glvoe]", "no extra [glvoe]"),
        ("source venv/bin/activate", "does not make"),
        (".venv/bin/pre-comit install", "pyproject.toml"),
    ],
)
def test_a_slip_in_a_page_is_found(line: str, said: str) -> None:
    assert any(said.lower() in each.lower() for each in problems(line)), problems(line)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import manylabel as ml\nml.trian('photos/')", "ml.trian"),
        ("import manylabel as ml\nml.evaluate(run, splt='val')\nml.load_bundle(a, b, c, d, e)", "ml.load_bundle"),
        ("from manylabel.heads import atach", "atach"),
        ("import manylabel.nowhere", "nowhere"),
        ("import manylabel as ml\nml.train(", "Python"),
    ],
)
def test_a_slip_in_python_is_found(source: str, said: str) -> None:
    assert any(said in each for _, each in _python(Block(1, source))), _python(Block(1, source))


def test_blocks_and_spans_are_found() -> None:
    text = (
        "Type\n\n    manylabel heads  # all\n\n    make test\n\nor `manylabel\nlosses`:\n    no block, as it goes on\n\n"
        "```yaml\ntasks:\n  a: {}\n```\n| file | what |\n|---|---|\n| `a.csv` | \\|b\\| |\n"
    )
    assert blocks(text) == [Block(3, "manylabel heads  # all\n\nmake test"), Block(12, "tasks:\n  a: {}")]
    assert [block.kind for block in blocks(text)] == ["shell", "yaml"]
    assert list(blocks(text)[0].commands()) == [(3, "manylabel heads  # all"), (5, "make test")]
    assert spans(text) == [(7, "manylabel losses"), (17, "a.csv")]
    assert {"README.md", "docs/quickstart.md", "docs/data.md"} <= PAGES.keys()


def _shell(block: Block) -> list[tuple[int, str]]:
    return [(line, f"{command}: {said}") for line, command in block.commands() for said in problems(command)]


def _yaml(block: Block) -> list[tuple[int, str]]:
    """A recipe's keys are settings; other YAML only has to be read."""
    try:
        content = yaml.safe_load(block.text)
    except yaml.YAMLError as error:
        return [(block.line, f"no YAML: {error}")]
    keys = list(setting_keys(content)) if isinstance(content, dict) and "tasks" in content else []
    return [(block.line, f"there is no setting {key!r}") for key in keys if unknown_setting(key)]


def _python(block: Block) -> list[tuple[int, str]]:
    """It can be read, and what it takes from manylabel is there and takes these arguments."""
    try:
        tree = ast.parse(block.text)
    except SyntaxError as error:
        return [(block.line, f"no Python: {error}")]
    found = []
    for node in ast.walk(tree):
        line = block.line + getattr(node, "lineno", 1) - 1
        if isinstance(node, ast.Import | ast.ImportFrom):
            found += [(line, said) for said in _wrong_import(node)]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ml":
            found += [] if hasattr(ml, node.attr) else [(line, f"there is no ml.{node.attr}")]
        elif isinstance(node, ast.Call):
            found += [(line, said) for said in _wrong_call(node)]
    return found


def _wrong_import(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Each name is a module, or something in one."""
    before = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    found = []
    for name in [before + each.name for each in node.names]:
        module, _, last = name.rpartition(".")
        try:
            if not (before and hasattr(importlib.import_module(module), last)):
                importlib.import_module(name)
        except ImportError as error:
            found.append(str(error))
    return found


def _wrong_call(node: ast.Call) -> list[str]:
    function = node.func
    if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "ml"):
        return []
    try:
        inspect.signature(getattr(ml, function.attr)).bind(
            *node.args, **{each.arg: each.value for each in node.keywords if each.arg}
        )
    except AttributeError:
        return []  # said elsewhere
    except TypeError as error:
        return [f"ml.{function.attr}: {error}"]
    return []


def test_a_page_has_nothing_set_apart_of_a_kind_that_nobody_checks() -> None:
    """Of these blocks nothing is typed; anything else without a known kind wants a check of its own."""
    prose = {"docs/decisions/README.md"}
    unknown = [
        f"{name}:{block.line}: {block.text[:60]!r}"
        for name, page in PAGES.items()
        if name not in prose
        for block in blocks(Path(page).read_text(encoding="utf-8"))
        if not block.kind
    ]
    assert not unknown, "\n".join(unknown)

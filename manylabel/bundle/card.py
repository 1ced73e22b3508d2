"""The model card: what it does, how good it is, what to mind; figures from what results say of themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from manylabel.bundle.bundle import Bundle, TaskBundle
from manylabel.figure import figure_tables, figures, headlines_first, task_figures, with_unit


def model_card(bundle: Bundle, results: Mapping[str, Any]) -> str:
    """A page for people."""
    return _of_several(bundle, results) if "tasks" in results else _of_one(bundle.only, results)


def _of_one(bundle: TaskBundle, results: Mapping[str, Any]) -> str:

    data, backbone = results["data"], bundle.run.backbone
    learnt = [row for row in results["labels"] if row["ap"] is not None and not row.get("never_trained")]
    scored = sorted(learnt, key=lambda row: row["ap"])
    weakest = ", ".join(_strength(row) for row in scored[:5])
    strongest = ", ".join(_strength(row) for row in scored[::-1][:5])
    names = ", ".join(_inline(name) for name in bundle.labels.names[:200])
    notes = "\n".join(f"- {note}" for note in results["notes"]) or "- none"
    kind = bundle.task.kind.replace("_", "-")
    return f"""# {_inline(results["title"])}

A {kind} image classifier: {len(bundle.labels)} labels, {backbone.name} backbone ({backbone.freeze}),
{bundle.config.head.name} head, {bundle.preprocess.size} px. Made with manylabel on {results["created"]}.

    manylabel predict . photo.jpg

## How good it is
On {data["images"]} images of {_inline(str(data["name"]))} ({data["split"]}), in percent
({results["labels_scored"]} of {results["labels_total"]} labels scored):

{figure_list(results)}

Weakest labels (AP): {weakest}. Strongest: {strongest}.

## What to mind
{notes}
{_words(bundle)}- It knows nothing but its labels, and images like those it was trained on. Scores are not certainties;
  how far they are from the shares that come true stands above.

## Labels
{names}{" …" if len(bundle.labels) > 200 else ""}
"""


def _words(bundle: TaskBundle) -> str:
    if not bundle.text_source:
        return ""
    unseen = (
        [name for name, hidden in zip(bundle.labels, bundle.unseen, strict=True) if hidden]
        if bundle.unseen is not None
        else []
    )
    told = f" Never told in training: {', '.join(map(_inline, unseen[:100]))}." if unseen else ""
    new = (
        " Other labels can be asked for: manylabel predict . photo.jpg --labels …"
        if bundle.model.head.zero_shot
        else ""
    )
    return f"- Labels are known by their text vectors: {_inline(bundle.text_source)}.{told}{new}\n"


def _strength(row: dict[str, Any]) -> str:
    return f"{_inline(row['name'])} ({row['ap']:.1f}, {row['support']} images)"


def _inline(text: str) -> str:
    """Text that Markdown and HTML leave alone."""
    for character in "\\`*_{}[]<>#|!":
        text = text.replace(
            character, f"\\{character}" if character not in "<>" else {"<": "&lt;", ">": "&gt;"}[character]
        )
    return " ".join(text.split())[:200]


def _of_several(bundle: Bundle, results: Mapping[str, Any]) -> str:
    rows = "\n".join(
        f"| {name} | {task['kind']} | {task['labels']} | {task['experts']} | {task['active_parameters'] / 1e6:.2f} M "
        f"| {task['backbone_parameters'] / 1e6:.2f} M |"
        for name, task in results["tasks"].items()
    )
    return f"""# {_inline(results["title"])}

One model for several tasks, made with manylabel on {results["created"]}.

    manylabel predict . photo.jpg
    manylabel predict . photo.jpg --task {next(iter(results["tasks"]))}

| task | kind | labels | experts of a token | parameters in use | of the backbone |
|---|---|---|---|---|---|
{rows}

{task_list(results["tasks"])}

It knows nothing but its labels, and images like those it was trained on.
"""


def figure_list(results: Mapping[str, Any]) -> str:
    """Headlines first, then figures that stand alone, then the tables."""
    single = [one for one in headlines_first(figures(results)) if one.headline or one.alone]
    parts = [_table(("figure", "value"), ((one.title, with_unit(one.value, one.unit)) for one in single))]
    for table in figure_tables(results):
        rows = (
            (name, *(with_unit(row[key].value, row[key].unit) if key in row else "" for key in table.columns))
            for name, row in table.rows.items()
        )
        parts.append(f"{table.title}: {table.caption}\n\n{_table((table.rows_are, *table.columns), rows)}")
    return "\n\n".join(parts)


def task_list(tasks: Mapping[str, Mapping[str, Any]]) -> str:
    """A row for each figure, a column for each task."""
    rows = (
        (one.title, *(with_unit(of[name].value, one.unit) if name in of else "" for name in tasks))
        for one, of in task_figures(tasks)
    )
    return _table(("on the val images, percent", *tasks), rows)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = list(header)
    lines = [cells, ["---"] * len(cells), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

"""Parameters and multiply-adds of any backbone × head × labels × resolution, counted without computing anything.

Without a choice of its own it lists the rows of the ML-Decoder paper (Tables 1, 2, 9 and 10) and of the HSQ paper (A.2)
beside the papers' figures.
A "flop" of the paper is a multiply-add; torch's counter counts two for each, so its figure is halved here.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from rich import box
from rich.table import Table
from torch.utils.flop_counter import FlopCounterMode

from manylabel.backbone.bundled import BUNDLED
from manylabel.config import Part
from manylabel.error import ConfigError
from manylabel.head import HEADS, HSQ, Head
from manylabel.head.attention import Attention
from manylabel.head.group_decoder import GroupDecoder
from manylabel.head.grouping import group_size
from manylabel.heads import attach
from manylabel.runtime.rich_console import Terminal
from manylabel.suggest import closest

WORD_SIZE = 50  # of stand-in text vectors, GloVe's
TITLE = "cost of one image: millions of parameters, G multiply-adds (MAC)"
EXPLAINED = 0.05  # a difference above this needs a word

PAPER = {"dim": 768, "heads": 8, "hidden": 2048}


class Choice(NamedTuple):
    """A head, and what its options are set to."""

    head: str
    options: Mapping[str, Any]

    @property
    def title(self) -> str:
        """The baseline has a name of its own."""
        return DECODER if self.options.get("self_attention") and self.head == "ml_decoder" else self.head


GAP = Choice("linear", {})
DECODER = "transformer decoder"


def decoder_options(labels: int) -> dict[str, Any]:
    """Eq. 2: a trained query for each label, and self-attention among them."""
    return {**PAPER, "groups": labels, "query": "learnable", "self_attention": True}


def _decoder(labels: int) -> Choice:
    return Choice("ml_decoder", decoder_options(labels))


def _ours(groups: int) -> Choice:
    return Choice("ml_decoder", {**PAPER, "groups": groups})


QUADRATIC = (
    "the paper's rows at 1,000, 5,000 and 9,600 labels fit no one formula (8.5, 11.1 and 18.0 M per label above GAP); "
    "ours is exact: linear terms and 2·D·N² of self-attention"
)
XL = (
    "unexplained. timm's tresnet_xl alone takes 124 G at 640 px, 19 % more than the paper's with its head; the paper's may "
    "be a second version, as its TResNet-L is"
)
V2 = "the paper's TResNet-L is its V2; timm's tresnet_v2_l is the nearest there is"


@dataclass(frozen=True)
class Case:
    """A row of a table in the paper, with its figure."""

    table: str
    backbone: str
    size: int
    head: Choice
    labels: int
    paper: float  # G multiply-adds
    word: str = ""  # why ours may differ
    parameters: float | None = None  # millions, where the paper has them
    counted: Choice | None = None  # the head that gives the paper's figure when attention is left out of the count


CASES = (
    Case("1", "tresnet_m", 448, GAP, 80, 23.0),
    Case("1", "tresnet_m", 448, _decoder(80), 80, 24.1),
    Case("1", "tresnet_m", 448, _ours(20), 80, 23.6),
    Case("1", "tresnet_m", 448, _ours(80), 80, 23.9),
    Case("2", "tresnet_m", 224, GAP, 9600, 5.8),
    Case("2", "tresnet_m", 224, _decoder(9600), 9600, 178.6, QUADRATIC),
    Case("2", "tresnet_m", 224, _ours(100), 9600, 6.3),
    Case("2", "tresnet_m", 224, _ours(200), 9600, 6.7),
    Case("2", "tresnet_m", 224, _ours(400), 9600, 7.6),
    Case("9", "tresnet_m", 224, GAP, 100, 5.7),
    Case("9", "tresnet_m", 224, GAP, 1000, 5.7),
    Case("9", "tresnet_m", 224, GAP, 5000, 5.8),
    Case("9", "tresnet_m", 224, _decoder(100), 100, 6.6),
    Case("9", "tresnet_m", 224, _decoder(1000), 1000, 14.2),
    Case("9", "tresnet_m", 224, _decoder(5000), 5000, 61.1, QUADRATIC),
    Case("9", "tresnet_m", 224, _ours(100), 100, 6.3),
    Case("9", "tresnet_m", 224, _ours(100), 1000, 6.3),
    Case("9", "tresnet_m", 224, _ours(100), 5000, 6.4),
    Case("10", "tresnet_v2_l", 224, _ours(80), 80, 9.3, V2),
    Case("10", "tresnet_v2_l", 448, _ours(80), 80, 36.2, V2),
    Case("10", "tresnet_v2_l", 640, _ours(80), 80, 73.5, V2),
    Case("10", "tresnet_xl", 640, _ours(80), 80, 103.8, XL),
)

R10T = {"dim": 512, "heads": 4, "encoder_layers": 1, "decoder_layers": 2}


def _hsq(shared: int, hidden: int = 1024) -> Choice:
    options = {"hidden": hidden, "layer_dims": (64, 16), "shared_experts": shared, "shared_reads": "shared"}
    return Choice("hsq", {**R10T, **options})


NO_ATTENTION = (
    "'counted' leaves attention out (its projections and products, 0.92 G here) and has an FFN of 2048 in all three, "
    "which fits the paper's figures; but its HSQ parameters fit an FFN of 1024 only, which saves 0.51 G. "
    "HSQ with its shared branch (shared_reads=shared), which the paper counts"
)
Q2L_R10T = Choice("query2label", {**R10T, "hidden": 2048})
HSQ_CASES = (
    Case("A.2", "resnet10t", 576, Q2L_R10T, 80, 8.4, NO_ATTENTION, 14.8, Q2L_R10T),
    Case("A.2", "resnet10t", 576, _hsq(1), 80, 8.6, NO_ATTENTION, 14.3, _hsq(1, 2048)),
    Case("A.2", "resnet10t", 576, _hsq(16), 80, 8.7, NO_ATTENTION, 15.5, _hsq(16, 2048)),
)


@dataclass(frozen=True)
class Cost:
    """What one image costs, and what the paper says it does."""

    table: str
    backbone: str
    size: int
    head: str
    labels: int
    queries: int | None
    parameters: int
    head_parameters: int
    gmacs: float
    head_gmacs: float
    relative: float  # to the same backbone with global average pooling
    paper_gmacs: float | None = None
    paper_relative: float | None = None
    difference: float | None = None  # of gmacs to the paper's, as a share
    explanation: str = ""
    paper_parameters: float | None = None  # millions
    experts: int | None = None  # shared ones, n_s
    as_counted: float | None = None  # G, counted as the paper seems to count


@dataclass(frozen=True)
class Measured:
    """One model, and what one image costs in G multiply-adds."""

    parameters: int
    head_parameters: int
    gmacs: float
    head_gmacs: float
    attention_gmacs: float  # of the head's attention, projections and products
    channels: int  # of the final stage
    queries: int | None


def measure(
    backbone: str, size: int, head: str, options: Mapping[str, Any], labels: int, neck: Part | str = "none"
) -> Measured:
    """Count a model without computing anything: meta tensors have shapes only. A neck counts with the head."""
    import timm

    name = BUNDLED[backbone].timm_name if backbone in BUNDLED else backbone
    if not timm.is_model(name.split(".")[0]):
        raise ConfigError(f"there is no backbone {backbone!r}{closest(backbone, [*BUNDLED, *timm.list_models()])}")
    with warnings.catch_warnings(), torch.device("meta"):
        warnings.simplefilter("ignore")
        body: Any = timm.create_model(name)
        words = np.ones((labels, WORD_SIZE), np.float32) if "text" in options.values() else None
        model = attach(body, head, labels, vectors=words, neck=neck, **options).eval()
        own = [p for part in (model.neck, model.head) for p in part.parameters() if p.requires_grad]
        with FlopCounterMode(display=False, depth=2) as counter, torch.no_grad():
            model(torch.empty(1, 3, size, size))
    counts = counter.get_flop_counts()
    attention = [f"WithHead.{name}" for name, module in model.named_modules() if isinstance(module, Attention)]
    head_flops, attention_flops = (
        sum(sum(counts.get(name, {}).values()) for name in names)
        for names in (["WithHead.neck", "WithHead.head"], attention)
    )
    return Measured(
        sum(p.numel() for p in model.parameters()),
        sum(p.numel() for p in own),
        counter.get_total_flops() / 2e9,
        head_flops / 2e9,
        attention_flops / 2e9,
        int(body.num_features),
        _queries(model.head),
    )


def _queries(head: Head) -> int | None:
    """How many queries look at the image."""
    if isinstance(head, GroupDecoder | HSQ):
        return group_size(head.num_labels, head.size)
    return None if head.pooled else head.num_labels


def paper_rows(cases: Sequence[Case] = CASES) -> list[Cost]:
    """A paper's rows, each beside its figure and beside average pooling on the same backbone, labels and size."""
    pooled = {(c.backbone, c.size, c.labels): c.paper for c in cases if c.head is GAP}
    rows = []
    for case in cases:
        key = (case.backbone, case.size, case.labels)
        row = _cost(case.backbone, case.size, case.head, case.labels, case.table)
        off = row.gmacs / case.paper - 1
        rows.append(
            replace(
                row,
                paper_gmacs=case.paper,
                paper_relative=case.paper / pooled[key] if key in pooled else None,
                difference=off,
                explanation=case.word if abs(off) > EXPLAINED or case.parameters else "",
                paper_parameters=case.parameters,
                experts=case.head.options.get("shared_experts"),
                as_counted=_without_attention(case),
            )
        )
    return rows


def _without_attention(case: Case) -> float | None:
    if case.counted is None:
        return None
    m = measure(case.backbone, case.size, *case.counted, case.labels)
    return m.gmacs - m.attention_gmacs


def rows_of_tables(tables: Sequence[str] = ()) -> list[list[Cost]]:
    """The rows of these tables of the papers, or of all, each paper's apart."""
    known = list(dict.fromkeys(case.table for case in (*CASES, *HSQ_CASES)))
    for name in tables:
        if name not in known:
            raise ConfigError(f"there is no table {name!r}{closest(name, known)}; the papers' are {', '.join(known)}")
    chosen = ([case for case in cases if not tables or case.table in tables] for cases in (CASES, HSQ_CASES))
    return [paper_rows(cases) for cases in chosen if cases]


def other_rows() -> list[Cost]:
    """The same three heads, at the paper's sizes, on more backbones and labels, for which the paper has no figures."""
    return [
        _cost(backbone, 224, head, labels, "")
        for backbone in ("tresnet_m", "tresnet_l", "resnet50")
        for labels in (80, 1000, 5000, 9600)
        for head in (GAP, _decoder(labels), _ours(min(labels, 100)))
    ]


def chosen_rows(
    backbones: Sequence[str],
    heads: Sequence[str],
    labels: Sequence[int],
    sizes: Sequence[int],
    options: Mapping[str, Any],
    neck: Part | str = "none",
) -> list[Cost]:
    """Every combination. Options go to the heads that know them."""
    of_head = options_of(heads, options)
    return [
        _cost(backbone, size, Choice(head, of_head[head]), count, "", neck)
        for backbone in backbones
        for size in sizes
        for count in labels
        for head in heads
    ]


def options_of(heads: Sequence[str], options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The options that each head knows; one that none of them knows is an error."""
    known = {head: set(HEADS.get(head).Options.__dataclass_fields__) for head in heads}
    for name in options:
        if not any(name in fields for fields in known.values()):
            raise ConfigError(f"no head asked for has the option {name!r}{closest(name, set().union(*known.values()))}")
    return {head: {k: v for k, v in options.items() if k in known[head]} for head in heads}


def _cost(backbone: str, size: int, head: Choice, labels: int, table: str, neck: Part | str = "none") -> Cost:
    m = measure(backbone, size, head.head, head.options, labels, neck)
    title = f"{neck.name} + {head.title}" if isinstance(neck, Part) else head.title
    pooled = m.gmacs - m.head_gmacs + m.channels * labels / 1e9  # the same backbone with the linear head
    return Cost(
        table,
        backbone,
        size,
        title,
        labels,
        m.queries,
        m.parameters,
        m.head_parameters,
        m.gmacs,
        m.head_gmacs,
        m.gmacs / pooled,
    )


def print_costs(rows: Sequence[Cost]) -> None:
    if any(row.paper_parameters is not None for row in rows):
        _print_sizes(rows)
        return
    compared = any(row.paper_gmacs is not None for row in rows)
    numbers = ["labels", "M", *([] if compared else ["head M"]), "G MAC"]
    numbers += ["×GAP", "paper", "×GAP", "off%"] if compared else ["head G", "×GAP"]
    table = _table(TITLE, *numbers)
    for row in rows:
        sizes = [f"{row.parameters / 1e6:.0f}"]
        if not compared:
            sizes = [f"{row.parameters / 1e6:.1f}", f"{row.head_parameters / 1e6:.2f}"]
        macs = f"{row.gmacs:.2f}" if row.gmacs < 100 else f"{row.gmacs:.1f}"
        rest = [f"{row.head_gmacs:.3f}", _ratio(row.relative)]
        if compared:
            rest = [_ratio(row.relative), f"{row.paper_gmacs}", _ratio(row.paper_relative), _off(row.difference or 0)]
        table.add_row(f"{row.backbone} {row.size}", _head(row), f"{row.labels}", *sizes, macs, *rest)
    out = Terminal()
    out.print(table)
    for word in dict.fromkeys(row.explanation for row in rows if row.explanation):
        where = ", ".join(f"{r.head} with {r.labels:,} labels" for r in rows if r.explanation == word)
        out.print(f"  · more than 5 % off ({where}): {word}", soft_wrap=True)


def _print_sizes(rows: Sequence[Cost]) -> None:
    """Rows of a paper that has parameters, too."""
    table = _table(f"{TITLE}, {rows[0].labels} labels", "M", "paper", "off%", "G MAC", "paper", "off%", "counted")
    for row in rows:
        millions, paper = row.parameters / 1e6, row.paper_parameters or math.nan
        sizes = [f"{millions:.2f}", f"{paper}", _off(millions / paper - 1)]
        macs = [
            f"{row.gmacs:.2f}",
            f"{row.paper_gmacs}",
            _off(row.difference or 0),
            f"{row.as_counted or row.gmacs:.2f}",
        ]
        table.add_row(f"{row.backbone} {row.size}", _head(row), *sizes, *macs)
    out = Terminal()
    out.print(table)
    for word in dict.fromkeys(row.explanation for row in rows if row.explanation):
        out.print(f"  · {word}", soft_wrap=True)


def _table(title: str, *numbers: str) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("backbone", "head"):
        table.add_column(name, overflow="fold")  # numbers are not cut
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _head(row: Cost) -> str:
    queries = "" if row.queries in (None, row.labels) else f" K={row.queries}"
    return f"{row.head}{queries}" + ("" if row.experts is None else f" n_s={row.experts}")


def _off(share: float) -> str:
    """How far ours is off, in percent."""
    return f"{100 * share:+.1f}" if abs(share) < 0.1 else f"{100 * share:+.0f}"


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}" if value < 10 else f"{value:.1f}"

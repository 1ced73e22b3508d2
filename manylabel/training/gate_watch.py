"""Gates do not fail silently: what they do is written down after every evaluation, and what is wrong is said aloud."""

from __future__ import annotations

from collections.abc import Iterator

from manylabel.expert import ExpertUse, GateSummary, gate_summaries

SAME = 0.99  # experts with weights so alike are one
ADVICE = "A lower rate (--set optimiser.lr=…) or another number of experts may help"


def gate_figures(use: ExpertUse | None) -> dict[str, float]:
    """For metrics.jsonl: what the gates of each layer do, in shares of the highest possible."""
    figures: dict[str, float] = {}
    for number, summary in enumerate(gate_summaries(use), start=1):
        figures[f"gate_entropy_{number}"] = round(summary.entropy, 4)
        figures[f"gate_highest_{number}"] = round(summary.highest, 4)
        figures[f"gate_label_entropy_{number}"] = round(summary.label_entropy, 4)
        figures[f"gate_divergence_{number}"] = round(summary.divergence, 4)
        figures[f"gates_collapsed_{number}"] = summary.collapsed
        if summary.similarity is not None:
            figures[f"expert_similarity_{number}"] = round(summary.similarity, 4)
    if use and use.gates.capacity is not None:
        figures["experts_allowed"] = round(sum(use.gates.capacity) / len(use.gates.capacity), 4)
    return figures


def gate_warnings(use: ExpertUse | None) -> list[str]:
    """A sentence for every layer whose gates choose nothing: one expert has taken over, or none is preferred."""
    if use is None:
        return []
    return [
        f"layer {number} of the head: {sentence}"
        for number, (summary, weights) in enumerate(zip(gate_summaries(use), use.layers, strict=True), start=1)
        for sentence in _wrong(summary, use.gates.experts[int(weights.mean(axis=0).argmax())])
    ]


def _wrong(summary: GateSummary, most_used: str) -> Iterator[str]:
    if summary.state == "collapsed":
        what = "the labels' own: little is shared" if most_used.startswith("own") else "the others learn little"
        yield (
            f"{summary.collapsed} of {summary.gates} gates give more than 90 % to one expert ({most_used}), {what}. {ADVICE}"
        )
    if summary.state == "uniform":
        yield (
            f"the gates weigh all experts alike (entropy {100 * summary.label_entropy:.0f} % of the highest possible), "
            f"so labels choose nothing. {ADVICE}"
        )
    if summary.similarity is not None and summary.similarity > SAME:
        yield (
            f"the experts are all but the same (cosine {summary.similarity:.3f}), so it matters little what gates choose; "
            "let them begin further apart (--set head.spread=0.1)"
        )

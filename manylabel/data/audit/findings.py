"""What to know about data before training on it, and whether it can be trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from manylabel.data.audit.contradictions import contradictions
from manylabel.data.audit.cooccurrence import company
from manylabel.data.audit.counts import Counts, count_labels
from manylabel.data.audit.duplicates import Duplicates, find_duplicates, members
from manylabel.data.audit.inspection import Inspection, inspect_table
from manylabel.data.audit.judge import TOO_RARE_TO_JUDGE, TOO_RARE_TO_SPLIT, judge
from manylabel.data.audit.leaks import MOST_LISTED, find_leaks
from manylabel.data.audit.names import similar_names
from manylabel.data.audit.result import Audit
from manylabel.data.audit.sizes import image_sizes, wrong_sizes
from manylabel.data.audit.suspicion import suspicious
from manylabel.data.audit.unlisted import unlisted_images
from manylabel.data.table import Table
from manylabel.labels import PRESENT

MOST_OF_A_GROUP = 20


def audit(
    table: Table,
    *,
    max_bad_share: float = 0.01,
    workers: int = 2,
    advance: Callable[[int], None] = lambda _: None,
    inspection: Inspection | None = None,
) -> Audit:
    """Count the labels and look at every image once; an interrupted or repeated check goes on from its journal."""
    inspection = inspection or inspect_table(table, workers, advance)
    counts = count_labels(table)
    names = table.labels.names
    common = np.argsort(-counts.support, kind="stable").tolist()
    thin = (counts.support >= TOO_RARE_TO_SPLIT) & (counts.support < TOO_RARE_TO_JUDGE)
    per_image = np.bincount(counts.per_image)
    copies = find_duplicates(inspection)
    contradicting = contradictions(table, copies)
    exact = [group for group in contradicting if group["kind"] == "exact"]
    sizes = image_sizes(inspection)
    odd = suspicious(table, inspection, exact)
    found = Audit(
        name=table.name,
        images=len(table),
        splits=dict(Counter(table.split.tolist())) if table.split is not None else {},
        labels=len(names),
        labels_per_image=round(float(counts.per_image.mean()), 3),
        labels_per_image_counts={str(k): int(n) for k, n in enumerate(per_image) if n},
        images_without_labels=int(per_image[0]),
        unknown_share=round(counts.unknown_share, 6),
        support={names[i]: int(counts.support[i]) for i in common},
        support_by_split={
            split: {names[i]: int(support[i]) for i in common} for split, support in counts.by_split.items()
        },
        known_share={names[i]: round(float(counts.known[i] / len(table)), 6) for i in common}
        if counts.unknown_share
        else {},
        too_rare_to_split=[names[i] for i in np.flatnonzero(counts.support < TOO_RARE_TO_SPLIT)],
        too_rare_to_judge=[names[i] for i in np.flatnonzero(thin)],
        cooccurrence=company(table, counts),
        similar_names=_about_names(table, counts),
        sizes=sizes["long_side"],
        image_sizes=sizes,
        wrong_sizes=wrong_sizes(table, inspection),
        unreadable={str(table.keys[row]): reason for row, reason in inspection.unreadable.items()},
        suspicious={"kinds": dict(Counter(entry["kind"] for entry in odd)), "images": odd[:MOST_LISTED]},
        duplicates=_about_duplicates(table, copies),
        leaks=find_leaks(table, copies),
        contradictions={
            "count": len(contradicting),
            "exact": len(exact),
            "near": len(contradicting) - len(exact),
            "groups": contradicting[:MOST_LISTED],
        },
        unlisted=unlisted_images(table, inspection),
        problems=[],
        warnings=[],
    )
    problems, warnings = judge(table, counts, found, max_bad_share)
    return replace(found, problems=problems, warnings=warnings)


def _about_duplicates(table: Table, found: Duplicates) -> dict[str, Any]:
    groups = sorted(members(found.group).values(), key=len, reverse=True)
    listed = [
        {
            "kind": "exact" if len(set(found.exact[rows].tolist())) == 1 else "near",
            "size": len(rows),
            "images": [str(key) for key in table.keys[rows[:MOST_OF_A_GROUP]]],
            "splits": [str(name) for name in table.split[rows[:MOST_OF_A_GROUP]]] if table.split is not None else [],
        }
        for rows in groups[:MOST_LISTED]
    ]
    return {
        "exact_copies": len(table) - len(np.unique(found.exact)),
        "near_copies": len(np.unique(found.exact)) - len(np.unique(found.group)),
        "group_count": len(groups),
        "groups": listed,
        "not_compared": found.not_compared,
    }


def _about_names(table: Table, counts: Counts) -> list[dict[str, Any]]:
    def together(a: int, b: int) -> int:
        return int(((table.matrix[:, a] == PRESENT) & (table.matrix[:, b] == PRESENT)).sum())

    names = table.labels.names
    return [
        {
            "labels": [names[pair["label"]], names[pair["other"]]],
            "why": pair["why"],
            "support": [int(counts.support[pair["label"]]), int(counts.support[pair["other"]])],
            "together": together(pair["label"], pair["other"]),
        }
        for pair in similar_names(names, counts.support, together)
    ]

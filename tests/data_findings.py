"""Findings of `data check` as its JSON has them, with chosen names everywhere a name can be."""

from __future__ import annotations

from typing import Any

PICTURE = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAAC"


def findings(names: list[str], support: list[int] | None = None) -> dict[str, Any]:
    counts = support or [10 * (len(names) - i) + 1 for i in range(len(names))]
    some = names[:4]
    a, b = names[0], names[1]
    three = {"smallest": 20, "median": 250, "largest": 900}
    group = {"kind": "exact", "size": 2, "images": [a, b], "splits": ["train", "val"]}
    return {
        "schema": 1, "name": a, "trainable": False, "images": 1000, "splits": {"train": 700, "val": 300},
        "labels": len(names), "labels_per_image": 1.75, "labels_per_image_counts": {"0": 100, "1": 300, "2": 350, "3": 250},
        "images_without_labels": 100, "unknown_share": 0.25, "support": dict(zip(names, counts, strict=True)),
        "support_by_split": {
            "train": {name: n - n // 4 for name, n in zip(names, counts, strict=True)},
            "val": {name: n // 4 for name, n in zip(names, counts, strict=True)},
        },
        "known_share": dict.fromkeys(names, 0.75), "too_rare_to_split": [b], "too_rare_to_judge": [a],
        "cooccurrence": {
            "images": 900, "names": some, "counts": [[40 if i == j else 3 for i in range(4)] for j in range(4)],
            "pairs": [[a, b, 3]], "implied": [{"label": a, "with": b, "share": 0.97, "support": 40}], "implied_count": 250,
            "identical": [[a, b]], "identical_count": 1,
            "exclusive": [{"label": a, "other": b, "expected": 33.5}], "exclusive_count": 1,
        },
        "similar_names": [{"labels": [a, b], "why": "spelling", "support": [5, 1], "together": 0}],
        "sizes": three,
        "image_sizes": {
            "short_side": three, "long_side": three, "aspect": {"smallest": 0.5, "median": 1.33, "largest": 12.0},
            "bytes": {**three, "total": 123456}, "formats": {"JPEG": 990, a: 8}, "different": 2,
            "most_frequent": [[250, 200, 990], [20, 900, 8]],
        },
        "wrong_sizes": {
            "count": 130, "turned": 30,
            "images": [
                {"image": a, "told": [500, 480], "found": [50, 48], "turned": False},
                {"image": b, "told": [640, 427], "found": [427, 640], "turned": True},
            ],
        },
        "unreadable": {a: f"damaged {b}", b: "empty"},
        "suspicious": {
            "kinds": {"blank": 2, "tiny": 1},
            "images": [
                {"image": a, "kind": "blank", "detail": "9 × 9"}, {"image": b, "kind": "blank", "detail": "9 × 9"},
                {"image": a, "kind": "tiny", "detail": "9 × 9 pixels"},
            ],
        },
        "duplicates": {
            "exact_copies": 1, "near_copies": 1, "group_count": 60, "not_compared": 0,
            "groups": [group, {**group, "kind": "near", "splits": []}],
        },
        "leaks": {
            "count": 1, "images": {"train": 1, "val": 1},
            "pairs": [{"images": [a, b], "splits": ["train", "val"], "kind": "near", "distance": 3}],
        },
        "contradictions": {
            "count": 1, "exact": 0, "near": 1,
            "groups": [{"kind": "near", "images": [a, b], "size": 2, "labels": [a, b], "differing": 9}],
        },
        "unlisted": {"count": 1, "first": [a]},
        "problems": [f"no image is in {a}"], "warnings": [f"look at {b}"],
        "pictures": {a: PICTURE},
    }  # fmt: skip

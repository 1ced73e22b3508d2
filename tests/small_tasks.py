"""A recipe with two tasks that trains in seconds."""

from __future__ import annotations

from typing import Any

SCENES = {"train": 24, "val": 6, "size": 64}
SMALL: dict[str, Any] = {
    "tasks": {
        "labels": {
            "kind": "multi_label",
            "data": {"path": "scenes", "workers": 0, "scenes": SCENES},
            "image_size": 64,
            "batch_size": 4,
            "augment": {"flip": True},
        },
        "objects": {
            "kind": "detection",
            "data": {"path": "scenes", "workers": 0, "scenes": SCENES},
            "image_size": 64,
            "batch_size": 2,
            "augment": {"flip": True},
            "head": {
                "name": "cascade",
                "width": 16,
                "levels": [1],
                "proposals": 20,
                "test_proposals": 20,
                "box_samples": 16,
                "anchor_samples": 32,
                "box_hidden": 32,
                "mask_width": 8,
                "mask_layers": 1,
                "score": 0.0,
            },
        },
    },
    "backbone": {
        "name": "moe_vit",
        "weights": "none",
        "freeze": "full",
        "options": {
            "size": "own",
            "layers": 2,
            "heads": 2,
            "width": 16,
            "hidden": 32,
            "patch": 8,
            "experts": {"count": 4},
        },
    },
    "optimiser": {"backbone_rate": 1.0},
    "schedule": "cosine",
    "train": {
        "steps": 8,
        "ema": 0.9,
        "clip": 1.0,
        "checkpoint_minutes": 1000,
        "adapt": {"enabled": True, "every": 2, "patience": 2, "held_out": 0.2},
    },
}

"""What a details file may hold of experts: whose gates give them how much weight, and what kind of choice that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manylabel.core.expert_weights import ExpertWeights, GateFigures
from manylabel.report.value import items, mapping, need, need_number, need_text, number, shares, text, wrong


def clean_experts(value: Any, where: str) -> ExpertWeights | None:
    """Names of experts [E] and gates [G], the mean weights [G][E] of each layer, and how many experts a gate may use."""
    if not value:
        return None
    given = mapping(value, where)
    experts, gates = (
        [text(name, f"{where}.{key}") for name in items(need(given, key, where), f"{where}.{key}")]
        for key in ("experts", "gates")
    )
    layers = []
    for i, layer in enumerate(items(need(given, "layers", where), f"{where}.layers")):
        rows = [shares(row, f"{where}.layers[{i}]") for row in items(layer, f"{where}.layers[{i}]")]
        if len(rows) != len(gates) or any(len(row) != len(experts) for row in rows):
            raise wrong(f"{where}.layers[{i}]", f"must be {len(gates)} rows of {len(experts)} numbers")
        layers.append([[weight or 0.0 for weight in row] for row in rows])
    allowed = given.get("allowed")
    if allowed is not None:
        allowed = [number(n, f"{where}.allowed") for n in _so_many(allowed, f"{where}.allowed", len(gates), "gates")]
    if not layers or not gates:
        return None
    return {
        "experts": experts,
        "gates": gates,
        "layers": layers,
        "allowed": allowed,
        "entropies": [
            shares(_so_many(row, f"{where}.entropies", len(gates), "gates"), f"{where}.entropies")
            for row in _of_layers(given, "entropies", where, len(layers))
        ],
        "summaries": [
            _figures(one, f"{where}.summaries") for one in _of_layers(given, "summaries", where, len(layers))
        ],
    }


def _so_many(value: Any, where: str, count: int, of_what: str) -> list[Any]:
    found = items(value, where)
    if len(found) != count:
        raise wrong(where, f"has {len(found)} entries for {count} {of_what}")
    return found


def _of_layers(given: Mapping[str, Any], key: str, where: str, layers: int) -> list[Any]:
    """What details of earlier versions do not have."""
    return _so_many(given[key], f"{where}.{key}", layers, "layers") if given.get(key) is not None else []


def _figures(value: Any, where: str) -> GateFigures:
    given = mapping(value, where)
    return {
        "state": need_text(given, "state", where),
        "label_entropy": need_number(given, "label_entropy", where, high=1.0),
        "divergence": need_number(given, "divergence", where, high=1.0),
        "similarity": number(given.get("similarity"), f"{where}.similarity", low=-1.0, high=1.0),
    }

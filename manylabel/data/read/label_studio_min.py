"""Label Studio's short export (JSON-MIN): one flat object per annotation, turned into the full form."""

from __future__ import annotations

from typing import Any

SIGNS = ("annotation_id", "annotator", "lead_time")  # only JSON-MIN has them at the top
ABOUT_ANNOTATION = (*SIGNS, "id", "created_at", "updated_at", "completed_by")
REGIONS = ("rectanglelabels", "polygonlabels", "brushlabels", "ellipselabels", "keypointlabels")


def is_min_item(item: Any) -> bool:
    return isinstance(item, dict) and not isinstance(item.get("data"), dict) and any(sign in item for sign in SIGNS)


def same_image(item: Any) -> str | None:
    """What the items about one image share: the id of their task."""
    return f"id {item['id']}" if is_min_item(item) and "id" in item else None


def full_task(items: list[dict[str, Any]], image_fields: tuple[str, ...]) -> dict[str, Any]:
    """The task of items about one image. What stands behind the id was answered, what stands before it was shown."""
    first = items[0]
    names = list(first)
    behind = names[names.index("id") + 1 :] if "id" in first else [name for name in names if name not in image_fields]
    data = {name: value for name, value in first.items() if name not in behind and name not in ABOUT_ANNOTATION}
    task: dict[str, Any] = {"data": data, "annotations": [{"result": _results(item, data)} for item in items]}
    if "id" in first:
        task["id"] = first["id"]
    return task


def _results(item: dict[str, Any], data: dict[str, Any]) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    for name, value in item.items():
        if name not in data and name not in ABOUT_ANNOTATION:
            results += [_result(entry) for entry in (value if isinstance(value, list) else [value])]
    return results


def _result(value: Any) -> dict[str, Any]:
    if isinstance(value, str):  # a single choice, or one of several
        return {"type": "choices", "value": {"choices": [value]}}
    if isinstance(value, dict):
        kind = next((kind for kind in ("choices", *REGIONS) if kind in value), "other")
        result: dict[str, Any] = {"type": kind, "value": value}
        if "original_width" in value:
            result["original_width"] = value["original_width"]
        if "original_height" in value:
            result["original_height"] = value["original_height"]
        return result
    return {"type": type(value).__name__, "value": None}

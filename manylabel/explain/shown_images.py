"""Maps for the images that the report shows: small overlays as data addresses."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from manylabel.bundle import TaskBundle
from manylabel.data.source import ImageSource
from manylabel.data.thumbnail import SIDE
from manylabel.error import DecodeError
from manylabel.explain.explainer import Explainer
from manylabel.explain.explanation import Explanation
from manylabel.explain.frame import Frame
from manylabel.explain.method import ATTENTION
from manylabel.explain.overlay import overlay
from manylabel.inference.labels import LabelPredictor

MOST = 24  # images: a report must not take long
QUALITY = 80


def with_overlays(bundle: TaskBundle, source: ImageSource, details: Mapping[str, Any]) -> dict[str, Any]:
    """The details with an `overlay` for each mistake and hit, and in `explained` what it is, or why there is none."""
    shown = [*details["hits"], *details["mistakes"]][:MOST]
    if not shown:
        return dict(details)
    try:
        device = next(bundle.model.parameters()).device
        explainer = Explainer(LabelPredictor(bundle, device))
        pictures = dict(zip(map(id, shown), _overlays(explainer, source, shown), strict=True))
    except Exception as error:  # a model that cannot be explained is no reason to lose what was judged
        return {**details, "explained": f"There are no maps beside the photos: {str(error) or type(error).__name__}."}
    how = f"{explainer.method.replace('_', '-')}, {' and '.join(explainer.stages)}"
    kinds = {
        kind: [{**image, "overlay": pictures.get(id(image))} for image in details[kind]]
        for kind in ("mistakes", "hits")
    }
    plain = "" if explainer.method == ATTENTION else "; without colour, nothing in the photo spoke for it"
    return {**details, **kinds, "explained": f"The second picture: where it looked for the label ({how}){plain}."}


def _overlays(explainer: Explainer, source: ImageSource, shown: Sequence[Mapping[str, Any]]) -> Iterator[str | None]:
    """One for each image; None where it cannot be read."""
    predictor = explainer.predictor
    pairs = [_read(predictor, source, image["file"]) for image in shown]
    asked = [explainer.columns([image["label"]]) for image, pair in zip(shown, pairs, strict=True) if pair]
    found = iter(explainer.explain_batch(torch.stack([p[1] for p in pairs if p]), asked) if asked else ())
    for image, pair in zip(shown, pairs, strict=True):
        if pair is None:
            yield None
            continue
        picture, (facts,) = pair[0], next(found)
        frame = Frame.of(predictor.bundle.preprocess, *picture.size)
        yield _address(Explanation(image["file"], size=picture.size, frame=frame, photo=picture, **facts))


def _read(predictor: LabelPredictor, source: ImageSource, key: str) -> tuple[Image.Image, Tensor] | None:
    try:
        picture = source.read(key, at_least=predictor.at_least)
    except DecodeError:
        return None
    return picture, predictor.prepared(picture)


def _address(found: Explanation) -> str:
    buffer = io.BytesIO()
    overlay(found, SIDE).save(buffer, "JPEG", quality=QUALITY)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()

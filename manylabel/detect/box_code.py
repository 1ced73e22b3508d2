"""Boxes relative to other boxes, as box heads say them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

Weights = tuple[float, float, float, float]
LARGEST = math.log(1000 / 16)  # of ln(w*/w): one wild guess must not overflow


def encode(truth: Tensor, boxes: Tensor, weights: Weights) -> Tensor:
    """What leads from boxes (x, y, w, h) to truth (x*, y*, w*, h*): (x* − x)/w, (y* − y)/h, ln w*/w, ln h*/h. [R, 4]

    Each is multiplied with its weight, which brings it to a variance of about 1.
    """
    (centre, sides), (centre_t, sides_t) = _centre_and_sides(boxes), _centre_and_sides(truth)
    code = torch.cat([(centre_t - centre) / sides, torch.log(sides_t / sides)], dim=1)
    return code * code.new_tensor(weights)


def decode(code: Tensor, boxes: Tensor, weights: Weights) -> Tensor:
    """The boxes that a code leads to. [R, 4]"""
    centre, sides = _centre_and_sides(boxes)
    code = code.float() / code.new_tensor(weights, dtype=torch.float32)
    centre = centre + code[:, :2] * sides
    half = torch.exp(code[:, 2:].clamp(max=LARGEST)) * sides / 2
    return torch.cat([centre - half, centre + half], dim=1)


def _centre_and_sides(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """[R, 2] each: x and y, width and height."""
    return (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]

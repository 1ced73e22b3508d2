"""Class activation maps against loops over images, channels and places, written from the papers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from manylabel.explain.cam import eigen_cam, grad_cam, grad_cam_pp


def _case(seed: int = 0, shape: tuple[int, ...] = (3, 5, 4, 6), signed: bool = False) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    a, g = torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)
    return (a if signed else a.clamp(min=0)), g


def _weighted(weights: np.ndarray, a: np.ndarray) -> np.ndarray:
    images, channels, rows, columns = a.shape
    found = np.zeros((images, rows, columns))
    for b in range(images):
        for i in range(rows):
            for j in range(columns):
                total = 0.0
                for k in range(channels):
                    total += weights[b, k] * a[b, k, i, j]
                found[b, i, j] = max(total, 0.0)
    return found


@pytest.mark.parametrize("signed", [False, True])
def test_grad_cam(signed: bool) -> None:
    a, g = _case(signed=signed)
    weights = np.zeros(a.shape[:2])
    for b in range(a.shape[0]):
        for k in range(a.shape[1]):
            weights[b, k] = sum(float(v) for v in g[b, k].flatten()) / g[b, k].numel()
    np.testing.assert_allclose(grad_cam(a, g), _weighted(weights, a.numpy()), atol=1e-5)


def test_grad_cam_pp() -> None:
    """α_kij = g² / (2 g² + g³ Σ_ab A_kab), w_k = Σ_ij α_kij ReLU(g_kij)."""
    a, g = _case()
    g[0, 0, 0, 0] = 0.0
    weights = np.zeros(a.shape[:2])
    for b in range(a.shape[0]):
        for k in range(a.shape[1]):
            activation = float(a[b, k].double().sum())
            for value in g[b, k].double().flatten().tolist():
                below = 2 * value**2 + activation * value**3
                alpha = value**2 / below if below != 0 else 0.0
                weights[b, k] += alpha * max(value, 0.0)
    np.testing.assert_allclose(grad_cam_pp(a, g), _weighted(weights, a.numpy()), atol=1e-5)


def test_grad_cam_pp_stays_finite_where_the_formula_has_a_pole() -> None:
    """A map with negative values can make 2 g² + g³ Σ A zero."""
    a, g = torch.full((1, 1, 1, 2), -1.0), torch.ones(1, 1, 1, 2)
    assert torch.isfinite(grad_cam_pp(a, g)).all()


@pytest.mark.parametrize("shape", [(3, 12, 2, 3), (2, 3, 5, 4)])  # fewer places than channels, and the reverse
@pytest.mark.parametrize("signed", [False, True])
def test_eigen_cam(shape: tuple[int, ...], signed: bool) -> None:
    a, _ = _case(1, shape, signed)
    found = eigen_cam(a)
    for b in range(shape[0]):
        places = np.array(
            [[float(a[b, k, i, j]) for k in range(shape[1])] for i in range(shape[2]) for j in range(shape[3])]
        )
        direction = np.ones(shape[1])
        for _ in range(5000):  # power iteration
            direction = places.T @ (places @ direction)
            direction /= np.linalg.norm(direction)
        along = places @ direction
        if sum(along * np.linalg.norm(places, axis=1)) < 0:
            along = -along
        np.testing.assert_allclose(found[b].flatten(), np.maximum(along, 0), atol=1e-4)


def test_eigen_cam_is_positive_where_activations_are() -> None:
    a = torch.zeros(1, 4, 5, 5)
    a[0, :, 3, 1] = torch.tensor([1.0, 2.0, 0.5, 1.0])
    for sign in (1, -1):  # maps before an activation can be negative where they are strong
        found = eigen_cam(sign * a)[0]
        assert found[3, 1] > 1
        assert int((found > 0).sum()) == 1

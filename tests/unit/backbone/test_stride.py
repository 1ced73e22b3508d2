"""RM@1, 2, 3 are the blocks that end at strides 4, 8, 16, whatever a family calls them."""

from __future__ import annotations

from pathlib import Path

import pytest
import timm
import torch
from command import TINY, manylabel, settings

from manylabel.backbone.stages import StageReader
from manylabel.backbone.stride import at_stride
from manylabel.config import Part, load_recipe, make_config
from manylabel.error import ConfigError
from manylabel.head import HEADS
from manylabel.model import Model
from manylabel.neck import NECKS

STAGES = {  # rm1, rm2, rm3, then strides 4, 8, 16
    "resnet50": ("stage2", "stage3", "stage4", "stage2", "stage3", "stage4"),
    "efficientnet_lite0": ("stage2", "stage3", "stage4", "stage2", "stage3", "stage4"),
    "resnetv2_50x3_bit": ("stage2", "stage3", "stage4", "stage2", "stage3", "stage4"),
    "convnext_tiny": ("stage1", "stage2", "stage3", "stage1", "stage2", "stage3"),
    "swin_base_patch4_window12_384": ("merged1", "merged2", "merged3", "stage1", "stage2", "stage3"),
    "swinv2_tiny_window8_256": ("merged1", "merged2", "merged3", "stage1", "stage2", "stage3"),
}


def _reader(name: str) -> StageReader:
    with torch.device("meta"):
        return StageReader(timm.create_model(name), name)


@pytest.mark.parametrize("name", STAGES)
def test_blocks_and_strides_of_a_family(name: str) -> None:
    reader = _reader(name)
    asked = ("rm1", "rm2", "rm3", "4", "8", "16")
    found = tuple(at_stride(one, reader.strides, "neck.stages", name) for one in asked)
    assert found == STAGES[name]
    merged = name.startswith("swin")
    assert [reader.strides[stage] for stage in found] == ([8, 16, 32] if merged else [4, 8, 16]) + [4, 8, 16]
    assert at_stride("stage-2", reader.strides, "neck.stages", name) == "stage-2"


def test_where_it_makes_no_sense() -> None:
    reader = _reader("vit_small_patch16_224")
    with pytest.raises(ConfigError, match=r"neck\.stages=rm1: all stages of vit have stride 16.*e\.g\. stage6"):
        at_stride("rm1", reader.strides, "neck.stages", "vit")
    reader = _reader("resnet50")
    with pytest.raises(ConfigError, match=r"resnet50 has no stage of stride 64; it has stage1 \(2\), stage2 \(4\)"):
        at_stride("64", reader.strides, "neck.stages", "resnet50")
    with pytest.raises(ConfigError, match="it does not tell its strides"):
        at_stride("rm1", {}, "neck.stages", "small_cnn")


def test_behind_patch_merging_of_a_swin() -> None:
    """What the released code taps: the first stage, merged by what timm puts at the start of the second."""
    settings = ["backbone.name=swin_tiny_patch4_window7_224", "backbone.weights=none", "backbone.image_size=64"]
    settings += ["neck.name=rm", "neck.stages=rm1,stage2", "neck.summary=pool1d"]
    model = Model(make_config(settings=settings), 3).only.eval()
    assert model.neck.stages == ("merged1", "stage2")
    images = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        body, features = model.backbone.body, model.backbone(images)
        first = body.layers[0](body.patch_embed(model.backbone._normal(images)))
        merged = body.layers[1].downsample(first).permute(0, 3, 1, 2)
    assert merged.shape == (2, 192, 8, 8)
    torch.testing.assert_close(features.stages["merged1"], merged)
    assert features.stages["stage2"].shape == (2, 192, 8, 8)
    model.check()


@pytest.mark.parametrize(("name", "neck"), [("resnetv2_50x3_bit", 4.72), ("resnetv2_101x3_bit", 4.72)])
def test_the_five_million_of_bit(name: str, neck: float) -> None:
    """Table 1: 5 M parameters of RM, less than 1 M of a linear probe."""
    recipe, channels = load_recipe("rm-bit-paper"), _reader(name).channels
    options = {**{k: v for k, v in recipe["neck"].items() if k != "name"}, "stages": ("stage2",)}
    rm = NECKS.build(Part("rm", options), channels=channels, num_labels=80)
    head = HEADS.build(Part("linear"), channels=rm.channels, num_labels=80)
    millions = [sum(p.numel() for p in part.parameters() if p.requires_grad) / 1e6 for part in (rm, head)]
    assert millions == pytest.approx([neck, 0.49], abs=0.005)
    assert round(sum(millions)) == 5


def test_the_neck_of_swin_learns_its_scale_alone() -> None:
    recipe, channels = load_recipe("rm-swin-paper"), _reader("swin_base_patch4_window12_384").channels
    options = {**{k: v for k, v in recipe["neck"].items() if k != "name"}, "stages": ("merged1",)}
    rm = NECKS.build(Part("rm", options), channels=channels, num_labels=80)
    assert sum(p.numel() for p in rm.parameters() if p.requires_grad) == 1024 + 1  # Eq. 6
    assert rm.activation(torch.tensor(-2.0)) == -2.0  # no sigmoid


def test_the_plan_says_which(photos: Path, tmp_path: Path) -> None:
    asked = [*TINY, "neck.name=rm", "neck.stages=rm2", "train.epochs=1", "data.workers=0"]
    done = manylabel("train", photos, "--out", tmp_path / "run", *settings(*asked))
    assert done.returncode == 0, done.stderr
    assert "mixed in: stage3 (stride 8)" in done.stdout + done.stderr

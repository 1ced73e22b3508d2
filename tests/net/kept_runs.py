"""The runs of the archive kept/runs.tar.xz: what they are trained with, and how the archive is packed and opened."""

from __future__ import annotations

import io
import lzma
import runpy
import tarfile
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "kept"
ARCHIVE, EXPECTED, PHOTOS = KEPT / "runs.tar.xz", KEPT / "expected.json", KEPT / "photos"
PLACE = "FOLDER-OF-THE-KEPT-FILES"  # stands in config.yaml for where the files were, and then for where they are
MEGABYTES = 3.0  # of all committed files together

BACKBONE = "backbone.safetensors"  # of the first run: random weights would see next to nothing in a photo
SMALL = ["backbone.name=test_efficientnet", "backbone.image_size=64", "data.workers=0"]
TINY = [*SMALL, f"backbone.weights={BACKBONE}"]
SCENES = ["data.scenes.train=60", "data.scenes.val=16", "data.scenes.size=64", "train.seed=0", "train.batch_size=10"]
PICTURES = ["train.seed=0", "train.batch_size=10"]
SHARP = ["optimiser.lr=0.01", "schedule.name=constant"]  # scores that differ from photo to photo, soon
DECODER = ["head.dim=16", "head.hidden=24", "optimiser.lr=0.02", "schedule.name=constant"]
LAYERS = [*DECODER, "head.heads=2", "head.encoder_layers=1", "head.decoder_layers=1"]
STOPPED = [
    *("head.name=ml_decoder", "head.heads=4", *DECODER, "train.ema=0.9", "augment.mixup=0.2", "augment.flip=true"),
    *("train.views=1", "train.epochs=40"),
]
FULL = [
    *("scenes", *SCENES, "head.name=linear", "head.attention=0.5", "backbone.freeze=full", "backbone.weights=none"),
    *("optimiser.lr=0.02", "optimiser.backbone_rate=0.5", "train.ema=0.8", "train.epochs=12"),
]
ONE_TASK: dict[str, list[str]] = {
    "full": FULL,
    "linear": ["scenes", *SCENES, "head.name=linear", "backbone.freeze=frozen", *SHARP, "train.epochs=12"],
    "ml_decoder": [
        *("scenes", *SCENES, "head.name=ml_decoder", "head.heads=4", *DECODER, "train.views=0"),
        *("augment.flip=false", "augment.random_crop=0", "augment.colour=0"),
        *("head.groups=7", "head.grouping=cooccurrence", "optimiser.lr=0.01", "train.epochs=8"),
    ],
    "query2label": ["scenes", *SCENES, "head.name=query2label", *LAYERS, "train.epochs=12"],
    "hsq": [
        *("scenes", *SCENES, "head.name=hsq", *LAYERS, "head.layer_dims=[12, 8]", "head.shared_experts=3"),
        *("head.adaptive=true", "head.adaptive_patience=1", "train.keep=last", "train.epochs=16"),
    ],
    "hsq_linear": [
        "scenes",
        *SCENES,
        "head.name=hsq_linear",
        *LAYERS,
        "head.layer_dims=[12, 8]",
        "train.keep=last",
        "train.epochs=18",
    ],
    "rm": [
        *("scenes", *SCENES, "neck.name=rm", "neck.stages=[stage-2]", "head.name=linear", "head.attention=0.5"),
        *(*SHARP, "train.epochs=12"),
    ],
    "partial": [
        *("scenes", *SCENES, "head.name=linear", "backbone.freeze=partial", *SHARP, "train.epochs=5"),
    ],
    "single_label": ["one_each", *PICTURES, "kind=single_label", "head.name=linear", *SHARP, "train.epochs=12"],
    "zero_shot": [
        *("photos", *PICTURES, "head.name=ml_decoder", "head.heads=4", *DECODER, "head.query=text"),
        *("head.pooling=shared", "text.name=file", "text.path=words.txt", "zero_shot.unseen=white"),
        *("zero_shot.in_training=hide", "optimiser.lr=0.03", "train.epochs=24"),
    ],
    "hierarchy": [
        *("photos", *PICTURES, "head.name=linear", "data.labels=photos/hierarchy.yaml", *SHARP, "train.epochs=12"),
    ],
}
OTHER_LABELS = ["pink", "black"]  # that the zero-shot run is asked about as well


def several_tasks(steps: int) -> dict[str, Any]:
    """tests/small_tasks.py with a still smaller detector and few objects of an image, for so many steps."""
    small = runpy.run_path(str(Path(__file__).parents[1] / "small_tasks.py"))["SMALL"]
    objects = small["tasks"]["objects"]
    detector = {**objects["head"], "width": 8, "box_hidden": 8, "most": 12}
    tasks = {**small["tasks"], "objects": {**objects, "head": detector}}
    adapt = {"enabled": True, "every": 10, "patience": 20, "min_decrease": 0.5, "held_out": 0.2}
    train = {**small["train"], "steps": steps, "adapt": adapt}
    return {**small, "tasks": tasks, "optimiser": {**small["optimiser"], "lr": 0.003}, "train": train}


def pack(folder: Path, archive: Path) -> None:
    """The same bytes for the same files; files of one name lie together, so that equal weights are stored once."""
    found = sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: (path.name, str(path)))
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in found:
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size, entry.mode = path.stat().st_size, 0o644
            with open(path, "rb") as file:
                tar.addfile(entry, file)
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 64 << 20}]
    archive.write_bytes(lzma.compress(plain.getvalue(), format=lzma.FORMAT_XZ, filters=filters))


def unpack(archive: Path, folder: Path) -> Path:
    """All kept files in this folder, which the settings of the runs then name."""
    with tarfile.open(archive, "r:xz") as tar:
        tar.extractall(folder, filter="data")
    for settings in folder.glob("runs/*/config.yaml"):
        text = settings.read_text(encoding="utf-8")
        settings.write_text(text.replace(PLACE, folder.as_posix()), encoding="utf-8")
    return folder

"""Settings that make no sense, options that exclude each other, and options that nobody reads."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from command import TINY, settings
from hostile.box import Box, finite
from hostile.case import Collection
from hostile.kit import QUICK, quick_without
from hostile.strange import edit_json

MB = 1 << 20
BASE = settings(*TINY, "data.workers=0")
# setting → values that are refused at once
REFUSED: dict[str, tuple[str, ...]] = {
    "optimiser.lr": ("nan", ".nan", "-0.1", "1e308", ".inf", "-.inf", "1e400", "[1]", "red", "{}"),
    "optimiser.weight_decay": (".nan", "-1", ".inf", "1e308"),
    "optimiser.betas": ("[2, 2]", "[.nan, 0.9]", "[0.9]", "-1"),
    "train.epochs": ("0", "-1", "1.5", ".nan", "1e3x", "true", "[]"),
    "train.batch_size": ("0", "-8", "1.5", ".nan"),
    "train.accumulate": ("0", "-1"),
    "train.clip": ("-1", ".nan"),
    "train.ema": ("1", "-0.1", ".nan", "2"),
    "train.seed": ("-1", "4294967296", ".nan", "1.5"),
    "train.checkpoint_minutes": ("-1", ".nan"),
    "train.cache": ("maybe", "5"),
    "train.trackers": ("nothing", "[5]"),
    "data.validation_share": ("0", "1", "-1", ".nan", "2"),
    "data.max_bad_share": ("-0.1", "1.1", ".nan"),
    "data.workers": ("-1", ".nan", "x"),
    "data.format": ("csb", "../csv", ""),
    "backbone.image_size": ("0", "-64", "15", "4097", "1e9", ".nan", "64.5"),
    "backbone.enlarge": ("0", ".nan", "100", "-1"),
    "backbone.name": ("no_such_net", "", "../../etc", "hf-hub:", "local-dir:/"),
    "backbone.weights": ("missing.safetensors", "/etc/passwd", "photos/images/photo000.jpg", "/dev/zero", "photos"),
    "backbone.freeze": ("half", "5"),
    "head.name": ("liner", "", "5"),
    "head.dropout": ("-1", "2", ".nan"),
    "head.sharpness": (".nan", ".inf"),
    "loss.name": ("bcee", "none"),
    "loss.label_smoothing": (".nan", "-1", "2"),
    "schedule.warm_up": ("-1", "2", ".nan"),
    "augment.random_crop": ("-1", "2", ".nan"),
    "augment.mixup": ("-1", ".nan", ".inf"),
    "augment.randaugment": ("-1", "31", ".nan"),
}
UNKNOWN = {
    "trian.epochs=3": "train",
    "train.epoch=3": "epochs",
    "train.epochss=3": "epochs",
    "optimizer.lr=1": "optimiser",
    "data.pth=x": "path",
    "head.droput=0.1": "dropout",
    "backbone.nmae=x": "name",
    "agument.flip=true": "augment",
    "schedule.name=one_cylce": "one_cycle",
    "optimiser.name=adamww": "adamw",
    "loss.name=assl": "asl",
}
FORMS = (
    "train.epochs",
    "=3",
    "train.=3",
    ".epochs=3",
    "train..epochs=3",
    "",
    "train.epochs=[",
    "train.epochs=!!python/name:os.system",
)
# words of a command after `manylabel` → something it must speak of; all are refused
CONFLICTS: dict[str, str] = {
    "train photos --out new --frozen --full": "exclude",
    "train photos --out new --frozen --partial": "exclude",
    "train photos --out new --transfer lp --full": "",
    "train photos --out new --resume --overwrite": "exclude",
    "train photos --out new --recipe laptop --recipe demo": "recipe",
    "train photos --out new --head linear --head hsq": "head",
    "train photos --out new --epochs 1 --epochs 2": "epochs",
    "train photos --out new --out other": "out",
    "train photos --out new --seed 1 --seed 2": "seed",
    "train photos --out new --transfer lp --transfer ft": "transfer",
    "train photos --out new --kind multi_label --kind single_label": "kind",
    "train photos --out new --task single_label": "--kind single_label",
    "train photos --out new --format csv --format coco": "format",
    "train photos --out new --seed -1": "seed",
    "train photos --out new --epochs 99999999999999999999": "epochs",
    "train photos --out new --epochs 1 --set train.epochs=2": "epochs",
    "train photos --out new --head linear --set head.name=hsq": "head",
    "train --recipe small.yaml --out new --head linear": "head",
    "train --recipe small.yaml --out new --epochs 2": "epochs",
    "train --out new": "",
    "evaluate run --split val --split test": "split",
    "evaluate run --data photos --data other": "data",
    "evaluate run --json a.json --json b.json": "json",
    "evaluate run --task lables": "labels",
    "evaluate tasks --set data.wrokers=0": "workers",
    "predict run photo.jpg --csv out.csv --csv b.csv": "csv",
    "predict run photo.jpg --top 1 --top 2": "top",
    "predict run photo.jpg --score 0.5": "score",
    "predict run photo.jpg --overlay seen": "overlay",
    "predict run photo.jpg --task lables": "labels",
    "predict run photo.jpg --vectors x.txt": "",
    "predict run photo.jpg --top 0": "top",
    "predict run photo.jpg --top -1": "top",
    "predict run photo.jpg --csv a.out --label-studio a.out": "both name a.out",
    "evaluate run --json a.out --report a.out": "both name a.out",
    "data check photos --json a.out --html ./a.out": "both name",
    "predict tasks photo.jpg --task objects --csv out.csv": "csv",
    "predict tasks photo.jpg --task labels --overlay seen": "overlay",
    "predict seeing-tasks photo.jpg --csv out.csv": "task",
    "predict seeing-tasks photo.jpg --label-studio out.json": "task",
    "predict tasks photo.jpg --task labels --score 0.5": "score",
    "predict tasks photo.jpg --task lables": "labels",
    "predict tasks photo.jpg --task objects --score nan": "score",
    "predict tasks photo.jpg --task objects --score 2": "score",
    "explain run photo.jpg --method gradcam": "grad_cam",
    "explain run photo.jpg --stage stage99": "stage",
    "explain run photo.jpg --label purple": "purple",
    "explain run photo.jpg --heads": "head",
    "explain run photo.jpg --method grad_cam --method eigen_cam": "method",
    "hard run --json --csv": "exclude",
    "hard run run": "twice",
    "hard run --resamples 5": "",
    "hard run --hard-cost nan": "",
    "hard run --easy-cost 0.9 --hard-cost 0.1": "",
    "hard run --label purple": "purple",
    "compare run": "",
    "compare run run": "",
    "compare run other --name a": "name",
    "compare run other --name a --name a": "",
    "compare run other --name a --name b --name c": "name",
    "compare run other --pair red": "pair",
    "compare run other --pair red,purple": "purple",
    "compare run other --resamples 5": "",
    "compare run tasks": "",
    "data split photos --out s.csv --val 0.9 --test 0.9": "",
    "data split photos --out s.csv --val nan": "",
    "data split photos --out s.csv --val 0": "",
    "data split photos --out s.csv --folds 1": "",
    "data split photos --out s.csv --folds 100000": "",
    "data split photos --out s.csv --folds 3 --val 0.3": "",
    "data split photos --out s.csv --seed -1": "seed",
    "data convert photos out --to cocoa": "coco",
    "data convert photos out --to coco --images melt": "images",
    "data convert photos out --to csv --split tset": "",
    "data convert photos out --to csv --to coco": "to",
    "data check photos --format csb": "csv",
    "data fetch coco2071": "coco",
    "data fetch openimages --count 0": "count",
    "cache prune": "",
    "bench cost --image-size 0 --head linear": "",
    "bench cost --head linear --set train.epochs=1": "head",
    "bench cost --labels -1 --head linear": "",
    "backbones no_such_net": "",
    "settings no_such_thing": "",
    "recipes too many words": "",
    "trian photos": "train",
    "data chekc photos": "check",
    "report": "",
    "predict run": "",
    "--no-such-option": "",
}


def groups() -> Iterator[Collection]:
    made = Collection("settings")

    def refused(setting: str, value: str) -> None:
        def work(box: Box) -> None:
            box.get("photos")
            words = ["train", "photos", *quick_without(setting), "--set", f"{setting}={value}", "--out", "new"]
            said = box.run(*words, codes=[0, 2], writes=["new/**"] if value == "" else [], memory=900 * MB, cpu=30)
            box.expect(said.code == 2 or value == "", f"{setting}={value} was taken")

        made.add(f"{setting}={value}", work)

    for setting, values in REFUSED.items():
        for value in values:
            refused(setting, value)

    def named(setting: str, meant: str) -> None:
        def work(box: Box) -> None:
            box.get("photos")
            box.run("train", "photos", *QUICK, "--set", setting, "--out", "new", codes=[2], says=meant)

        made.add(f"{setting} suggests {meant}", work)

    for setting, meant in UNKNOWN.items():
        named(setting, meant)

    def malformed(text: str) -> None:
        def work(box: Box) -> None:
            box.get("photos")
            box.run("train", "photos", *QUICK, "--set", text, "--out", "new", codes=[2])

        made.add(f"--set {text!r}", work)

    for text in FORMS:
        malformed(text)

    def conflict(words: str, says: str) -> None:
        def work(box: Box) -> None:
            for word in dict.fromkeys(words.replace(",", " ").split()):
                if (box.kit.folder / word).exists():
                    box.get(word)
            more = BASE if words.startswith("train photos") else []
            box.run(*words.split(), *more, codes=[2], says=says or None, cpu=30)

        made.add(words, work)

    for words, says in CONFLICTS.items():
        conflict(words, says)

    @made.case("of two --set for one setting neither is ignored")
    def _(box: Box) -> None:
        box.get("photos")
        twice = ("--set", "train.epochs=1", "--set", "train.epochs=2")
        box.run("train", "photos", *BASE, *twice, "--out", "new", codes=[2], says="train.epochs was given twice")

    @made.case("--top counts in every output of predict")
    def _(box: Box) -> None:
        box.get("run")
        box.get("photo.jpg")
        edit_json(
            box / "run" / "bundle", "labels.json", lambda v: [one.update(threshold=0.0) for one in v["labels"]] and None
        )
        for top in (1, 3):
            out = ("--csv", f"{top}.csv", "--label-studio", f"{top}/tasks.json")
            box.run("predict", "run", "photo.jpg", *out, "--top", str(top), writes=[f"{top}.csv", f"{top}/**"])
            row = next(csv.DictReader((box / f"{top}.csv").read_text().splitlines()))
            box.expect(len(row["labels"].split("|")) == top, f"--csv has {row['labels']}")
            tasks = box.json_file(f"{top}/tasks.json")
            chosen = tasks[0]["predictions"][0]["result"][0]["value"]["choices"]
            box.expect(len(chosen) == top, f"--label-studio has {chosen}")

    for name, more in {
        "a large but finite lr": ["optimiser.lr=1e30"],
        "a tiny lr": ["optimiser.lr=1e-300"],
        "an lr of nothing": ["optimiser.lr=0"],
        "a huge weight decay": ["optimiser.weight_decay=1e30"],
        "a batch of a million": ["train.batch_size=1000000"],
        "label smoothing of nearly 1": ["loss.label_smoothing=0.999"],
        "an ema of nearly 1": ["train.ema=0.999999"],
        "a clip of almost nothing": ["train.clip=1e-30"],
        "random weights of 16 pixels": ["backbone.image_size=16"],
    }.items():

        def extreme(box: Box, more: list[str] = more) -> None:
            box.get("photos")
            box.get("photo.jpg")
            base = quick_without(*(one.split("=")[0] for one in more))
            words = ["train", "photos", *base, *[part for one in more for part in ("--set", one)], "--out", "new"]
            if box.run(*words, codes=[0, 2], writes=["new/**"], cpu=60).code == 0:
                box.expect(finite(box.json_file("new/results.json")), "results that are no numbers")
                found = box.run("predict", "new", "photo.jpg", "--json").json()
                box.expect(finite(found), "scores that are no numbers")
            else:
                box.expect(not (box / "new" / "bundle").exists(), "refused, and a bundle all the same")

        made.add(name, extreme)

    for setting in (
        "tasks.labels.kind=magic",
        "tasks.nothing.kind=detection",
        "backbone.options.experts.count=0",
        "backbone.options.experts.count=-1",
        "backbone.options.experts.count=1000000000",
        "backbone.options.width=0",
        "backbone.options.width=17",
        "backbone.options.heads=3",
        "backbone.options.patch=0",
        "backbone.options.layers=0",
        "backbone.options.k=0",
        "backbone.options.k=5",
        "train.steps=-1",
        "train.steps=.nan",
        "train.adapt.every=0",
        "train.adapt.held_out=2",
        "train.adapt.held_out=.nan",
        "tasks.labels.image_size=3",
        "tasks.labels.batch_size=0",
        "tasks.objects.weight=.nan",
        "tasks.objects.weight=-1",
        "optimiser.lr=1e308",
        "optimiser.lr=.nan",
        "tasks.objects.head.proposals=0",
        "tasks.objects.head.score=.nan",
        "train.best_by=lables",
    ):

        def several(box: Box, setting: str = setting) -> None:
            box.get("small.yaml")
            words = ["train", "--recipe", "small.yaml", "--set", setting, "--out", "new"]
            box.run(*words, codes=[2], writes=["new/**"], memory=900 * MB, cpu=60)

        made.add(f"tasks: {setting}", several)

    for old, new in {
        "vit.width=16": "backbone.options",
        "experts.count=4": "backbone.options.experts",
        "selection.every=2": "train.adapt",
        "train.judge_every=2": "train.evaluate_every",
        "tasks.labels.rate=1": "tasks.labels.lr_scale",
        "tasks.objects.detector.proposals=20": "tasks.objects.head",
    }.items():

        def renamed(box: Box, old: str = old, new: str = new) -> None:
            box.get("small.yaml")
            box.run("train", "--recipe", "small.yaml", "--set", old, "--out", "new", codes=[2], says=f"called {new}")

        made.add(f"tasks: {old} is called {new} now", renamed)

    @made.case("predict of several tasks without --task answers all of them")
    def _(box: Box) -> None:
        box.get("tasks")
        box.get("photo.jpg")
        (found,) = box.run("predict", "tasks", "photo.jpg", "--json").json()
        box.expect(list(found["tasks"]) == ["labels", "objects"], f"answers of {list(found['tasks'])}")
        box.expect(finite(found), "scores that are no numbers")
        lines = box.run("predict", "tasks", "photo.jpg").out.splitlines()
        box.expect(len(lines) == 2, f"{len(lines)} lines for two tasks")

    yield made

"""Open Images by label and count: the label files are read, images chosen and brought, and a small set of the same
form is left: class descriptions, one label file for each split, and the images in a folder for each split."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from manylabel.data.fetch.archives import (
    Way,
    already_there,
    bring,
    check_space,
    readable,
    show_licence,
    tidy,
    to_download,
)
from manylabel.data.fetch.catalogue import CLASS_DESCRIPTIONS, LABEL_FILES, TRAINABLE, DataSet
from manylabel.data.fetch.choice import HEADER, candidates, find_labels, read_classes, rows_of
from manylabel.data.fetch.manifest import Manifest, Wanted, alone
from manylabel.data.fetch.photos import USUAL, Photos
from manylabel.error import DataError
from manylabel.spreadsheet import sheet_writer
from manylabel.storage.atomic import replacing

USUAL_SPLITS = ("train", "validation")


def fetch_open_images(
    data: DataSet,
    out: Path,
    labels: Sequence[str],
    count: int,
    splits: tuple[str, ...],
    seed: int,
    other_labels: bool,
    way: Way,
) -> Path:
    """In each split up to `count` images verified to show each label, with their verified labels."""
    if not labels:
        raise DataError("Open Images has millions of images; say which labels are wanted, for example --label Dog")
    if count < 1:
        raise DataError(f"the count of images for each label must be at least 1, not {count}")
    splits = splits or USUAL_SPLITS
    asked: Wanted = {
        "labels": list(labels),
        "count": count,
        "splits": list(splits),
        "seed": seed,
        "other labels": other_labels,
    }
    manifest = Manifest(out, data.name, asked)
    if already_there(manifest, _missing(out, splits), way):
        return out
    show_licence(data, way)
    files = {archive.name: archive for archive in data.archives}
    wanted = [files[CLASS_DESCRIPTIONS], files[TRAINABLE], *(files[LABEL_FILES[split]] for split in splits)]
    download, images = sum(to_download(out, archive) for archive in wanted), count * len(labels) * len(splits)
    check_space(out, download + images * USUAL, f"{data.name} with up to {images:,} images")
    way.say(f"up to {images:,} images (about {readable(images * USUAL)}) and {readable(download)} of label files")
    with alone(out):
        return _fetch(data, out, manifest, way, labels, count, splits, seed, other_labels)


def _fetch(
    data: DataSet,
    out: Path,
    manifest: Manifest,
    way: Way,
    names: Sequence[str],
    count: int,
    splits: tuple[str, ...],
    seed: int,
    other_labels: bool,
) -> Path:
    files = {archive.name: archive for archive in data.archives}

    def official(name: str) -> Path:
        path, got = bring(files[name], out, manifest, way)
        manifest.note(name, got)
        return path

    manifest.begin()
    classes = read_classes(official(CLASS_DESCRIPTIONS))
    labels = find_labels(names, classes)
    trainable = set(official(TRAINABLE).read_text(encoding="utf-8").split())
    for mid in sorted(set(labels) - trainable):
        way.say(f"{labels[mid]!r} is not one of Open Images' trainable labels: it has fewer than 100 verified images")
    had: dict[str, dict[str, int]] = {}
    used = set(labels)
    for split in splits:
        source = official(LABEL_FILES[split])
        with way.progress(f"reading {source.name}", source.stat().st_size) as advance:
            spare = count + count // 2 + 20  # for images that are gone or broken
            ranked = candidates(source, list(labels), spare, seed, advance)
        kept = Photos(out, split, way).choose(ranked, count)
        had[split] = {labels[mid]: len(images) for mid, images in kept.items()}
        for name, number in had[split].items():
            if number < count:
                way.say(f"{split} has only {number} images of {name!r} that can be had, not {count}")
        chosen = {image for images in kept.values() for image in images}
        used |= _write_labels(source, out / LABEL_FILES[split], chosen, None if other_labels else set(labels), way)
    for name in labels.values():
        if not any(numbers[name] for numbers in had.values()):
            raise DataError(f"{', '.join(splits)} of Open Images: no image of {name!r} can be had; try another split")
    _write_classes(out / CLASS_DESCRIPTIONS, {mid: name for mid, name in classes.items() if mid in used})
    tidy(out, way, files.values(), splits)
    manifest.finish(images=had)
    way.say(f"{sum(sum(1 for _ in (out / split).glob('*.jpg')) for split in splits):,} images are in {out}")
    return out


def _write_labels(source: Path, path: Path, images: set[str], labels: set[str] | None, way: Way) -> set[str]:
    """The rows of these images in a file of the same form; returns the labels that occur in it."""
    occur = set()
    with (
        way.progress(f"writing {path.name}", source.stat().st_size) as advance,
        replacing(path) as temporary,
        open(temporary, "w", newline="", encoding="utf-8") as file,
    ):
        writer = sheet_writer(file)
        writer.writerow([name.decode() for name in HEADER])
        for row in rows_of(source, images, labels, advance):
            writer.writerow(row)
            occur.add(row[2])
    return occur


def _write_classes(path: Path, labels: dict[str, str]) -> None:
    with replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = sheet_writer(file)
        writer.writerow(["LabelName", "DisplayName"])
        writer.writerows(labels.items())


def _missing(out: Path, splits: tuple[str, ...]) -> list[str]:
    wanted = [CLASS_DESCRIPTIONS, *(LABEL_FILES[split] for split in splits), *splits]
    return [path for path in wanted if not (out / path).exists()]

"""What can be fetched: for each data set its official archives, their sizes and checksums, and its licence.

Where the figures come from (looked up, never guessed):
  VOC       sizes: Keras' guides (2007 test, 2012) and TFDS (2007 trainval); md5: torchvision/datasets/voc.py;
            sha256 of 2012: tensorflow/datasets url_checksums/voc.txt. Oxford now sends host.robots on to thor.robots.
  COCO      sizes and sha256: tensorflow/datasets url_checksums/coco.txt.
  NUS-WIDE  nobody publishes sizes or checksums; the ceilings follow from the shapes the authors describe
            (269,648 rows; 81 concepts; 1,000 tags; two or three bytes an entry).
  Open Images  rounded sizes as the bucket answered in 2026; the bucket states an md5 with each answer, which we check.
"""

from __future__ import annotations

from dataclasses import dataclass

SLACK = 1.1  # how much more than the catalogue's figure an archive may unpack to
ROUNDED = 2.0  # how much more than a rounded size a server may send


@dataclass(frozen=True)
class Archive:
    """One file to download. `size` is exact, or a rounded figure when `exact` is False (then no more than twice)."""

    url: str
    size: int
    unpacked: int = 0  # bytes on disk once unpacked; 0 for a file that stays as it is
    exact: bool = True
    checksum: str | None = None  # 'md5:…' or 'sha256:…'; None: the first download's is remembered
    folder: str = ""  # where it unpacks to, for archives that have no folder of their own
    split: str | None = None  # None: needed with every split
    also: tuple[str, ...] = ()  # further places, tried in order when the first does not have it
    only: tuple[tuple[str, str], ...] = ()  # (split, pattern): such members are left out unless the split is wanted

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[-1]

    @property
    def limit(self) -> int:
        """Never take more bytes than this, whatever the server says."""
        return self.size if self.exact else int(self.size * ROUNDED)


@dataclass(frozen=True)
class DataSet:
    """A name for `fetch`, what it brings, and what its owners ask of those who use it."""

    name: str
    about: str
    licence: str
    page: str  # where the licence can be read
    archives: tuple[Archive, ...]
    expects: tuple[tuple[str | None, str], ...]  # (split or None, path) that must exist afterwards
    by_label: bool = False

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(archive.split for archive in self.archives if archive.split))

    @property
    def size(self) -> int:
        """Bytes to download for everything (for Open Images: the label files, without any image)."""
        return sum(archive.size for archive in self.archives)


VOC_LICENCE = "the photographs come from Flickr; whoever uses them must respect Flickr's terms of use"
COCO_LICENCE = "annotations CC BY 4.0; the photographs come from Flickr and remain under Flickr's terms of use"
OPEN_IMAGES = "https://storage.googleapis.com/openimages/v7"
IMAGE_BUCKET = "https://open-images-dataset.s3.amazonaws.com"
CLASS_DESCRIPTIONS = "oidv7-class-descriptions.csv"
TRAINABLE = "oidv7-classes-trainable.txt"
LABEL_FILES = {
    split: f"oidv7-{name}-annotations-human-imagelabels.csv"
    for split, name in (("train", "train"), ("validation", "val"), ("test", "test"))
}


def _voc(year: int, *files: tuple[str, str, int, str]) -> DataSet:
    """Of (file, split, bytes, checksum)."""
    archives = []
    for file, split, size, checksum in files:
        path = f"robots.ox.ac.uk/pascal/VOC/voc{year}/{file}"
        # a plain tar: what it holds is never more than the tar itself
        places = f"https://thor.{path}", f"http://host.{path}"
        archives.append(Archive(places[0], size, size, checksum=checksum, split=split, also=places[1:]))
    parts = ("JPEGImages", "Annotations", "ImageSets/Main")
    return DataSet(
        f"voc{year}",
        f"PASCAL VOC {year}, 20 labels with boxes and masks",
        VOC_LICENCE,
        f"http://host.robots.ox.ac.uk/pascal/VOC/voc{year}/index.html",
        tuple(archives),
        tuple((None, f"VOCdevkit/VOC{year}/{part}") for part in parts),
    )


def _coco(year: int, labels: tuple[int, str], **splits: tuple[int, str]) -> DataSet:
    """Of (bytes, sha256) of the labels and of the images of each split."""
    # instances_train2017.json alone has 469,785,474 bytes and captions_train2017.json 91,865,115; the key points and
    # the validation files bring it to under 0.9 GB. 2014 holds the same annotations, split otherwise.
    home = "http://images.cocodataset.org"
    only = tuple((split, f"*_{split}{year}.json") for split in splits)
    sums = [f"sha256:{labels[1]}", *(f"sha256:{sha256}" for _, sha256 in splits.values())]
    url = f"{home}/annotations/annotations_trainval{year}.zip"
    archives = [Archive(url, labels[0], 900_000_000, checksum=sums[0], only=only)]
    for (split, (size, _)), checksum in zip(splits.items(), sums[1:], strict=True):
        # JPEG hardly shrinks in a zip: train2017 is 19.3 GB zipped and as files
        archives.append(Archive(f"{home}/zips/{split}{year}.zip", size, size, checksum=checksum, split=split))
    return DataSet(
        f"coco{year}",
        f"MS COCO {year}, training and validation images with 80 labels, boxes and masks",
        COCO_LICENCE,
        "https://cocodataset.org/#termsofuse",
        tuple(archives),
        tuple((s, form.format(s, year)) for form in ("{}{}", "annotations/instances_{}{}.json") for s in splits),
    )


def _nus(folder: str, unpacked: int) -> Archive:
    # The university's server is often away; the Internet Archive keeps the copies of the lab's earlier server.
    # A zip is not larger than what is in it, so that is its ceiling.
    url = f"https://lms.comp.nus.edu.sg/wp-content/uploads/2019/research/nuswide/{folder}.zip"
    archived = f"https://web.archive.org/web/2018id_/http://dl.nextcenter.org/public/nuswide/{folder}.zip"
    return Archive(url, unpacked, unpacked, exact=False, folder=folder, also=(archived,))


def _open_images(file: str, size: int, split: str | None = None) -> Archive:
    return Archive(f"{OPEN_IMAGES}/{file}", size, exact=False, split=split)


NUS_FILES = (
    *("Groundtruth/AllLabels", "Groundtruth/TrainTestLabels", "ConceptsList/Concepts81.txt"),
    *("ImageList/Imagelist.txt", "NUS_WID_Tags/TagList1k.txt"),
)
TRAINVAL_2012 = "sha256:e14f763270cf193d0b5f74b169f44157a4b0c6efa708f4dd0ff78ee691763bcb"
CATALOGUE: dict[str, DataSet] = {
    data.name: data
    for data in (
        _voc(
            2007,
            ("VOCtrainval_06-Nov-2007.tar", "trainval", 460_032_000, "md5:c52e279531787c972589f7e41ab4ae64"),
            ("VOCtest_06-Nov-2007.tar", "test", 451_020_800, "md5:b6e924de25625d8de591ea690078ad9f"),
        ),
        # the labels of its test images were never published
        _voc(2012, ("VOCtrainval_11-May-2012.tar", "trainval", 1_999_639_040, TRAINVAL_2012)),
        _coco(
            2014,
            (252_872_794, "031296bbc80c45a1d1f76bf9a90ead27e94e99ec629208449507a4917a3bf009"),
            train=(13_510_573_713, "ede4087e640bddba550e090eae701092534b554b42b05ac33f0300b984b31775"),
            val=(6_645_013_297, "fe9be816052049c34717e077d9e34aa60814a55679f804cd043e3cbee3b9fde0"),
        ),
        _coco(
            2017,
            (252_907_541, "113a836d90195ee1f884e704da6304dfaaecff1f023f49b6ca93c4aaae470268"),
            train=(19_336_861_798, "69a8bb58ea5f8f99d24875f21416de2e9ded3178e903f1f7603e283b9e06d929"),
            val=(815_585_330, "4f7e2ccb2866ec5041993c9cf2a952bbed69647b115d0f74da7ce8f4bef82f05"),
        ),
        DataSet(
            "nus-wide",
            "NUS-WIDE annotations: 81 concepts and 1,000 tags of 269,648 images (the images only on request)",
            "its authors state no licence; ask them for the images, which remain under Flickr's terms of use",
            "https://lms.comp.nus.edu.sg/wp-content/uploads/2019/research/nuswide/NUS-WIDE.html",
            (
                _nus("Groundtruth", 135_000_000),
                _nus("ConceptsList", 200_000),
                _nus("ImageList", 40_000_000),
                _nus("NUS_WID_Tags", 1_400_000_000),
            ),
            tuple((None, path) for path in NUS_FILES),
        ),
        DataSet(
            "openimages",
            "Open Images V7, chosen labels and a number of images of each, with their human-verified labels",
            "annotations CC BY 4.0 by Google; the photographs are listed as CC BY 2.0, which you should check for each",
            "https://storage.googleapis.com/openimages/web/factsfigures_v7.html",
            (
                _open_images(CLASS_DESCRIPTIONS, 501_178),
                _open_images(TRAINABLE, 120_000),  # 9,605 lines of at most 12 bytes
                _open_images(LABEL_FILES["train"], 2_740_000_000, "train"),
                _open_images(LABEL_FILES["validation"], 28_400_000, "validation"),
                _open_images(LABEL_FILES["test"], 69_570_530, "test"),  # V4's size; V7's is somewhat larger
            ),
            (),
            by_label=True,
        ),
    )
}

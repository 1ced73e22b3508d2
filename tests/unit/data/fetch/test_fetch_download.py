"""One file from a server that cuts, stalls, changes and lies."""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from loopback import CONTENT, PATH, QUICK, Plan, Site, archive_of, bring
from loopback import site as site
from loopback import target as target

from manylabel.data.fetch import download as module
from manylabel.data.fetch import part as part_module
from manylabel.data.fetch.connection import Patience, Unreachable
from manylabel.data.fetch.download import WrongChecksum
from manylabel.data.fetch.part import NoRoom
from manylabel.error import DataError


def part_of(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_file_arrives_verified_and_counted(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    steps: list[int] = []
    got = bring(site, target, advance=steps.append)
    assert target.read_bytes() == CONTENT
    assert got.sha256 == got.verified == f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
    assert (got.size, sum(steps)) == (len(CONTENT), len(CONTENT))
    assert left_in(target.parent) == ["toy.tar"]


def test_md5_is_checked_and_sha256_reported(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    md5 = f"md5:{hashlib.md5(CONTENT).hexdigest()}"
    got = bring(site, target, archive_of(CONTENT, checksum=md5))
    assert (got.verified, got.sha256) == (md5, f"sha256:{hashlib.sha256(CONTENT).hexdigest()}")


def test_after_a_cut_only_the_missing_bytes_are_asked_for(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    site.plans[PATH] = [Plan(cut_after=100_000)]
    steps: list[int] = []
    bring(site, target, advance=steps.append)
    assert target.read_bytes() == CONTENT
    first, second = site.asked
    assert (first.range, first.sent) == (None, 100_000)
    assert (second.range, second.status, second.sent) == ("bytes=100000-", 206, 200_000)
    assert second.if_range == f'"{hashlib.md5(CONTENT).hexdigest()}"'
    assert sum(steps) == len(CONTENT)


def test_a_later_process_goes_on_from_the_part(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    site.always[PATH] = Plan(cut_after=50_000)
    with pytest.raises(Unreachable):
        bring(site, target, patience=Patience(tries=1))
    assert part_of(target).read_bytes() == CONTENT[:50_000]
    site.always.clear()
    bring(site, target)
    assert target.read_bytes() == CONTENT
    assert site.asked[-1].sent == 250_000


def test_cut_at_every_try_ends_with_the_part_kept(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    site.always[PATH] = Plan(cut_after=1_000)
    with pytest.raises(Unreachable, match=r"4 times in a row; 4,000 bytes are kept in .*toy\.tar\.part") as caught:
        bring(site, target)
    assert site.address + PATH in str(caught.value)
    assert len(site.asked) == QUICK.tries
    assert part_of(target).read_bytes() == CONTENT[:4_000]
    assert not target.exists()


def test_tries_that_bring_much_do_not_count(site: Site, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORTH", 10_000)
    site.files[PATH] = CONTENT
    site.always[PATH] = Plan(cut_after=20_000)
    bring(site, target, patience=Patience(tries=2, first_wait=0.001))
    assert target.read_bytes() == CONTENT
    assert len(site.asked) == 15


def test_a_chunked_body_that_is_cut_is_noticed(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    site.plans[PATH] = [Plan(chunked=True, cut_after=50_500)]
    bring(site, target, archive_of(CONTENT, exact=False, checksum=None))
    assert target.read_bytes() == CONTENT


def test_wrong_bytes_are_tried_once_more_and_then_refused(site: Site, target: Path) -> None:
    wrong = bytes(len(CONTENT))
    site.files[PATH] = wrong
    said: list[str] = []
    with pytest.raises(WrongChecksum) as caught:
        bring(site, target, say=said.append)
    for part in (site.address + PATH, hashlib.sha256(CONTENT).hexdigest(), hashlib.sha256(wrong).hexdigest()):
        assert part in str(caught.value)
    assert "once more from the start" in said[0]
    assert [asked.range for asked in site.asked] == [None, None]
    assert left_in(target.parent) == []


def test_wrong_bytes_once_are_mended(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    site.plans[PATH] = [Plan(body=bytes(len(CONTENT)))]
    steps: list[int] = []
    bring(site, target, advance=steps.append)
    assert target.read_bytes() == CONTENT
    assert sum(steps) == len(CONTENT)


def test_a_spoilt_part_is_found_out_by_the_checksum(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    target.parent.mkdir()
    part_of(target).write_bytes(bytes(1_000))
    bring(site, target)
    assert target.read_bytes() == CONTENT
    assert [asked.range for asked in site.asked] == ["bytes=1000-", None]


@pytest.mark.parametrize("announced", [len(CONTENT) - 1, len(CONTENT) + 1])
def test_another_length_than_the_catalogue_says_is_refused(site: Site, target: Path, announced: int) -> None:
    site.files[PATH] = CONTENT
    site.always[PATH] = Plan(length=announced)
    with pytest.raises(DataError, match=f"announces {announced:,} bytes, but the file has {len(CONTENT):,}"):
        bring(site, target)
    assert len(site.asked) == 1
    assert not target.exists()


def test_a_body_longer_than_announced_is_not_taken(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT + b"more" * 1000
    site.always[PATH] = Plan(length=len(CONTENT))
    bring(site, target)
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("exact", [True, False])
def test_an_endless_body_never_fills_the_disk(site: Site, target: Path, exact: bool) -> None:
    site.files[PATH] = CONTENT * 10
    site.always[PATH] = Plan(chunked=True)
    with pytest.raises(DataError):
        bring(site, target, archive_of(CONTENT, exact=exact, checksum="sha256:00"))
    assert left_in(target.parent) == []


def test_more_than_twice_a_rounded_size_is_refused_at_once(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    with pytest.raises(DataError, match=r"announces 300,000 bytes, more than 200,000"):
        bring(site, target, archive_of(CONTENT, size=100_000, exact=False, checksum=None))
    assert not part_of(target).exists()


def test_a_rounded_size_needs_a_length(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    site.always[PATH] = Plan(no_length=True)
    with pytest.raises(DataError, match="does not say how long"):
        bring(site, target, archive_of(CONTENT, exact=False, checksum=None))
    bring(site, target)  # with an exact size a cut shows
    assert target.read_bytes() == CONTENT


def test_a_server_without_ranges_starts_over(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    site.plans[PATH] = [Plan(cut_after=100_000, ranges=False), Plan(ranges=False)]
    steps: list[int] = []
    bring(site, target, advance=steps.append)
    assert target.read_bytes() == CONTENT
    assert [asked.status for asked in site.asked] == [200, 200]
    assert sum(steps) == len(CONTENT)


def test_a_changed_file_is_not_joined_to_the_old_part(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    site.plans[PATH] = [Plan(cut_after=100_000, body=bytes(len(CONTENT)), etag='"old"')]
    got = bring(site, target, archive_of(CONTENT, checksum=None, exact=False))
    assert target.read_bytes() == CONTENT
    assert (site.asked[1].if_range, site.asked[1].status) == ('"old"', 200)
    assert got.verified == ""


def test_a_part_of_unknown_origin_counts_only_with_a_checksum(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    target.parent.mkdir()
    part_of(target).write_bytes(b"something else")
    bring(site, target, archive_of(CONTENT, checksum=None, exact=False))
    assert target.read_bytes() == CONTENT
    assert site.asked[0].range is None


def test_a_weak_etag_is_no_proof_of_the_same_bytes(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    site.plans[PATH] = [Plan(cut_after=100_000, etag='W/"a"')]
    bring(site, target, archive_of(CONTENT, checksum=None, exact=False))
    assert site.asked[1].range is None
    assert target.read_bytes() == CONTENT


def test_the_checksum_a_server_states_is_used_when_nobody_publishes_one(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    right = base64.b64encode(hashlib.md5(CONTENT).digest()).decode()
    site.always[PATH] = Plan(headers={"x-goog-hash": f"crc32c=AAAAAA==,md5={right}"})
    archive = archive_of(CONTENT, checksum=None, exact=False)
    assert bring(site, target, archive).verified == f"md5:{hashlib.md5(CONTENT).hexdigest()}"
    wrong = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    site.always[PATH] = Plan(headers={"x-goog-hash": f"md5={wrong}"})
    with pytest.raises(WrongChecksum, match="stated by the server"):
        bring(site, target.with_name("again"), archive)


def test_a_remembered_checksum_is_compared(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    archive = archive_of(CONTENT, checksum=None, exact=False)
    with pytest.raises(WrongChecksum, match="remembered from the first download"):
        bring(site, target, archive, known=f"sha256:{'0' * 64}")
    assert not target.exists()


def test_ctrl_c_leaves_the_part(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    site.plans[PATH] = [Plan(cut_after=100_000)]
    steps = []

    def stop(count: int) -> None:
        steps.append(count)
        if sum(steps) >= 150_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bring(site, target, advance=stop)
    kept = part_of(target).read_bytes()
    assert len(kept) >= 150_000
    assert CONTENT.startswith(kept)
    bring(site, target)
    assert target.read_bytes() == CONTENT
    assert site.asked[-1].sent == len(CONTENT) - len(kept)


CHILD = """
import sys
from pathlib import Path
from manylabel.data.fetch import Archive
from manylabel.data.fetch.download import download
url, size, checksum, path = sys.argv[1:]
download(Archive(url, int(size), checksum=checksum), Path(path), say=print, advance=lambda count: None)
"""


def test_a_killed_process_leaves_a_part_to_go_on_from(site: Site, target: Path) -> None:
    site.files[PATH] = CONTENT
    site.plans[PATH] = [Plan(cut_after=200_000, stall=True)]
    archive = archive_of(CONTENT)
    told = [site.address + PATH, str(archive.size), str(archive.checksum), str(target)]
    child = subprocess.Popen([sys.executable, "-c", CHILD, *told])
    try:
        part, until = part_of(target), time.monotonic() + 120
        while not (part.exists() and part.stat().st_size >= 100_000):
            assert time.monotonic() < until
            assert child.poll() is None
            time.sleep(0.01)
    finally:
        child.kill()
        child.wait()
    kept = part.stat().st_size
    assert not target.exists()
    bring(site, target)
    assert target.read_bytes() == CONTENT
    assert site.asked[-1].sent == len(CONTENT) - kept


class _Full:
    """A file on a disk without room."""

    def write(self, block: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        pass


def test_a_full_disk_is_said_and_not_tried_again(site: Site, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.files[PATH] = CONTENT
    monkeypatch.setattr(part_module, "open", lambda *args: _Full(), raising=False)
    with pytest.raises(NoRoom, match=r"cannot use .*toy\.tar\.part: No space left"):
        bring(site, target)
    assert len(site.asked) == 1

"""Files that a stranger may have written: what is too large, too deep, no number or no file is refused before it costs."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from strangers import limits

from manylabel.config import load_yaml, recipe_folder
from manylabel.error import BundleError, CheckpointError, ConfigError, DataError, ManylabelError
from manylabel.score_file import read_scores
from manylabel.storage.allowance import Allowance
from manylabel.storage.json_lines import read_rows, row_text
from manylabel.storage.json_text import parse_json, read_json, to_json
from manylabel.storage.npz_file import read_npy, read_npz
from manylabel.storage.own_file import read_own
from manylabel.storage.plain_file import read_bytes
from manylabel.storage.tensor_file import read_saved, read_tensors
from manylabel.storage.yaml_text import DEEPEST, MOST_VALUES, parse_yaml

PACKAGE = Path(__file__).parents[3] / "manylabel"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join(9 * ['*' + a])}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


# --- files ---------------------------------------------------------------------------------------------------------------


def test_a_pipe_a_folder_and_a_device_are_refused_unread(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(DataError, match="not a file"):
            read_bytes(path, 10)


def test_a_file_larger_than_its_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b" " * 1000)
    assert len(read_bytes(tmp_path / "x.json", 1000)) == 1000
    with pytest.raises(DataError, match=r"x\.json is larger than such a file can be"):
        read_bytes(tmp_path / "x.json", 999)


def test_a_limit_is_not_asked_of_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for content in (b"", b"x", bytes(1 << 17)):
        path.write_bytes(content)
        tracemalloc.start()
        assert read_bytes(path, 1 << 34) == read_own(path, 1 << 34) == content
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        tracemalloc.stop()
    assert read_bytes(Path("/proc/version"), 1 << 20).startswith(b"Linux")  # whose size is said to be 0


def test_a_recipe_of_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    with open(path, "wb") as file:
        file.truncate(10**9)
    with limits(), pytest.raises(ConfigError, match="larger than such a file can be"):
        load_yaml(path)


# --- JSON ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 200 + "1" + "}" * 200, "[" * 101 + "]" * 101])
def test_nested_json_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with limits(), pytest.raises(DataError, match=r"x\.json: no valid JSON \(nested more than 100 deep\)"):
        read_json(tmp_path / "x.json")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "1" + 400 * "0", "-" + 50 * "9"])
def test_json_with_what_is_no_number_is_refused_with_its_row(number: str) -> None:
    with pytest.raises(DataError, match=r"here, row 3: no valid JSON \(.* is no number that can be used\); mend it"):
        parse_json(f'{{\n"a": "some text",\n"b": [1, {number}]}}', "here", rows=True, advice="mend it")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**128), 2**128)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_json_of_everybody_else_is_what_it_was(value: Any) -> None:
    for text in (json.dumps(value), to_json(value)):
        assert parse_json(text, "here") == parse_json(text.encode("utf-8", "replace"), "here") or "\\ud" in text
        assert json.loads(text) == value


def test_nothing_prints_json_in_its_own_way() -> None:
    """`json.dumps` lets NaN through, which is no JSON; what is only hashed or kept by us may use it."""
    own = {"storage/json_text.py", "report/page.py", "data/write/json_list.py", "bench/extract.py"}
    kept = {"cache/key.py", "cache/extract.py", "cache/stage_file.py", "compare/runs.py", "training/checkpoint.py"}
    kept |= {"data/audit/journal.py", "data/shard/tar_index_cache.py", "data/read/coco.py"}
    found = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if "json.dump" in path.read_text()}
    assert found <= own | kept


@pytest.mark.parametrize(
    ("value", "where"), [({"a": [1, {"b": float("nan")}]}, r"a\[1\]\.b"), ([float("inf")], r"\[0\]")]
)
def test_json_of_ours_never_holds_nan(value: Any, where: str) -> None:
    with pytest.raises(ManylabelError, match=f"^{where} is not a finite number"):
        to_json(value)


def test_a_history_holds_null_where_a_figure_is_not_defined(tmp_path: Path) -> None:
    line = row_text({"epoch": 1, "loss": float("nan"), "held_out": {"a": float("inf"), "é": [0.5]}})
    assert json.loads(line) == {"epoch": 1, "loss": None, "held_out": {"a": None, "é": [0.5]}}
    (tmp_path / "m.jsonl").write_text(
        '{"epoch": 1, "loss": NaN}\n' + line + '{"epoch": 2, "lo'
    )  # as earlier versions wrote
    assert [row["epoch"] for row in read_rows(tmp_path / "m.jsonl")] == [1, 1]


# --- YAML ----------------------------------------------------------------------------------------------------------------


def test_a_yaml_bomb_of_some_hundred_bytes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(BOMB)
    assert len(BOMB) < 500
    with limits(1, 50), pytest.raises(ConfigError, match=rf"x\.yaml, row \d: no valid YAML \(more than {MOST_VALUES}"):
        load_yaml(tmp_path / "x.yaml")


def test_references_in_a_recipe_are_read_as_before() -> None:
    text = "a: &a {x: 1, y: [2, 3]}\nb: *a\nc:\n  <<: *a\n  x: 5\n"
    assert parse_yaml(text, "x") == yaml.safe_load(text)
    with pytest.raises(DataError, match="row 2: no valid YAML .a reference"):
        parse_yaml(text, "x", references=False)


@pytest.mark.parametrize("path", sorted(recipe_folder().glob("*.yaml")), ids=lambda path: path.stem)
def test_every_recipe_is_what_it_was(path: Path) -> None:
    assert load_yaml(path) == yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "text",
    [
        *("[" * 100_000, "- " * 100_000, "{a: " * 300, "&a [*a]", "a: *nobody", "[" + "a," * 120_000 + "]"),
        *("1" + ":59" * 80_000, "0x" + "f" * 200_000, "9" * 200_000, ".inf", "-.inf", ".nan", "1.0e+999"),
        *("!!int ''", "!!bool x", "!!float x", "!!timestamp x", "2001-99-99", "!!binary é", "? [1]\n: 2", "a\0b"),
        *("!!python/object/apply:os.getcwd []", "%YAML 9.9\n---\na", "---\na\n---\nb", "a: b: c", "\t- a"),
    ],
    ids=lambda text: text[:20],
)
def test_odd_yaml_is_an_error_of_ours(text: str) -> None:
    with limits(), pytest.raises(DataError, match=r"^x(, row \d+)?: no valid YAML"):
        parse_yaml(text, "x")


def test_yaml_may_be_as_deep_as_settings_are() -> None:
    assert parse_yaml("[" * (DEEPEST - 1) + "]" * (DEEPEST - 1), "x") is not None


# --- arrays --------------------------------------------------------------------------------------------------------------


def _scores(folder: Path, **arrays: np.ndarray) -> Path:
    given = {"keys": np.array(["a", "b"]), "scores": np.ones((2, 3), np.float32), "matrix": np.ones((2, 3), np.int8)}
    np.savez_compressed(folder / "scores.npz", **{**given, **arrays})
    return folder


def test_scores_that_expand_to_gigabytes_are_refused(tmp_path: Path) -> None:
    """2.3 MB of them expanded to 2.4 GB."""
    large = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (30_000, 10_000), (0, 0))
    _scores(tmp_path, matrix=np.ascontiguousarray(large[:10_000]))
    assert (tmp_path / "scores.npz").stat().st_size < 1_000_000
    with (
        limits(),
        pytest.raises(DataError, match=r"scores\.npz cannot be read \(it would take more than \d+ MB\); train"),
    ):
        read_scores(tmp_path)


@pytest.mark.parametrize(
    ("name", "array", "said"),
    [
        ("scores", np.full((2, 3), np.nan, np.float32), "scores: 6 of them are no numbers"),
        ("scores", np.full((2, 3), 7, np.float32), "scores: 6 of them are no numbers between 0 and 1"),
        ("scores", np.ones((2, 4), np.float32), r"for labels \(2, 3\)"),
        ("scores", np.ones(2, np.float32), r"for labels \(2, 3\)"),
        ("scores", np.ones((2, 3), np.int64), "holds"),
        ("matrix", np.full((2, 3), 7, np.int8), "an entry is none of"),
        ("keys", np.array([1, 2]), "holds int64"),
        ("keys", np.array(["a"]), "of .1,. images"),
        ("keys", np.array([{}, []], object), "not numbers or text"),
    ],
)
def test_scores_that_are_none_are_refused(name: str, array: np.ndarray, said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"scores.npz.*{said}.*train again"):
        read_scores(_scores(tmp_path, **{name: array}))


def test_scores_of_no_images_are_refused(tmp_path: Path) -> None:
    none = {"keys": np.array([], "U1"), "scores": np.ones((0, 3), np.float32), "matrix": np.ones((0, 3), np.int8)}
    with pytest.raises(DataError, match=r"scores\.npz holds no scores; train again"):
        read_scores(_scores(tmp_path, **none))


def test_arrays_are_read_as_numpy_reads_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {"a": rng.random((3, 4)), "b": np.asfortranarray(rng.random((5, 2))), "c": np.array(["é", "long one"])}
    arrays |= {"d": np.zeros((0, 7), np.int8), "e": np.array(3), "f": np.array(["", ""])}
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", **arrays)
        found = read_npz(tmp_path / "x.npz")
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype
            assert np.array_equal(found[name], array)
    np.save(tmp_path / "v.npy", arrays["b"])
    assert np.array_equal(read_npy(tmp_path / "v.npy"), arrays["b"])


@pytest.mark.parametrize("shape", ["(10000000000,)", "(-1,)", "(99999999999999999999, 9)", "(3,)", "()", "x"])
def test_an_array_that_lies_about_its_size_is_refused(shape: str, tmp_path: Path) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(16)
    (tmp_path / "x.npy").write_bytes(data)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("a.npy", data)
    (tmp_path / "x.npz").write_bytes(packed.getvalue())
    for read in (lambda: read_npy(tmp_path / "x.npy"), lambda: read_npz(tmp_path / "x.npz")):
        with limits(1, 20), pytest.raises(DataError, match="cannot be read"):
            read()


# --- tensors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [4], "data_offsets": [0, 2**63]},
        {"dtype": "F32", "shape": [2**62], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [4], "data_offsets": [16, 0]},
        {"dtype": "F32", "shape": [2**62, 0], "data_offsets": [0, 0]},
        {"dtype": "X", "shape": [4], "data_offsets": [0, 16]},
        {"shape": 10**40},
        "a text",
    ],
)
def test_tensors_that_lie_about_their_place_are_refused(entry: Any, tmp_path: Path) -> None:
    header = json.dumps({"a": entry}).encode()
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(16))
    with limits(1, 20), pytest.raises(CheckpointError, match=r"x\.safetensors"):
        read_tensors(tmp_path / "x.safetensors")


def test_a_header_nested_without_end_is_refused(tmp_path: Path) -> None:
    header = b"[" * 50_000
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    with limits(1, 20), pytest.raises(CheckpointError, match="nested more than 100 deep"):
        read_tensors(tmp_path / "x.safetensors")


def test_tensors_are_what_was_saved(tmp_path: Path) -> None:
    kinds = (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.uint8)
    tensors = {str(kind): torch.arange(6).reshape(2, 3).to(kind) for kind in kinds} | {"none": torch.zeros(0, 4)}
    save_file(tensors, tmp_path / "x.safetensors", metadata={"a": "b"})
    found = read_tensors(tmp_path / "x.safetensors")
    assert found.texts == {"a": "b"}
    assert all(torch.equal(found.tensors[name], tensor) for name, tensor in tensors.items())


def test_a_network_may_take_as_much_as_its_weights() -> None:
    weights = {"a": torch.zeros(1000, 1000)}
    with Allowance(weights):
        torch.nn.Linear(1000, 1000)
    with limits(1, 20), pytest.raises(BundleError, match="far larger network"), Allowance(weights):
        torch.nn.Linear(100_000, 100_000)
    with limits(2, 50), pytest.raises(BundleError, match="far larger network"), Allowance(weights):
        all(torch.nn.Linear(1, 1) for _ in range(10**9))


class _Bytes:
    def __reduce__(self) -> Any:
        return bytearray, (3_000_000_000,)


def _rewritten(path: Path, kind: int, change: dict[str, bytes]) -> None:
    """The same archive, packed in this way, with other entries."""
    with zipfile.ZipFile(path) as saved:
        entries = {name: saved.read(name) for name in saved.namelist()}
    with zipfile.ZipFile(path, "w", kind) as saved:
        for name, content in entries.items():
            saved.writestr(name, change.get(name.partition("/")[2], content))


@pytest.mark.parametrize("old", [False, True])
def test_what_torch_saved_is_read(tmp_path: Path, old: bool) -> None:
    path, state = tmp_path / "weights.pth", {"a": torch.arange(6.0), "b": {"c": torch.ones(2, 3, dtype=torch.float16)}}
    torch.save(state, path, _use_new_zipfile_serialization=not old)
    found = read_saved(path)
    assert torch.equal(found["a"], state["a"])
    assert torch.equal(found["b"]["c"], state["b"]["c"])


def test_saved_weights_that_are_larger_than_their_file_are_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "weights.pth"
    torch.save({"a": torch.zeros(60_000_000)}, path)
    _rewritten(path, zipfile.ZIP_DEFLATED, {})
    with limits(), pytest.raises(CheckpointError, match="more than the file is large"):
        read_saved(path)
    torch.save({"a": torch.zeros(3)}, path)
    _rewritten(path, zipfile.ZIP_STORED, {"data.pkl": pickle.dumps({"a": _Bytes()}, protocol=2)})
    with limits(), pytest.raises(CheckpointError, match="asks for memory"):
        read_saved(path)
    path.unlink()
    os.mkfifo(path)
    with limits(), pytest.raises(CheckpointError, match="a pipe"):
        read_saved(path)

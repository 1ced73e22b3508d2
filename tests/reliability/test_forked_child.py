"""A model works in a child made by fork, as multiprocessing begins one: it does not wait for threads of the parent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from net.kept_runs import ARCHIVE, unpack

SLOW = pytest.mark.slow
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
SECONDS = 60  # a child that waits for threads waits for ever; one that works needs one or two

SCRIPT = """
import os, sys, time
from pathlib import Path
import numpy as np, torch
import manylabel as ml
from manylabel.explain import explain

bundle, kind, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
images = list(np.random.default_rng(0).integers(0, 256, (16, 96, 96, 3)).astype(np.uint8))
assert torch.get_num_threads() == 2

def scores(answers):
    return np.array([[entry.score for entry in sorted(one.labels, key=lambda e: e.label)] for one in answers])

if kind == "tasks":
    several = ml.TaskPredictor.load(bundle)
    work = lambda: scores(several.predict(images, "labels"))
elif kind == "explain":
    loaded = ml.load_bundle(bundle)
    work = lambda: np.array([found.map.mean() for found in explain(loaded, images[:4], method="grad_cam", stage="stage-2")])
elif kind == "loaded":  # the parent computes something of its own, and only the child predicts
    loaded = ml.load_bundle(bundle)
    before = torch.rand(1000, 1000).relu().mean() * 0
    work = lambda: scores(ml.Predictor(loaded).predict(images)) * 0
elif kind == "import":  # the parent only computed, and the child is the first to load a model
    before = torch.rand(1000, 1000).relu().mean() * 0
    work = lambda: scores(ml.Predictor.load(bundle).predict(images)) * 0
elif kind == "onnx":
    from onnx import TensorProto, helper
    from manylabel.engine.onnx import OnnxEngine

    side = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, [512, 512])
    node, out = helper.make_node("MatMul", ["pixels", "pixels"], ["out"]), "out"
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, [512, 512])
    graph = helper.make_graph([node], "square", [side], [out])
    import onnx

    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), bundle + "/square.onnx")
    engine = OnnxEngine(Path(bundle) / "square.onnx", threads=2)
    values = np.ones((512, 512), np.float32)
    work = lambda: engine(values)["out"]
else:
    one = ml.Predictor.load(bundle)
    work = lambda: scores(one.predict(images))
before = work() if kind not in ("loaded", "import") else before.item()
child = os.fork()
if not child:
    os._exit(0 if np.allclose(work(), before, atol=1e-5) else 3)
end = time.monotonic() + seconds
while time.monotonic() < end:
    found, status = os.waitpid(child, os.WNOHANG)
    if found:
        if kind != "import":
            assert np.allclose(work(), before, atol=1e-5)  # and the parent goes on as it was
        assert torch.get_num_threads() == 2
        sys.exit(os.waitstatus_to_exitcode(status))
    time.sleep(0.05)
os.kill(child, 9)
sys.exit("the child waits for ever")
"""


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(ARCHIVE, tmp_path_factory.mktemp("kept")) / "runs" / "tasks"


@pytest.mark.parametrize(
    "kind",
    ["one", "loaded", "import", "onnx", pytest.param("explain", marks=SLOW), pytest.param("tasks", marks=SLOW)],
)
def test_predicting_in_a_forked_child(trained: Path, several: Path, tmp_path: Path, kind: str) -> None:
    if kind == "onnx":
        pytest.importorskip("onnxruntime")
    where = {"tasks": several, "onnx": tmp_path}.get(kind, trained)
    command = [sys.executable, "-c", SCRIPT, str(where), kind, str(SECONDS)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "2"}, timeout=300
    )
    assert done.returncode == 0, done.stderr

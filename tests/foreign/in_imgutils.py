"""Run by an environment that has dghs-imgutils: the tags of photos by a tagger's folder, as JSON.

The library asks a hub for files; here they lie in its cache already, as a download would have left them.
"""

import json
import os
import shutil
import sys
from pathlib import Path

folder, hub, photos = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
snapshot = hub / "models--someone--tagger" / "snapshots" / ("0" * 40)
shutil.copytree(folder, snapshot)
refs = hub / "models--someone--tagger" / "refs"
refs.mkdir()
(refs / "main").write_text("0" * 40)
missing = hub / "models--someone--tagger" / ".no_exist" / ("0" * 40)
missing.mkdir(parents=True)
(missing / "thresholds.csv").touch()  # as the hub says that there is none
os.environ |= {"HF_HUB_CACHE": str(hub), "HF_HUB_OFFLINE": "1"}

from imgutils.generic import MultiLabelTIMMModel  # noqa: E402

model = MultiLabelTIMMModel("someone/tagger")
answers = [model.predict(photo, fmt=("tag", "prediction", "embedding")) for photo in photos]
categories = model.predict(photos[0])
print(
    json.dumps(
        {
            "tags": [sorted(tags) for tags, _, _ in answers],
            "scores": [[float(score) for score in scores] for _, scores, _ in answers],
            "embedding": len(answers[0][2]),
            "categories": list(model._category_names.values()),
            "groups": len(categories),
        }
    )
)

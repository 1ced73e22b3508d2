"""The real Label Studio, on the loopback alone, with all it keeps in one folder; and the few calls that tests make."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from environments import python_of

HOST = "127.0.0.1"
TOKEN = "0123456789abcdef0123456789abcdef01234567"
PATIENCE = 240  # seconds: its database is made when it first starts


@dataclass(frozen=True)
class LabelStudio:
    """A server that runs."""

    address: str

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The answer as JSON; an error of the server is raised with what it says."""
        return json.loads(self.fetch(method, path, body) or "null")

    def fetch(self, method: str, path: str, body: Any = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Token {TOKEN}", "Content-Type": "application/json"}
        try:
            with urlopen(Request(self.address + path, data, headers, method=method), timeout=60) as answer:
                return bytes(answer.read())
        except HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()[:2000]}") from None

    def project(self, name: str, config: str) -> int:
        return int(self.call("POST", "/api/projects", {"title": name, "label_config": config})["id"])

    def import_file(self, project: int, file: Path) -> dict[str, Any]:
        """What the server says of a file of tasks: how many, and with how many predictions."""
        tasks = json.loads(file.read_text(encoding="utf-8"))
        return dict(self.call("POST", f"/api/projects/{project}/import?return_task_ids=true", tasks))

    def tasks(self, project: int) -> list[dict[str, Any]]:
        """Every task with its predictions and annotations, in the order of its id."""
        exported = self.call("GET", f"/api/projects/{project}/export?exportType=JSON&download_all_tasks=true")
        ids = sorted(task["id"] for task in exported)
        return [self.call("GET", f"/api/tasks/{number}") for number in ids]

    def annotate(self, task: int, result: list[dict[str, Any]], skipped: bool = False) -> None:
        self.call("POST", f"/api/tasks/{task}/annotations", {"result": result, "was_cancelled": skipped})

    def export(self, project: int, kind: str, everything: bool = False) -> bytes:
        wanted = f"exportType={kind}" + ("&download_all_tasks=true" if everything else "")
        return self.fetch("GET", f"/api/projects/{project}/export?{wanted}")


@contextmanager
def serving(folder: Path, documents: Path) -> Iterator[LabelStudio]:
    """A new server whose own files are in `folder` and that serves images under `documents`."""
    folder.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    log = folder / "server.log"
    command = [python_of("label-studio"), "-m", "label_studio.server", "start", "--no-browser", "--port", str(port)]
    command += ["--internal-host", HOST, "--data-dir", str(folder)]
    command += ["--username", "someone@example.com", "--password", "long-enough", "--user-token", TOKEN]
    with open(log, "wb") as out:
        server = subprocess.Popen(command, stdout=out, stderr=out, env=_environment(folder, documents), cwd=folder)
        try:
            studio = LabelStudio(f"http://{HOST}:{port}")
            _wait(studio, server, log)
            yield studio
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _environment(folder: Path, documents: Path) -> dict[str, str]:
    """Nothing of the caller's own Label Studio, and nothing told to anyone."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(("LABEL_STUDIO_", "DJANGO_"))}
    return own | {
        "HOME": str(folder),
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED": "true",
        "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT": str(documents),
        "LATEST_VERSION_CHECK": "false",
        "COLLECT_ANALYTICS": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
    }


def _wait(studio: LabelStudio, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if server.poll() is not None:
            break
        try:
            studio.call("GET", "/api/projects")
            return
        except (URLError, ConnectionError, TimeoutError, AssertionError):  # not there, or its user is not made yet
            time.sleep(0.5)
    raise AssertionError(f"Label Studio did not start; the end of its log:\n{log.read_text(errors='replace')[-3000:]}")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])

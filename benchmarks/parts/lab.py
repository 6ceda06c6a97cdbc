"""JupyterLab on loopback, as `make lab` has it; for browser tests and benchmarks."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from workbench.models.cache import cache_root

_PAGE = Path(__file__).parents[2] / "tools" / "jupyter" / "labconfig" / "page_config.json"  # as with `make lab`
_DISABLED = "@jupyterlab/debugger-extension"  # logs an error when a kernel ends while it asks about breakpoints
_START_S = 90.0


class Lab:
    """A JupyterLab server with a home, settings and a notebook folder of its own.

    Args:
        folder: for everything that it writes; the notebooks are in ``folder/notebooks``.
        environment: further variables for the server and its kernels.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder, self.token, self.port = folder / "notebooks", secrets.token_hex(16), _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "lab.log"
        self._env = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "IPYTHON"))}
        places = {
            "HOME": "home",
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
            "IPYTHONDIR": "ipython",
        }
        for name, place in places.items():
            (folder / place).mkdir(parents=True)
            self._env[name] = str(folder / place)
        self.folder.mkdir()
        self._env |= {"WORKBENCH_CACHE": str(cache_root().parent), "WORKBENCH_RUNS": str(folder / "runs")}
        self._env |= {"WORKBENCH_STATE": str(folder / "state"), **(environment or {})}
        page = folder / "config" / "labconfig" / "page_config.json"
        page.parent.mkdir()
        settings = json.loads(_PAGE.read_text())
        settings["disabledExtensions"][_DISABLED] = True
        page.write_text(json.dumps(settings))

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={self.port}"]
        command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={self.token}", "--expose-app-in-browser"]
        command += [f"--notebook-dir={self.folder}", *(["--allow-root"] if os.geteuid() == 0 else [])]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, env=self._env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        until = time.monotonic() + _START_S
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                self.__exit__()
                raise RuntimeError(f"JupyterLab does not answer:\n{self.log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.2)
        return self

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/api?token={self.token}", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()  # the server ends its kernels first
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

"""Sockets between our processes lie where nobody else can reach them."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from workbench.driver.host import DriverProcess
from workbench.engine.attached_probe import AttachedProbe
from workbench.engine.collector import Collector
from workbench.errors import ConfigError

NOBODY = 65534
CONNECT = """
import os, socket, sys
user = int(sys.argv[2])
os.setgroups([]), os.setgid(user), os.setuid(user)
socket.socket(socket.AF_UNIX).connect(sys.argv[1])
"""


@pytest.fixture(params=["records", "rows"])
def path(request):
    """A socket of each kind, as it is made for an engine."""
    if request.param == "records":
        folder = Path(tempfile.mkdtemp(prefix="wb-"))  # as the live engine makes it
        collector = Collector(folder)
        yield folder / "records.sock"
        collector.close()
        for left in folder.iterdir():
            left.unlink()
        folder.rmdir()
        return
    driver = DriverProcess(1, "secret-key", "m")
    yield driver._folder / "rows.sock"
    driver.close()


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_socket_is_its_owners_alone(path):
    assert stat.S_ISSOCK(path.lstat().st_mode)
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert path.parent.lstat().st_uid == os.getuid()
    with socket.socket(socket.AF_UNIX) as ours:
        ours.connect(str(path))  # so the refusal below is not that nobody listens


@pytest.mark.skipif(os.getuid() != 0, reason="only root can try as somebody else")
def test_another_user_cannot_connect(path):
    ours, theirs = (
        subprocess.run([sys.executable, "-c", CONNECT, str(path), who], capture_output=True, text=True, check=False)
        for who in ("0", str(NOBODY))
    )
    assert ours.returncode == 0, ours.stderr
    assert theirs.returncode == 1
    assert theirs.stderr.splitlines()[-1].startswith("PermissionError")


@pytest.mark.parametrize("wide", [0o755, 0o710, 0o701])
def test_a_probes_folder_that_others_can_enter_is_refused(tmp_path, wide):
    tmp_path.chmod(wide)
    with pytest.raises(ConfigError, match="nobody else can open"):
        AttachedProbe(tmp_path)

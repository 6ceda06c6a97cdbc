"""Where an engine's sockets and its log go, and one line for a disk that has no room for them."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import zmq

from workbench.errors import EngineStartError

# A socket's path may have 107 bytes (unix(7)); the longest in there is vLLM's, which is called by a UUID.
_MOST_BYTES = 107 - 1 - 36


@contextmanager
def in_one_line(what: str, variable: str) -> Iterator[None]:
    """Say what a disk that refuses something at a start has refused, and how to go elsewhere.

    Args:
        what: that is written, such as "the engine's log".
        variable: of the environment, that names the folder.

    Raises:
        EngineStartError: in place of an error of the system.
    """
    try:
        yield
    except (OSError, zmq.ZMQError) as error:  # a socket that cannot be made in a folder is one of the latter
        name = getattr(error, "filename", None)
        where = f" ({name})" if name else ""
        said = f"{what}: got {error.strerror or error}{where}, expected a "
        if error.errno in (errno.EMFILE, errno.ENFILE):
            said += "file that may be opened; close other notebooks, or raise the limit (ulimit -n)"
        else:
            fix = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "make it writable"
            said += f"folder that can be written; {fix}, or set {variable} to another one"
        raise EngineStartError(said) from None


def socket_folder() -> Path:
    """Make a 0700 folder for sockets, among the temporary files.

    Raises:
        OSError: there is no place for it.
        EngineStartError: its path is too long for a socket.
    """
    folder = Path(tempfile.mkdtemp(prefix="wb-"))  # mkdtemp makes it 0700
    size = len(bytes(folder))
    if size > _MOST_BYTES:
        shutil.rmtree(folder, ignore_errors=True)
        raise EngineStartError(
            f"the engine's sockets: got a path of {size} bytes for temporary files ({folder.parent}), expected at most "
            f"{_MOST_BYTES}; set TMPDIR to a folder with a short name, such as /tmp"
        )
    return folder

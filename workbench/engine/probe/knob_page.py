"""The knobs in force, in a page of memory that the workbench writes and the scheduler reads.

A look at it is a read of memory: no system call, and no release of the interpreter's lock, which another thread of
the engine core would take for a millisecond (measured; a non-blocking receive on a socket does just that).
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
import zlib
from pathlib import Path

import msgspec

from workbench.engine.probe.wire import KnobChange

NAME = "knobs.page"
_SIZE = 4096
_HEAD = struct.Struct("<QII")  # sequence (odd while it is being written), length, CRC-32 of the message


class KnobPage:
    """One page; one process writes it, any number read it.

    Args:
        folder: the engine's 0700 folder.
        create: the writer makes the page, readers find it there.

    Raises:
        OSError: the page cannot be made, is not there or is cut short.
    """

    def __init__(self, folder: Path | str, *, create: bool = False) -> None:
        with (Path(folder) / NAME).open("w+b" if create else "r+b") as file:
            if create:  # its blocks are taken here: on a full disk a write to a page that has none ends the process
                os.posix_fallocate(file.fileno(), 0, _SIZE)
            if os.fstat(file.fileno()).st_size < _SIZE:
                raise OSError(errno.EINVAL, f"{NAME} is shorter than {_SIZE} bytes")
            self._page = mmap.mmap(file.fileno(), _SIZE)
        self._seen = 0

    def write(self, change: KnobChange) -> None:
        """Put a change in place of the one before."""
        message = msgspec.msgpack.encode(change)
        sequence = _HEAD.unpack_from(self._page)[0] + 1
        _HEAD.pack_into(self._page, 0, sequence, 0, 0)
        self._page[_HEAD.size : _HEAD.size + len(message)] = message
        _HEAD.pack_into(self._page, 0, sequence + 1, len(message), zlib.crc32(message))

    def latest(self) -> KnobChange | None:
        """The newest change, if there is one that was not returned before. Never waits and never raises."""
        sequence, length, checksum = _HEAD.unpack_from(self._page)
        if sequence == self._seen or sequence % 2 or not 0 < length <= _SIZE - _HEAD.size:
            return None
        message = self._page[_HEAD.size : _HEAD.size + length]
        if zlib.crc32(message) != checksum:  # caught in the middle of a write: the next step sees it whole
            return None
        self._seen = sequence
        try:
            return _decode(message)
        except msgspec.DecodeError:
            return None


_decode = msgspec.msgpack.Decoder(KnobChange).decode

"""Server-sent events: from packets of any size to the data of whole events.

Rules of the WHATWG HTML standard, section "Interpreting an event stream": lines end with LF, CR or CRLF, a blank line
ends an event, the ``data`` lines of an event are joined with LF, comments and other fields are skipped.
"""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"


class EventSplitter:
    """Cuts one stream of bytes into events."""

    def __init__(self) -> None:
        self._line = b""  # a line that is not whole yet
        self._data: list[bytes] = []  # data lines of an event that is not whole yet
        self._data_bytes = 0
        self._after_cr = False
        self._begun = False

    @property
    def pending_bytes(self) -> int:
        """Size of the event that is not whole yet, in bytes."""
        return len(self._line) + self._data_bytes

    def feed(self, packet: bytes) -> list[bytes]:
        """Take a packet; return the data of the events that it completes."""
        if self._begun and not self._data and not self._after_cr and b"\r" not in packet:
            whole, blank, packet = (self._line + packet).rpartition(b"\n\n")
            self._line = b""
            return (self._whole(whole) if blank else []) + self._lines(packet)
        if self._after_cr and packet.startswith(b"\n"):  # a CRLF that two packets share
            packet = packet[1:]
            self._after_cr = False
        return self._lines(packet)

    def close(self) -> list[bytes]:
        """The stream has ended as it should: return the data of an event that lacks its blank line."""
        return self.feed(b"\n\n")

    def _lines(self, packet: bytes) -> list[bytes]:
        if not packet:
            return []
        self._after_cr = packet.endswith(b"\r")
        lines = (self._line + packet).splitlines()  # of bytes: at LF, CR and CRLF, and nowhere else
        self._line = b"" if packet.endswith((b"\n", b"\r")) else lines.pop()
        return [data for line in lines if (data := self._take(line)) is not None]

    def _whole(self, events: bytes) -> list[bytes]:
        """As servers send them: whole events with LF alone. Most have one line of data, which is taken at once."""
        found: list[bytes] = []
        for block in events.split(b"\n\n"):
            if block.startswith(b"data: ") and b"\n" not in block:
                found.append(block[6:])
            else:
                found += [data for line in (*block.split(b"\n"), b"") if (data := self._take(line)) is not None]
        return found

    def _take(self, line: bytes) -> bytes | None:
        """Take a line; a blank one returns the data of the event that it ends, if it has any."""
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BOM)
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
                self._data_bytes += len(value) + 1
            return None
        if not self._data:
            return None
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        self._data, self._data_bytes = [], 0
        return data

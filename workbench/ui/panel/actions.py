"""What buttons set off runs in threads, so that the kernel stays free; whatever goes wrong is shown."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from workbench.i18n import speaking, spoken

Told = Callable[[BaseException], None]


class Actions:
    """Runs one thing of a kind at a time.

    Args:
        on_error: told of every exception.
        on_change: called when an action begins or ends.
    """

    def __init__(self, on_error: Told, on_change: Callable[[], None]) -> None:
        self._on_error, self._on_change = on_error, on_change
        self._lang = spoken()
        self._lock = threading.Lock()
        self._going: dict[str, threading.Thread] = {}
        self._newest: dict[str, Callable[[], object]] = {}

    def going(self, name: str) -> bool:
        """Whether an action of that name goes on."""
        return name in self._going

    def run(self, name: str, do: Callable[[], object]) -> bool:
        """Do it in a thread, unless one of that name goes on; returns whether it was begun."""
        with self._lock:
            if name in self._going:
                return False
            thread = threading.Thread(target=self._work, args=[name, do], name=f"panel {name}", daemon=True)
            self._going[name] = thread
        thread.start()
        return True

    def newest(self, name: str, do: Callable[[], object]) -> None:
        """Do it in a thread; while one of that name goes on only the newest waits. For what a slider sends."""
        with self._lock:
            self._newest[name] = do
        self.run(name, lambda: self._drain(name))

    def wait(self, timeout_s: float = 10.0) -> None:
        """Wait for what goes on; for the end of the panel and for tests."""
        for thread in list(self._going.values()):
            if thread is not threading.current_thread():
                thread.join(timeout_s)

    def guarded(self, do: Callable[..., object]) -> Callable[..., None]:
        """The same callable for a widget's callback, where an exception would be shown to nobody."""

        def call(*args: Any, **kwargs: Any) -> None:
            with speaking(self._lang):
                try:
                    do(*args, **kwargs)
                except Exception as error:  # noqa: BLE001
                    self._on_error(error)

        return call

    def _work(self, name: str, do: Callable[[], object]) -> None:
        told = self.guarded(self._on_change)
        told()
        try:
            self.guarded(do)()
        finally:
            with self._lock:
                del self._going[name]
                late = self._newest.get(name)
            told()
            if late is not None:  # it came after the last look
                self.newest(name, late)

    def _drain(self, name: str) -> None:
        while True:
            with self._lock:
                do = self._newest.pop(name, None)
            if do is None:
                return
            do()


class Listening:
    """While open, exceptions that end a thread or an asyncio task are shown, beside what Python does with them.

    Args:
        on_error: told of every exception.
    """

    def __init__(self, on_error: Told) -> None:
        self._on_error = on_error
        self._loop: Any = None

    def open(self) -> None:
        """Begin to listen; in a kernel also to its event loop."""
        self._thread_hook, threading.excepthook = threading.excepthook, self._of_thread
        asyncio = sys.modules.get("asyncio")
        if asyncio is not None:
            with suppress(RuntimeError):  # no loop runs here
                self._loop = asyncio.get_running_loop()
                self._loop_handler = self._loop.get_exception_handler()
                self._loop.set_exception_handler(self._of_task)

    def close(self) -> None:
        """Leave everything as it was found."""
        if threading.excepthook == self._of_thread:
            threading.excepthook = self._thread_hook
        if self._loop is not None and self._loop.get_exception_handler() == self._of_task:
            self._loop.set_exception_handler(self._loop_handler)
        self._loop = None

    def _of_thread(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            self._on_error(args.exc_value)
        self._thread_hook(args)

    def _of_task(self, loop: Any, context: dict[str, Any]) -> None:
        self._on_error(context.get("exception") or RuntimeError(context["message"]))
        (self._loop_handler or type(loop).default_exception_handler)(loop, context)

"""A fake engine for tests of process handling: it holds processes, signals, output and memory, and serves nothing."""

from __future__ import annotations

import argparse
import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="leader")
    parser.add_argument("--ignore-term", action="store_true")
    parser.add_argument("--slow-term", action="store_true", help="takes a moment to obey SIGTERM, and says so")
    parser.add_argument("--child", action="append", default=[], help="arguments of a child, as one string")
    parser.add_argument("--detached", action="store_true", help="children in sessions of their own")
    parser.add_argument("--leave", action="store_true", help="exit at once after starting the children")
    parser.add_argument("--segment", type=Path, help="shared memory to make and map")
    parser.add_argument("--lines", type=int, default=0)
    parser.add_argument("--flood", action="store_true")
    parser.add_argument("--exit", type=int)
    asked = parser.parse_args()

    def on_term(signum: int, frame: object) -> None:
        say(asked.name, "TERM")
        if asked.slow_term:
            time.sleep(0.3)
            say(asked.name, "done")
        if not asked.ignore_term:
            os._exit(0)

    if asked.ignore_term or asked.slow_term:
        signal.signal(signal.SIGTERM, on_term)
    for child in asked.child:
        subprocess.Popen([sys.executable, __file__, *child.split()], start_new_session=asked.detached)
    if asked.segment:
        with asked.segment.open("w+b") as file:
            file.truncate(4096)
            memory = mmap.mmap(file.fileno(), 4096)
            memory[:4] = b"fake"
    for number in range(asked.lines):
        sys.stdout.write(f"line {number} {'x' * 1000}\n")
    sys.stdout.flush()
    say(asked.name, "ready", os.getpid())
    if asked.exit is not None:
        sys.stderr.write("last words\n")
        sys.exit(asked.exit)
    if asked.leave:
        return
    while asked.flood:
        os.write(1, b"flood " * 10_000)
    while True:
        time.sleep(60)


main()

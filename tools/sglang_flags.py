"""Writes the flags of a real SGLang release into tests/data, which the tests of our SGLang command are held against.

SGLang does not go into .venv: its triton would change vLLM there. From the root of a checkout, with a network:

    python -m pip install --target /tmp/sglang --no-deps sglang==0.5.23 orjson triton
    PYTHONPATH=/tmp/sglang .venv/bin/python tools/sglang_flags.py tests/data/sglang-0.5.23-flags.json

With ``--check`` nothing is written, and the exit code tells whether the file is still right.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path


def flags() -> dict[str, object]:
    """Each flag: "none" if it takes no value, else its choices or the name of its type."""
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    found: dict[str, object] = {}
    for action in parser._actions:
        kind = (
            "none"
            if action.nargs == 0
            else sorted(map(str, action.choices or ())) or getattr(action.type, "__name__", "str")
        )
        found |= dict.fromkeys((name for name in action.option_strings if name.startswith("--")), kind)
    return dict(sorted(found.items()))


def main() -> int:
    """Write or check the file."""
    *_, path = sys.argv
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(kind)}" for name, kind in flags().items())
    text = "{\n" + lines + "\n}\n"
    if "--check" in sys.argv:
        return int(Path(path).read_text() != text)
    Path(path).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Plain data from a YAML file, with every fault named by line and column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from workbench.errors import ScenarioError
from workbench.i18n import phrase
from workbench.workload.paths import is_file

_MOST_BYTES = 256 << 10


def load_yaml(path: Path) -> Any:
    """Read a small YAML file.

    Stricter than YAML: a key that stands twice is refused, since the later one would silently win, and so are aliases,
    since a few lines of them unfold into gigabytes.

    Raises:
        ScenarioError: the file is missing, too large, not UTF-8 or not YAML; with line and column.
    """
    text = _text(path)
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        if tree is not None:
            _check(tree)
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        raise _fault(path, text, mark.line, mark.column, bad.problem or bad.context or "") from None
    except yaml.reader.ReaderError as bad:
        before = text[: bad.position]
        column = bad.position - (before.rfind("\n") + 1)
        raise _fault(
            path, text, before.count("\n"), column, phrase("remove the character {code:#x}", code=bad.character)
        ) from None
    except RecursionError:
        raise ScenarioError(
            str(path), phrase("lists in lists in lists …"), phrase("a scenario"), phrase("nest it less deeply")
        ) from None
    except (ValueError, OverflowError) as bad:  # an impossible date, a number with thousands of digits
        fix = phrase("put it in quotes ({why})", why=str(bad))
        raise ScenarioError(str(path), phrase("a value YAML cannot read"), phrase("valid YAML"), fix) from None


def _text(path: Path) -> str:
    if not is_file(path):
        raise ScenarioError(phrase("scenario file"), path, phrase("a file that exists"), phrase("check the path"))
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as bad:
        raise ScenarioError("scenario file", path, "a file that can be read", str(bad.strerror or bad)) from None
    if len(data) > _MOST_BYTES:
        size = phrase("more than {kib} KiB", kib=_MOST_BYTES >> 10)
        most = phrase("a scenario of at most {kib} KiB", kib=_MOST_BYTES >> 10)
        raise ScenarioError(str(path), size, most, phrase("use a smaller file"))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as bad:
        line = data.count(b"\n", 0, bad.start) + 1
        place = phrase("{path} line {line}", path=path, line=line)
        wrong, fix = phrase("bytes that are not UTF-8"), phrase("save it as UTF-8")
        raise ScenarioError(place, wrong, phrase("UTF-8"), fix) from None


def _check(tree: yaml.Node) -> None:
    """Walk the tree: no node twice (an alias), no key twice."""
    seen: set[int] = set()
    todo = [tree]
    while todo:
        node = todo.pop()
        here = node.start_mark
        if id(node) in seen:
            raise yaml.MarkedYAMLError(problem=phrase("write it out, aliases are not used here"), problem_mark=here)
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            keys: set[tuple[str, str]] = set()
            for key, value in node.value:
                name = (key.tag, str(key.value))
                if name in keys:
                    raise yaml.MarkedYAMLError(
                        problem=phrase("remove one {name}, it stands here twice", name=key.value),
                        problem_mark=key.start_mark,
                    )
                keys.add(name)
                todo += [key, value]
        elif isinstance(node, yaml.SequenceNode):
            todo += node.value


def _fault(path: Path, text: str, line: int, column: int, problem: str) -> ScenarioError:
    lines = text.splitlines()
    shown = lines[line].strip() if line < len(lines) else phrase("the end of the file")
    place = phrase("{path} line {line} column {column}", path=path, line=line + 1, column=column + 1)
    return ScenarioError(place, shown, phrase("valid YAML"), problem)

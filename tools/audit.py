"""Hold the pins against requirements/advisories.toml, with no network: ``make audit``. The policy is in SECURITY.md.

It fails when a pin is affected by an advisory of the list without a waiver that still holds, when a waiver or an entry
cannot be right, and when a waiver stands for nothing. That the list is old is a warning alone.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "requirements" / "advisories.toml"
PINS = tuple(ROOT / "requirements" / name for name in ("cpu.txt", "cuda.txt", "torch-cpu.txt"))

_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;#]+)")
_ADVISORY = {
    "id": str, "cve": str, "packages": list, "affected": list, "fixed": str, "about": str, "touches": str,
    "reviewed": date,
}  # fmt: skip
_WAIVER = {"id": str, "package": str, "reason": str, "expires": date}


@dataclass(frozen=True)
class Found:
    """What an audit found.

    Attributes:
        problems: what must be mended, a line each.
        warnings: what should be looked at.
        borne: affected pins that a waiver covers.
        checked: pins, and advisories that they were held against.
    """

    problems: list[str]
    warnings: list[str]
    borne: list[str]
    checked: tuple[int, int]


def audit(listed: dict[str, Any], pins: dict[str, list[tuple[str, str]]], today: date) -> Found:
    """Hold pins against a list.

    Args:
        listed: what advisories.toml holds.
        pins: by canonical name of the package, each version with the file that pins it.
        today: for the age of the list and of waivers.
    """
    problems, warnings, borne = [], [], []
    advisories, waivers = listed.get("advisory", []), listed.get("waiver", [])
    problems += [fault for one in advisories for fault in _faults(one, _ADVISORY, "advisory")]
    problems += [fault for one in waivers for fault in _faults(one, _WAIVER, "waiver")]
    if problems:
        return Found(problems, warnings, borne, (len(pins), len(advisories)))
    held = {(one["id"], canonicalize_name(one["package"])): one for one in waivers}
    used = set()
    for one in advisories:
        for name in map(canonicalize_name, one["packages"]):
            for version, file in pins.get(name, ()):
                if not any(SpecifierSet(some).contains(Version(version), prereleases=True) for some in one["affected"]):
                    continue
                said = f"{file}: {name}=={version} is affected by {one['id']} ({one['cve']}: {one['about']})"
                waiver = held.get((one["id"], name))
                if waiver is None:
                    fix = f"pin {one['fixed']} or later" if one["fixed"] else "no version has the fix"
                    problems.append(f"{said}; {fix}, or add a [[waiver]] with a reason and a day on which it ends")
                    continue
                used.add((one["id"], name))
                if waiver["expires"] < today:
                    problems.append(f"{said}; its waiver ended on {waiver['expires']}, look at it again")
                else:
                    borne.append(f"{said}; borne until {waiver['expires']}: {waiver['reason']}")
    for number, name in held.keys() - used:
        problems.append(f"waiver {number} for {name}: no pin is affected any more; remove it")
    age, most = (today - listed["reviewed"]).days, int(listed["days"])
    if age > most:
        warnings.append(f"advisories.toml was last reviewed {age} days ago, expected {most} at most; see SECURITY.md")
    return Found(problems, warnings, sorted(set(borne)), (len(pins), len(advisories)))


def read_pins(files: tuple[Path, ...] = PINS) -> dict[str, list[tuple[str, str]]]:
    """The pins of requirement files, by canonical name of the package."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in files:
        for line in path.read_text(encoding="utf-8").splitlines():
            if pin := _PIN.match(line.strip()):
                found.setdefault(canonicalize_name(pin[1]), []).append((pin[2], path.name))
    return found


def _faults(entry: dict[str, Any], expected: dict[str, type], kind: str) -> Iterator[str]:
    """What is wrong with an entry of the list."""
    name = f"{kind} {entry.get('id', 'without an id')}"
    for field, sort in expected.items():
        if type(entry.get(field)) is not sort or (entry[field] in ("", []) and field not in ("fixed", "cve")):
            yield f"{name}: {field} is {entry.get(field)!r}, expected a {sort.__name__}"
    for field in entry.keys() - expected.keys():
        yield f"{name}: {field} is no field of one"
    for one in entry.get("affected", ()) if isinstance(entry.get("affected"), list) else ():
        try:
            SpecifierSet(one)
        except InvalidSpecifier:
            yield f"{name}: {one!r} is no set of versions"


def main() -> int:
    """Print what was found; exit code 1 where something must be mended."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--list", type=Path, default=LIST, help="another list")
    options.add_argument("--pins", type=Path, action="append", help="other requirement files")
    given = options.parse_args()
    try:
        listed = tomllib.loads(given.list.read_text(encoding="utf-8"))
        pins = read_pins(tuple(given.pins) if given.pins else PINS)
    except (OSError, ValueError) as error:
        print(f"audit: {error}", file=sys.stderr)  # noqa: T201
        return 1
    found = audit(listed, pins, datetime.now(UTC).date())
    for line in (*found.problems, *(f"warning: {text}" for text in found.warnings)):
        print(f"audit: {line}", file=sys.stderr)  # noqa: T201
    for line in found.borne:
        print(f"audit: {line}")  # noqa: T201
    print(f"audit: {found.checked[0]} pins against {found.checked[1]} advisories: {len(found.problems)} to mend")  # noqa: T201
    return 1 if found.problems else 0


if __name__ == "__main__":
    sys.exit(main())

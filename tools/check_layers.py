#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an include that goes up or sideways in the tiers of docs/architecture.md.

A folder of lockstep/ may include itself and folders of lower tiers. The same holds for the libraries its
CMakeLists.txt links. Folders below the libtorch line may not include libtorch.

usage: check_layers.py [ROOT]     ROOT holds lockstep/; default: the repository of this script
"""

import re
import sys
from pathlib import Path

TIERS = {
    "base": 0,
    "mesh": 1,
    "metrics": 1,
    "spec": 2,
    "schedule": 2,
    "transport": 2,
    "kernels": 2,
    "rendezvous": 3,
    "sim": 3,
    "comm": 4,
    "plan": 4,
    "nn": 5,
    "optim": 5,
    "data": 5,
    "model": 6,
    "checkpoint": 6,
    "ps": 6,
    "parallel": 7,
    "elastic": 7,
    "train": 8,
    "dashboard": 8,
    "cli": 9,
}
LAST_TIER_WITHOUT_TORCH = 4
# Libraries that are not called as their folder.
FOLDER_OF_LIBRARY = {"compute": "kernels", "store": "checkpoint"}

SOURCES = {".h", ".cpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
LINKED = re.compile(r"\bLockstep::(\w+)")
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")


def why_not(folder, other):
    """The rule that a use of `other` by `folder` breaks, or None."""
    if other not in TIERS:
        return f"'{other}' has no row in the tiers of tools/check_layers.py"
    if other == folder or TIERS[other] < TIERS[folder]:
        return None
    direction = "sideways" if TIERS[other] == TIERS[folder] else "up"
    return (
        f"{folder} (tier {TIERS[folder]}) goes {direction} to {other} (tier {TIERS[other]}); "
        "a folder uses itself and lower tiers only"
    )


def why_not_include(folder, quote, path):
    if TORCH.match(path):
        if TIERS[folder] <= LAST_TIER_WITHOUT_TORCH:
            return f"{folder} (tier {TIERS[folder]}) is below the libtorch line and includes <{path}>"
        return None
    if path.startswith("lockstep/"):
        return why_not(folder, path.split("/")[1])
    if quote == '"':
        return f'"{path}" must be written from the root, as "lockstep/..."'
    return None


def violations_of(root, file, folder):
    """Lines 'file:line: rule' for one source or CMakeLists.txt."""
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if file.suffix in SOURCES:
            match = INCLUDE.match(line)
            reasons = [why_not_include(folder, *match.groups())] if match else []
        else:
            reasons = [why_not(folder, FOLDER_OF_LIBRARY.get(name, name)) for name in LINKED.findall(line.split("#")[0])]
        found += [f"{file.relative_to(root)}:{number}: {reason}" for reason in reasons if reason]
    return found


def check(root):
    """All violations under root/lockstep, and the number of files read."""
    found, files = [], 0
    for folder in sorted(path for path in (root / "lockstep").iterdir() if path.is_dir()):
        if folder.name not in TIERS:
            found.append(f"lockstep/{folder.name}: has no row in the tiers of tools/check_layers.py")
            continue
        for file in sorted(folder.rglob("*")):
            if file.suffix in SOURCES or file.name == "CMakeLists.txt":
                found += violations_of(root, file, folder.name)
                files += 1
    return found, files


def main(arguments):
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    if not (root / "lockstep").is_dir():
        print(f"check_layers: {root} has no folder lockstep/", file=sys.stderr)
        return 2
    found, files = check(root)
    for line in found:
        print(line)
    if files == 0 and not found:
        print(f"check_layers: no source under {root}/lockstep", file=sys.stderr)
        return 2
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

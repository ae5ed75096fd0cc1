#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an include that goes up or sideways in the tiers of docs/architecture.md.

A folder of lockstep/ may include itself and folders of lower tiers. The same holds for the libraries its
CMakeLists.txt links. Only the folders above the libtorch line include libtorch; those below it do
not include them either. Nothing but lockstep/base/unix_time.h asks the wall clock, which jumps.

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
# The folders above the libtorch line.
TORCH_FOLDERS = ("nn", "model", "parallel", "train", "cli/trainer")
# Libraries that are not called as their folder.
FOLDER_OF_LIBRARY = {"compute": "kernels", "store": "checkpoint"}

SOURCES = {".h", ".cpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
LINKED = re.compile(r"\bLockstep::(\w+)")
# What tells the time of day. Deadlines and protocols have the steady clock (base/deadline.h).
WALL_CLOCK = re.compile(r"\b(system_clock|CLOCK_REALTIME|gettimeofday|time\((nullptr|NULL|0)\))")
WALL_CLOCK_FILE = "base/unix_time.h"
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


def why_not_include(file, quote, path):
    """The rule that an include of `path` by `file`, a path below lockstep/, breaks, or None."""
    folder, inside = file.parts[0], path.removeprefix("lockstep/")
    is_ours = inside != path
    if is_ours and (reason := why_not(folder, inside.split("/")[0])):
        return reason
    # By whole folders: cli/trainer has headers that say what the program does without libtorch as well.
    brings_torch = inside.split("/")[0] in TORCH_FOLDERS if is_ours else TORCH.match(path)
    if brings_torch and not any(file.is_relative_to(above) for above in TORCH_FOLDERS):
        return f"{file.parent} is below the libtorch line and includes <{path}>; above it are {', '.join(TORCH_FOLDERS)}"
    if quote == '"' and not is_ours:
        return f'"{path}" must be written from the root, as "lockstep/..."'
    return None


def violations_of(root, file):
    """Lines 'file:line: rule' for one source or CMakeLists.txt."""
    found = []
    inside = file.relative_to(root / "lockstep")
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if file.suffix in SOURCES:
            match = INCLUDE.match(line)
            reasons = [why_not_include(inside, *match.groups())] if match else []
            if WALL_CLOCK.search(line) and str(inside) != WALL_CLOCK_FILE:
                reasons.append(f"asks the wall clock; what is recorded has unix_time() of {WALL_CLOCK_FILE}, all else Clock")
        else:
            reasons = [why_not(inside.parts[0], FOLDER_OF_LIBRARY.get(name, name)) for name in LINKED.findall(line.split("#")[0])]
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
                found += violations_of(root, file)
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

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when the table of failpoints is not what the sources have, or when no test sweeps one.

Every name of lockstep/base/failpoint_table.h must be used by a LOCKSTEP_FAILPOINT in the source that its row
names, and must begin with the area of a call swept_failpoints("AREA.") in tests/. A name that is used but not in
the table does not compile.

usage: check_failpoints.py [ROOT]     ROOT holds lockstep/ and tests/; default: the repository of this script
"""

import re
import sys
from pathlib import Path

TABLE = "lockstep/base/failpoint_table.h"
ROW = re.compile(r'\{\s*"([\w.]+)",\s*"([\w./]+)",\s*"')
USE = re.compile(r'\bLOCKSTEP_FAILPOINT(?:_VALUES)?\("([^"]+)"[,)]')
SWEEP = re.compile(r'\bswept_failpoints\("([^"]+)"\)')
COMMENT = re.compile(r"//[^\n]*")
SOURCES = {".h", ".cpp"}


def found_in(root, folder, pattern):
    """{what the pattern captures: the sources beneath the folder that have it}."""
    found = {}
    for file in sorted((root / folder).rglob("*")):
        if file.suffix not in SOURCES:
            continue
        for text in pattern.findall(COMMENT.sub("", file.read_text(encoding="utf-8"))):
            found.setdefault(text, set()).add(str(file.relative_to(root / folder)))
    return found


def check(rows, uses, areas):
    """Sentences about what is wrong."""
    wrong = []
    for name, where in rows:
        sources = uses.get(name, set())
        if not sources:
            wrong.append(f"{TABLE}: no source uses '{name}'")
        elif sources != {where}:
            wrong.append(f"{TABLE}: '{name}' is in {', '.join(sorted(sources))}, not in {where}")
        if not any(name.startswith(area) for area in areas):
            wrong.append(f"{TABLE}: no test sweeps '{name}'; one that does calls swept_failpoints")
    return wrong


def main(arguments):
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    if not (root / TABLE).is_file():
        print(f"check_failpoints: {root} has no {TABLE}", file=sys.stderr)
        return 2
    rows = ROW.findall((root / TABLE).read_text(encoding="utf-8"))
    if not rows:
        print(f"check_failpoints: {TABLE} has no row", file=sys.stderr)
        return 2
    wrong = check(rows, found_in(root, "lockstep", USE), found_in(root, "tests", SWEEP))
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
"""docs/faults.md promises nothing without a test: every row names one or more, and all of them exist."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASE = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)")
PROGRAM = re.compile(r"^\s*lockstep_(?:\w+_)?test\((\w+)", re.MULTILINE)


def rows():
    """(line number, cell) of the last column of each table that has a column 'shown by'."""
    found, is_inside = [], False
    for number, line in enumerate((ROOT / "docs/faults.md").read_text(encoding="utf-8").splitlines(), start=1):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            is_inside = False
        elif cells[-1] == "shown by":
            is_inside = True
        elif is_inside and not cells[-1].startswith("---"):
            found.append((number, cells[-1]))
    return found


def known_tests():
    """Names of test programs, 'Suite.Case' and 'Suite.*'."""
    names = set()
    for file in (ROOT / "tests").rglob("*_test.cpp"):
        for suite, case in CASE.findall(file.read_text(encoding="utf-8")):
            names |= {f"{suite}.{case}", f"{suite}.*"}
    for file in (ROOT / "tests").rglob("CMakeLists.txt"):
        names |= set(PROGRAM.findall(file.read_text(encoding="utf-8")))
    return names


class FaultDocument(unittest.TestCase):
    def test_every_promise_names_tests_that_exist(self):
        known = known_tests()
        found = rows()
        self.assertGreater(len(found), 10)
        for number, cell in found:
            named = re.findall(r"`([^`]+)`", cell)
            self.assertTrue(named, f"docs/faults.md:{number} names no test")
            for name in named:
                self.assertTrue(name in known, f"docs/faults.md:{number}: there is no test {name}")


if __name__ == "__main__":
    unittest.main()

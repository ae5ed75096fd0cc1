# SPDX-License-Identifier: Apache-2.0
"""tools/check_failpoints.py accepts a good tree and names what is wrong with bad ones."""

import unittest

from trees import run_on

GOOD = {
    "lockstep/base/failpoint_table.h": 'kPoints = {\n    {"a.begun", "comm/a.cpp",\n     "it has begun"},\n'
    '    {"a.b.ended", "comm/a.cpp", "it has ended", Medium::disk},\n};\n',
    "lockstep/comm/a.cpp": 'LOCKSTEP_FAILPOINT("a.begun");\n  if (x) LOCKSTEP_FAILPOINT("a.b.ended");\n',
    "tests/fault/a_test.cpp": 'for (auto name : swept_failpoints("a.")) kill_at(name);\n',
}


class CheckFailpoints(unittest.TestCase):
    def refused(self, changes, *phrases):
        code, output = run_on("check_failpoints.py", GOOD | changes)
        self.assertEqual(code, 1, output)
        for phrase in phrases:
            self.assertIn(phrase, output)

    def test_a_good_tree_is_accepted(self):
        self.assertEqual(run_on("check_failpoints.py", GOOD), (0, ""))

    def test_a_name_that_no_source_uses_is_refused(self):
        self.refused({"lockstep/comm/a.cpp": 'LOCKSTEP_FAILPOINT("a.begun");\n'}, "no source uses 'a.b.ended'")

    def test_a_use_in_a_comment_is_none(self):
        self.refused(
            {"lockstep/comm/a.cpp": '// LOCKSTEP_FAILPOINT("a.begun");\nLOCKSTEP_FAILPOINT("a.b.ended");\n'},
            "no source uses 'a.begun'",
        )

    def test_another_source_is_refused(self):
        self.refused(
            {"lockstep/comm/b.cpp": 'LOCKSTEP_FAILPOINT("a.begun");\n'},
            "'a.begun' is in comm/a.cpp, comm/b.cpp, not in comm/a.cpp",
        )

    def test_a_name_that_no_test_sweeps_is_refused(self):
        self.refused({"tests/fault/a_test.cpp": 'swept_failpoints("a.b.");\n'}, "no test sweeps 'a.begun'")

    def test_a_tree_without_a_table_is_an_error(self):
        self.assertEqual(run_on("check_failpoints.py", {"readme": ""})[0], 2)
        self.assertEqual(run_on("check_failpoints.py", GOOD | {"lockstep/base/failpoint_table.h": ""})[0], 2)


if __name__ == "__main__":
    unittest.main()

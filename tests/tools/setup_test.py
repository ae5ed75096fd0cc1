# SPDX-License-Identifier: Apache-2.0
"""What is missing on a system is found. Tests that need root run with sudo where the caller is not root, and what
they leave becomes the caller's."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from trees import TOOLS

# Programs that write down how they were called instead of what they do. The caller is user 1000 of group 1001.
COMMANDS = {
    "id": '[ "$1" = -u ] && echo "${CALLER:-1000}" || echo 1001',
    "sudo": '[ "$1" = -E ] || exit 99\nshift\nexport AS_ROOT=1\nexec "$@"',
    "ctest": 'echo "ctest root=${AS_ROOT:-0} ccache_off=${CCACHE_DISABLE:-0} $*"\nexit "${VERDICT:-0}"',
    "chown": 'echo "chown root=${AS_ROOT:-0} $*"',
}


def ctest_as_root(*arguments, **environment):
    """Exit code and lines of output of the function of tools/setup.sh."""
    with tempfile.TemporaryDirectory() as folder:
        for name, script in COMMANDS.items():
            command = Path(folder, name)
            command.write_text(f"#!/bin/sh\n{script}\n")
            command.chmod(0o755)
        done = subprocess.run(
            ["bash", "-c", f'. "{TOOLS}/setup.sh" && ctest_as_root "$@"', "setup", *arguments],
            env={"PATH": f"{folder}:{os.environ['PATH']}", **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    return done.returncode, done.stdout.splitlines()


def probe(what):
    """Exit code and errors of the function of tools/setup.sh."""
    done = subprocess.run(
        ["bash", "-c", f'. "{TOOLS}/setup.sh" && probe "$1"', "setup", what],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


def prepare_system(purpose, absent):
    """Exit code and errors of the function of tools/setup.sh on a system that is not Debian 12 and has all but one thing."""
    system = f'is_debian_12() {{ false; }}; probe() {{ [ "$1" != "{absent}" ]; }}'
    done = subprocess.run(
        ["bash", "-c", f'. tools/setup.sh && {system}; prepare_system "$1"', "setup", purpose],
        cwd=Path(TOOLS).parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


class PrepareSystem(unittest.TestCase):
    def test_who_only_trains_needs_nothing_of_the_tests(self):
        for absent in "python:torch", "library:libopenblas.so.0", "command:strace":
            self.assertEqual(prepare_system("build", absent), (0, ""), absent)

    def test_tests_need_everything(self):
        for absent in "python:torch", "header:torch/script.h":
            code, errors = prepare_system("tests", absent)
            self.assertEqual(code, 2, absent)
            self.assertEqual(errors.count("Debian's package is called"), 1, absent)

    def test_what_configuring_asks_for_is_needed_by_the_build(self):
        for absent in "header:torch/script.h", "header:gtest/gtest.h", "command:python3":
            self.assertEqual(prepare_system("build", absent)[0], 2, absent)


class Probe(unittest.TestCase):
    def test_what_is_there_is_found(self):
        for what in "command:sh", "header:vector", "library:libc.so.6", "python:ctypes":
            self.assertEqual(probe(what), (0, ""), what)

    def test_what_is_not_there_is_missed(self):
        for what in "command:nowhere", "header:nowhere.h", "library:libnowhere.so.1", "python:nowhere":
            code, errors = probe(what)
            self.assertNotEqual(code, 0, what)
            self.assertEqual(errors, "", what)

    def test_every_package_has_a_probe_of_a_known_kind(self):
        rows = [row.split() for row in Path(TOOLS, "packages.txt").read_text().splitlines() if row[:1] not in ("", "#")]
        for package, what, purpose, *_ in rows:
            self.assertRegex(what, "^(command|header|library|python):.", package)
            self.assertIn(purpose, ("build", "tests"), package)
        self.assertIn("no known kind", probe("file:nowhere")[1])


class CtestAsRoot(unittest.TestCase):
    def test_sudo_runs_the_tests_and_gives_the_build_back(self):
        self.assertEqual(
            ctest_as_root("-R", "two words"),
            (0, ["ctest root=1 ccache_off=1 -R two words", "chown root=1 -R 1000:1001 build/"]),
        )

    def test_it_is_given_back_after_a_failure_as_well(self):
        code, lines = ctest_as_root(VERDICT="8")
        self.assertEqual((code, lines[-1]), (8, "chown root=1 -R 1000:1001 build/"))

    def test_root_needs_no_sudo(self):
        self.assertEqual(ctest_as_root("-N", CALLER="0"), (0, ["ctest root=0 ccache_off=0 -N"]))


if __name__ == "__main__":
    unittest.main()

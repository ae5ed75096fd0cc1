#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the default job by the commands that README.md shows, and compares what it comes to with what README.md says.

usage: readme_default_job.py LOCKSTEP SOURCE_FOLDER
"""
import os
import re
import subprocess
import sys
import tempfile

# Other processors have other last bits, from which a run of 900 steps drifts apart by a few thousandths.
TOLERANCE = 0.02


def only(pattern, text, where):
    found = re.findall(pattern, text, re.MULTILINE)
    if len(found) != 1:
        sys.exit(f"{where} has {len(found)} times: {pattern}")
    return found[0]


def run(command, lockstep, folder):
    print("$", command, flush=True)
    words = command.split()
    if words[0] == "lockstep":
        words[0] = lockstep
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    print(result.stdout[-2000:], result.stderr, flush=True)
    if result.returncode != 0:
        sys.exit(f"{command} ended with {result.returncode}")
    return result.stdout


def require_near(name, measured, said):
    print(f"{name}: {measured}, README.md says {said}")
    if abs(float(measured) - float(said)) > TOLERANCE:
        sys.exit(f"{name} is not what README.md says")


def main():
    lockstep, source = sys.argv[1:]
    with open(os.path.join(source, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "runs/data"))
        os.symlink(os.path.join(source, "examples"), os.path.join(folder, "examples"))
        with open(os.path.join(folder, "runs/data/kjv.txt"), "w", encoding="utf-8") as text:
            text.write(run("bible -f gen1:1-rev22:21", lockstep, folder))

        prepared = run(only(r"run: (lockstep prepare .*)$", readme, "README.md"), lockstep, folder)
        for line in re.findall(r"^wrote runs/data/.*$", readme, re.MULTILINE):
            if line not in prepared:
                sys.exit(f"prepare did not print: {line}")

        trained = run(only(r"run: (lockstep train .*)$", readme, "README.md"), lockstep, folder)
        require_near("validation loss after 900 steps",
                     only(r"validation loss ([0-9.]+) after step 900$", trained, "the output"),
                     only(r"to \*\*([0-9.]+)\*\* after 900", readme, "README.md"))

        command = only(r"^\$ (lockstep eval .*)$", readme, "README.md")
        loss = r"^loss ([0-9.]+), perplexity"
        require_near("loss", only(loss, run(command, lockstep, folder), "the output"), only(loss, readme, "README.md"))


main()

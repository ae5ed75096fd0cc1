#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the default job by the commands that README.md shows, and compares what it comes to with what README.md says,
and what its model writes with README.md and docs/tutorial.md where the run has the tutorial's bits.

usage: readme_default_job.py LOCKSTEP SOURCE_FOLDER
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

# Other processors have other last bits, from which a run of 900 steps drifts apart by a few thousandths.
TOLERANCE = 0.02
# The process before there is a model is a part of what a worker needs, and differs by a few megabytes.
MEMORY_TOLERANCE = 30


def only(pattern, text, where):
    found = re.findall(pattern, text, re.MULTILINE)
    if len(found) != 1:
        sys.exit(f"{where} has {len(found)} times: {pattern}")
    return found[0]


def run(command, lockstep, folder):
    print("$", command, flush=True)
    words = shlex.split(command)
    if words[0] == "lockstep":
        words[0] = lockstep
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    print(result.stdout[-2000:], result.stderr, flush=True)
    if result.returncode != 0:
        sys.exit(f"{command} ended with {result.returncode}")
    return result.stdout


def require_near(name, measured, said, tolerance=TOLERANCE):
    print(f"{name}: {measured}, README.md says {said}")
    if abs(float(measured) - float(said)) > tolerance:
        sys.exit(f"{name} is not what README.md says")


def contents(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def require_texts(page, name, lockstep, folder):
    for command, said in re.findall(r"^\$ (lockstep generate .*)\n((?:[^$`].*\n)+)", page, re.MULTILINE):
        said = said.removesuffix("...\n").rstrip("\n")
        if not run(command, lockstep, folder).startswith(said):
            sys.exit(f"the model does not write what {name} says after: {command}")


def main():
    lockstep, source = sys.argv[1:]
    readme, tutorial = contents(source, "README.md"), contents(source, "docs/tutorial.md")
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

        memory = r"about ([0-9]+) MiB of memory for a worker; files in runs/kjv$"
        require_near("MiB of memory for a worker", only(memory, trained, "the output"), only(memory, readme, "README.md"),
                     MEMORY_TOLERANCE)

        command = only(r"^\$ (lockstep eval .*)$", readme, "README.md")
        loss = r"^loss ([0-9.]+), perplexity"
        require_near("loss", only(loss, run(command, lockstep, folder), "the output"), only(loss, readme, "README.md"))

        losses = r'"validation/loss":[0-9.]+'
        if re.findall(losses, contents(folder, "runs/kjv/metrics.jsonl")) == re.findall(losses, tutorial):
            require_texts(readme, "README.md", lockstep, folder)
            require_texts(tutorial, "docs/tutorial.md", lockstep, folder)
        else:
            print("the losses are not those of docs/tutorial.md to the last digit: no text is compared")


main()

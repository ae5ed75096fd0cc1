# SPDX-License-Identifier: Apache-2.0
"""Runs the scripts of tools/ on small trees of sources."""

import subprocess
import sys
import tempfile
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def run_on(script, files):
    """Exit code and output of a script on a tree of {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        done = subprocess.run(
            [sys.executable, TOOLS / script, folder], capture_output=True, text=True, timeout=60, check=False
        )
    return done.returncode, done.stdout + done.stderr

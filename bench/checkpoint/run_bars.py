#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What checkpoints of gpt2-124m cost, against the disk that they are written to: the figures of
docs/benchmarks/checkpoints.md.

usage: run_bars.py [--lockstep PROGRAM] [--folder FOLDER] [--turns N]     run it on an idle machine

In each turn dd writes as many bytes as a checkpoint has, with fsync, and then a run goes on for five steps in new processes:
it saves two of them while others are computed, and the last one when nothing else is left to do. The first copy fills
memory that is new to its process, the second one does not.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time

STEPS_PER_TURN = 5
INTERVAL = 2
WROTE = re.compile(r"wrote (\S+/step-(\d+)) in ([\d.]+) s, for which training waited ([\d.]+) ms")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def print_machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text()).group(1)
    print(f"commit: {output_of('git', 'describe', '--always', '--dirty')}")
    print(f"machine: {model}, {os.cpu_count()} cores, Linux {os.uname().release}")
    print(f"load before: {pathlib.Path('/proc/loadavg').read_text().strip()}")


class Job:
    def __init__(self, lockstep, folder):
        self.lockstep, self.folder = lockstep, folder
        text, corpus = folder / "text", folder / "corpus"
        text.write_text("\n".join(map(str, range(200000))))
        subprocess.run([lockstep, "prepare", text, "--tokenizer", "bytes", "--output", corpus], check=True,
                       stdout=subprocess.DEVNULL)
        self.run = folder / "run"

    def train_until(self, step):
        keys = {"model.preset": "gpt2-124m", "data.train": self.folder / "corpus", "training.dtype": "bf16",
                "training.seq_len": 512, "training.micro_batch_size": 2, "training.steps": step,
                "lr_scheduler.decay_type": "constant",
                "checkpoint.interval": INTERVAL, "checkpoint.keep_last": 1, "job.dump_folder": self.run,
                "metrics.enable_tensorboard": "false"}
        flags = [word for key, value in keys.items() for word in (f"--{key}", str(value))]
        file = self.folder / "run.toml"
        file.touch()
        subprocess.run([self.lockstep, "train", file, "--workers", "2", "--resume", "auto", *flags], check=True,
                       stdout=subprocess.DEVNULL)

    def saves(self):
        """By step: seconds until it was there, seconds in which training waited."""
        found = WROTE.finditer((self.run / "log.txt").read_text())
        return {int(step): (float(seconds), float(waited) / 1e3) for _, step, seconds, waited in
                (match.groups() for match in found)}

    def step_seconds(self):
        lines = (self.run / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line)["step_s"] for line in lines]

    def checkpoint_bytes(self):
        return sum(path.stat().st_size for path in (self.run / "checkpoints").rglob("*") if path.is_file())


def dd(folder, size):
    """Bytes per second."""
    path = folder / "dd"
    began = time.monotonic()
    subprocess.run(["dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={size >> 20}", "conv=fsync"], check=True,
                   stderr=subprocess.DEVNULL)
    took = time.monotonic() - began
    path.unlink()
    return (size >> 20 << 20) / took


def show(name, values, unit):
    print(f"{name:<58} {statistics.median(values):8.3f} {unit} ({min(values):.3f} to {max(values):.3f})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lockstep", default="build/release/bin/lockstep")
    parser.add_argument("--folder", default=".", help="on the disk that is measured")
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    print_machine()
    folder = pathlib.Path(tempfile.mkdtemp(dir=arguments.folder))
    try:
        job = Job(arguments.lockstep, folder)
        job.train_until(1)
        size = job.checkpoint_bytes()
        rates, first, second, last = [], [], [], []
        for turn in range(arguments.turns):
            rates.append(dd(folder, size))
            end = 1 + (turn + 1) * STEPS_PER_TURN
            job.train_until(end)
            saves = job.saves()
            beside = [saves[step] for step in sorted(saves) if end - STEPS_PER_TURN < step < end]
            first.append(beside[0])
            second.append(beside[1])
            last.append(saves[end])
        step = statistics.median(job.step_seconds())
        print(f"a checkpoint of {size / 2**20:.0f} MiB by 2 workers; a step takes {step:.2f} s; {arguments.turns} turns")
        show("dd with fsync", [rate / 2**20 for rate in rates], "MiB/s")
        show("saved at the end, when nothing is computed", [size / 2**20 / seconds for seconds, _ in last], "MiB/s")
        show("  against dd in the same turn", [size / s / rate for (s, _), rate in zip(last, rates)], "x")
        show("saved while training goes on, until all know of it", [seconds for seconds, _ in second], "s")
        for name, saves in (("first", first), ("next", second)):
            show(f"training waited for the {name} copy of a process", [waited * 1e3 for _, waited in saves], "ms")
            show("  of a step", [100 * waited / step for _, waited in saves], "%")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

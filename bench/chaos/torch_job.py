#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What `lockstep chaos --against torchrun` compares with: the same model under DistributedDataParallel, with checkpoints.

torchrun.py starts one process for each rank, and all of them again when one has died; each start goes on from the newest
checkpoint. Rank 0 saves as often as pays (Young, Daly: every sqrt(2 x cost x --mtbf) seconds) and writes into --folder:
  steps.jsonl    a line for each step, as metrics.jsonl of a run has them
  starts.jsonl   "begun" with the step that it goes on from, and "trained" with the first step after that
"""
import ctypes
import json
import math
import os
import signal
import time

import torch
import torch.distributed
from torch import nn

import torch_gpt

PR_SET_PDEATHSIG = 1


def arguments():
    parser = torch_gpt.job_parser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--check", action="store_true", help="only tell whether such a model can be trained here")
    parser.add_argument("--mtbf", type=float, required=True, help="seconds between two kills")
    return parser.parse_args()


class Saver:
    """The newest checkpoint: always whole, replaced as often as pays."""

    def __init__(self, path, mtbf, model, optimizer):
        self.path, self.mtbf, self.model, self.optimizer = path, mtbf, model, optimizer
        self.cost, self.last = 0.0, time.monotonic()

    def load(self):
        """The step that the run goes on from."""
        if not os.path.exists(self.path):
            return 0
        state = torch.load(self.path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        return state["step"]

    def save_if_due(self, step):
        began = time.monotonic()
        if began - self.last < math.sqrt(2 * self.cost * self.mtbf):
            return
        temporary = self.path + ".tmp"
        with open(temporary, "wb") as out:
            torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": step}, out)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, self.path)
        self.last = time.monotonic()
        self.cost = self.last - began


class Lines:
    """A file of JSON lines that has each one as soon as it is written."""

    def __init__(self, path):
        self.out = open(path, "a", buffering=1, encoding="utf-8")

    def write(self, **values):
        self.out.write(json.dumps({"time": time.time(), **values}) + "\n")


def train(a, rank):
    model, optimizer = torch_gpt.make_model(a)
    saver = Saver(os.path.join(a.folder, "checkpoint.pt"), a.mtbf, model, optimizer)
    first = saver.load()
    torch.distributed.init_process_group("gloo")
    trained = nn.parallel.DistributedDataParallel(model, **torch_gpt.EXTRA)
    if rank == 0:
        steps, starts = (Lines(os.path.join(a.folder, name)) for name in ("steps.jsonl", "starts.jsonl"))
        starts.write(event="begun", step=first)
    for step in range(first + 1, a.steps + 1):
        torch.manual_seed(step * 4096 + rank)  # whoever computes a step again sees the same tokens
        _, took = torch_gpt.train_step(a, model, trained, optimizer)
        if rank == 0:
            steps.write(step=step, step_s=took)
            if step == first + 1:
                starts.write(event="trained", step=step)
            saver.save_if_due(step)


def main():
    # torchrun does not see to it that its workers end when it is killed.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    a = arguments()
    if a.dtype == "fp32":
        torch_gpt.require_fast_blas()
    if a.check:
        return
    torch.set_num_threads(a.threads)
    train(a, int(os.environ["RANK"]))


if __name__ == "__main__":
    main()

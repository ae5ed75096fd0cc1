#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What `lockstep bench train --against pytorch` compares with: the same model trained by PyTorch.

One process of it is one rank; RANK and WORLD_SIZE tell which, and ranks meet through the file --meet. More than one
train under DistributedDataParallel over gloo. Rank 0 writes a JSON object to --report. Runs with PyTorch 1.13 and later.
"""
import argparse
import json
import math
import os
import resource
import time

import torch
import torch.distributed
from torch import nn
from torch.nn import functional as F

EXTRA = {"gradient_as_bucket_view": True}  # spares DistributedDataParallel a copy of all gradients


def job_parser():
    """The flags of model, batch, steps and threads."""
    parser = argparse.ArgumentParser()
    for name in "layers heads kv_heads width ffn_width positions vocabulary tokens batch steps threads".split():
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--family", choices=["gpt", "llama"], required=True)
    parser.add_argument("--dtype", choices=["fp32", "bf16"], required=True)
    parser.add_argument("--untied", action="store_true")
    parser.add_argument("--theta", type=float, default=10000.0)
    return parser


def arguments():
    parser = job_parser()
    parser.add_argument("--meet", required=True)
    parser.add_argument("--report", required=True)
    return parser.parse_args()


def require_fast_blas():
    """Products in fp32 go to the BLAS of the system, and the reference one is a hundred times slower than others."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        if "/blas/libblas.so" in maps.read():
            raise SystemExit("torch_gpt.py: PyTorch runs on the reference BLAS: install libopenblas0 to compare with it in fp32")


def attend(query, key, value, mask):
    """Causal attention. The scale goes to the queries, which are smaller than the scores."""
    scores = (query * (1 / math.sqrt(query.shape[-1]))) @ key.transpose(-2, -1)
    return scores.masked_fill_(mask, float("-inf")).softmax(dim=-1) @ value


class GptBlock(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.heads = a.heads
        self.norm1, self.norm2 = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        self.qkv, self.out = nn.Linear(a.width, 3 * a.width), nn.Linear(a.width, a.width)
        self.up, self.down = nn.Linear(a.width, a.ffn_width), nn.Linear(a.ffn_width, a.width)

    def forward(self, x, constants):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(c, dim=2))
        x = x + self.out(attend(q, k, v, constants["mask"]).transpose(1, 2).reshape(b, t, c))
        # By erf, though GPT-2 and lockstep have the form with tanh: PyTorch 1.13 takes six times as long for that one.
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        x = x.float()
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.weight


def rotate(x, constants):
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * constants["cos"] + turned * constants["sin"]


class LlamaBlock(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.heads, self.kv_heads, self.head_width = a.heads, a.kv_heads, a.width // a.heads
        kv_width = a.kv_heads * self.head_width
        self.sizes = [a.width, kv_width, kv_width]
        self.norm1, self.norm2 = RmsNorm(a.width), RmsNorm(a.width)
        self.qkv, self.out = nn.Linear(a.width, sum(self.sizes), bias=False), nn.Linear(a.width, a.width, bias=False)
        self.gate_up = nn.Linear(a.width, 2 * a.ffn_width, bias=False)
        self.down = nn.Linear(a.ffn_width, a.width, bias=False)

    def forward(self, x, constants):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, -1, self.head_width).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(self.sizes, dim=2))
        q, k = rotate(q, constants), rotate(k, constants)
        if self.kv_heads != self.heads:
            k, v = (y.repeat_interleave(self.heads // self.kv_heads, dim=1) for y in (k, v))
        x = x + self.out(attend(q, k, v, constants["mask"]).transpose(1, 2).reshape(b, t, c))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self, a):
        super().__init__()
        gpt = a.family == "gpt"
        self.token = nn.Embedding(a.vocabulary, a.width)
        self.position = nn.Embedding(a.positions, a.width) if gpt else None
        self.blocks = nn.ModuleList(GptBlock(a) if gpt else LlamaBlock(a) for _ in range(a.layers))
        self.norm = nn.LayerNorm(a.width) if gpt else RmsNorm(a.width)
        self.head = nn.Linear(a.width, a.vocabulary, bias=False)
        if not a.untied:
            self.head.weight = self.token.weight
        self.constants = {"mask": torch.ones(a.tokens, a.tokens, dtype=torch.bool).triu(1)}
        if not gpt:
            half = a.width // a.heads // 2
            angles = torch.outer(torch.arange(a.tokens), a.theta ** (-torch.arange(half) / half)).repeat(1, 2)
            dtype = torch.bfloat16 if a.dtype == "bf16" else torch.float32
            self.constants.update(cos=angles.cos().to(dtype), sin=angles.sin().to(dtype))

    def forward(self, tokens, targets):
        hidden = self.token(tokens)
        if self.position is not None:
            hidden = hidden + self.position(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            hidden = block(hidden, self.constants)
        return F.cross_entropy(self.head(self.norm(hidden)).flatten(0, 1), targets.flatten())


def decay_groups(model):
    decays = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    return [{"params": decays, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]


def make_model(a):
    torch.manual_seed(1)
    model = Model(a)
    return model, torch.optim.AdamW(decay_groups(model), lr=3e-4, betas=(0.9, 0.95))


def train_step(a, model, trained, optimizer):
    """The loss; `trained` is the model as it is called, under DistributedDataParallel or not."""
    window = torch.randint(0, a.vocabulary, (a.batch, a.tokens + 1))
    began = time.perf_counter()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.dtype == "bf16"):
        loss = trained(window[:, :-1], window[:, 1:])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.item(), time.perf_counter() - began


def train(a, world, rank):
    model, optimizer = make_model(a)
    trained = model
    if world > 1:
        torch.distributed.init_process_group("gloo", init_method="file://" + a.meet, rank=rank, world_size=world)
        trained = nn.parallel.DistributedDataParallel(model, **EXTRA)
    seconds = []
    for _ in range(a.steps):
        loss, took = train_step(a, model, trained, optimizer)
        seconds.append(took)
    return {"version": torch.__version__, "parameters": sum(p.numel() for p in model.parameters()),
            "loss": loss, "step_s": seconds,
            "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main():
    a = arguments()
    if a.dtype == "fp32":
        require_fast_blas()
    torch.set_num_threads(a.threads)
    rank = int(os.environ.get("RANK", 0))
    report = train(a, int(os.environ.get("WORLD_SIZE", 1)), rank)
    if rank == 0:
        with open(a.report, "w", encoding="utf-8") as out:
            json.dump(report, out)


if __name__ == "__main__":
    main()

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The comparisons that docs/benchmarks/training.md reports, one after the other, with what they were measured
# on. usage: run_bars.sh [LOCKSTEP]     default: build/release/bin/lockstep; run it on an idle machine
. "$(dirname "$0")/../bars.sh"

gpt='--preset gpt2-124m --workers 2 --micro-batch 2 --seq-len 512 --steps 6 --turns 5'
llama='--preset llama-tiny --model.layers 6 --model.width 384 --model.heads 6 --model.kv_heads 6
  --model.ffn_width 1024 --model.vocab_size 8192 --model.tied_embeddings true --workers 2 --micro-batch 8 --seq-len 256
  --steps 8 --turns 5'
small_gpt='--preset gpt2-124m --model.layers 6 --model.width 384 --model.heads 6 --model.ffn_width 1536
  --model.vocab_size 8192 --workers 2 --micro-batch 8 --seq-len 256 --steps 8 --turns 5'

begin_report
say_pytorch
# shellcheck disable=SC2086
{
  case_of 'gpt2-124m, bf16' bench train $gpt --dtype bf16 --against pytorch,one-process,inexact,unshared
  case_of 'gpt2-124m, fp32' bench train $gpt --dtype fp32 --against pytorch
  case_of 'a llama of 14 million parameters, bf16' bench train $llama --dtype bf16 --against pytorch
  case_of 'a gpt of 14 million parameters, bf16' bench train $small_gpt --dtype bf16 --against pytorch
}
case_of 'kernels, one thread' bench kernels --threads 1
end_report

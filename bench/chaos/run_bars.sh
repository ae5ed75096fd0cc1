#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The figures of docs/benchmarks/elastic.md, one after the other, with what they were measured on: about 40 minutes.
# usage: run_bars.sh [LOCKSTEP]     default: build/release/bin/lockstep; run it on an idle machine
. "$(dirname "$0")/../bars.sh"
scratch_folder

# The small model: a llama of 14 million parameters, in bf16, on text of 4 million bytes.
model='--model.name llama --model.layers 6 --model.width 384 --model.heads 6 --model.kv_heads 6 --model.ffn_width 1024
  --model.vocab_size 8192 --model.tied_embeddings true --training.dtype bf16 --training.seq_len 128'
chaos='--workers 4 --mtbf 20s --gap 5s --checkpoint.interval auto --checkpoint.mtbf_seconds 20'

begin_report
say_pytorch
make_corpus
printf '[data]\ntrain = ["%s/corpus"]\n[metrics]\nenable_tensorboard = false\n' "$folder" > "$folder/run.toml"

# shellcheck disable=SC2086
{
  case_of 'cost of fault tolerance without faults: lockstep is without it, elastic with it' \
    bench train --preset llama-tiny $model --training.micro_batch_size 1 --workers 4 --steps 40 --turns 5 --against elastic
  case_of 'the same with 512 tokens for each worker' \
    bench train --preset llama-tiny $model --training.micro_batch_size 4 --workers 4 --steps 12 --turns 5 --against elastic
  case_of '20 kills and 3 resizes, one every 20 s, and the same kills under torchrun' \
    chaos "$folder/run.toml" $model --training.micro_batch_size 1 $chaos --kills 20 --resizes 3 --against torchrun --output "$folder/chaos"
}
end_report

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""torchrun, also where that of PyTorch 1.13 does not run: under Python 3.11 it takes "no redirects" for None and ends with
"AttributeError: 'NoneType' object has no attribute 'get'" before it starts anything.
"""
import torch.distributed.elastic.multiprocessing as multiprocessing
import torch.distributed.run as run

original_to_map = multiprocessing.to_map


def to_map(value, local_world_size):
    return original_to_map(multiprocessing.Std.NONE if value is None else value, local_world_size)


if __name__ == "__main__":
    multiprocessing.to_map = to_map
    run.main()

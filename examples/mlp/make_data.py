#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes train.npy and validation.npy into a folder: points of 16 numbers in 4 classes, noisy turns of 4 centres.

Usage: make_data.py FOLDER. With NumPy, numpy.save("train.npy", matrix.astype("float32")) writes the same format; the
last column is the number of the class.
"""
import math
import os
import random
import struct
import sys

FEATURES, CLASSES = 16, 4


def sample(numbers):
    label = numbers.randrange(CLASSES)
    angle = numbers.uniform(0, math.pi)
    centre = [math.cos((i + 1) * angle + label * math.pi / 2) for i in range(FEATURES)]
    return [x + numbers.gauss(0, 0.4) for x in centre] + [label]


def write(path, rows):
    fields = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), FEATURES + 1)
    header = fields.ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        for row in rows:
            file.write(struct.pack("<%df" % len(row), *row))


def main(folder):
    numbers = random.Random(1)
    os.makedirs(folder, exist_ok=True)
    write(os.path.join(folder, "train.npy"), [sample(numbers) for _ in range(4000)])
    write(os.path.join(folder, "validation.npy"), [sample(numbers) for _ in range(1000)])


if __name__ == "__main__":
    main(*sys.argv[1:])

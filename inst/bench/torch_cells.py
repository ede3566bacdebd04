"""Euclidean neighbours of all points by PyTorch, for cells.R: chunks of
queries, a matrix product and topk, in float32 (no TF32).

    python3 torch_cells.py FILE N D K ANSWER DEVICE
    python3 torch_cells.py version DEVICE

FILE: 32-bit floats, N rows of D, a point after the other. DEVICE: cuda or cpu.
ANSWER is written: N rows of K 32-bit integers from 0, without the point itself,
then as many 32-bit floats, the distances. Prints two numbers, separated by a
comma: the seconds to bring the rows to the device, with their squared lengths,
and those of the search, until the answer is in the memory of the host. A search
of some rows to warm up comes before. `version` prints that of PyTorch, where it
has the device.
"""

import sys
import time

import numpy
import torch

# A chunk's products take at most this many bytes.
CHUNK_BYTES = {"cuda": 1 << 33, "cpu": 1 << 28}


def brought(rows, device):
    x = torch.from_numpy(rows).to(device)
    return x, (x * x).sum(1)


def neighbours(x, squares, k, chunk, count):
    index = torch.empty((count, k), dtype=torch.int32)
    distance = torch.empty((count, k), dtype=torch.float32)
    for first in range(0, count, chunk):
        last = min(first + chunk, count)
        here = torch.arange(last - first, device=x.device)
        # |b|^2 - 2 a.b has the order of |a - b|^2.
        key = torch.addmm(squares, x[first:last], x.T, alpha=-2)
        key[here, here + first] = float("inf")
        near = torch.topk(key, k, dim=1, largest=False)
        square = near.values + squares[first:last, None]
        index[first:last] = near.indices.int().cpu()
        distance[first:last] = square.clamp(min=0).sqrt().cpu()
    return index, distance


def finished(device):
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main(file, n, d, k, answer, device):
    torch.backends.cuda.matmul.allow_tf32 = False
    device = torch.device(device)
    n, k = int(n), int(k)
    rows = numpy.fromfile(file, dtype=numpy.float32).reshape(n, int(d))
    chunk = max(1, min(n, CHUNK_BYTES[device.type] // (4 * n)))
    neighbours(*brought(rows, device), k, chunk, min(n, 2 * chunk))
    start = finished(device)
    x, squares = brought(rows, device)
    built = finished(device)
    index, distance = neighbours(x, squares, k, chunk, n)
    end = finished(device)
    with open(answer, "wb") as to:
        index.numpy().tofile(to)
        distance.numpy().tofile(to)
    print(f"{built - start},{end - built}")


if sys.argv[1] == "version":
    torch.zeros(1, device=sys.argv[2])
    print(torch.__version__)
else:
    main(*sys.argv[1:])

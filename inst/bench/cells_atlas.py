"""The atlas of cells.R in a file, and a check of an answer, for cells_file.R.

    python3 cells_atlas.py make FILE N D CLOSENESS DEVICE
    python3 cells_atlas.py check FILE K SHARDS ROWS DEVICE

`make` writes N points of D floats in the form of big-ann-benchmarks (.fbin):
the distribution of simulate_atlas() in cells.R, by PyTorch's random numbers.

`check` compares ROWS rows of an answer in a folder of shards, format "bin",
with brute force in doubles. It prints the number of rows, the number of
neighbours whose distance is not the one of their rank, and the largest relative
difference of a distance. A distance of the answer is a float: up to 2^-24 of
it is rounding.
"""

import os
import sys

import numpy
import torch

AT_ONCE = 1 << 20  # points


def make(file, n, d, closeness, device):
    n, d, closeness = int(n), int(d), float(closeness)
    torch.manual_seed(1)
    device = torch.device(device)
    torch.set_default_device(device)
    spread = 12 * torch.exp(-torch.arange(d) / 9) + 1
    lineage = torch.arange(8).repeat_interleave(10)
    centre = (torch.randn(8, d) * 0.8 * spread)[lineage] + torch.randn(
        80, d
    ) * 0.45 * spread / closeness
    following = 10 * lineage + (torch.arange(80) + 1) % 10
    frequency = torch.exp(1.2 * torch.randn(80))
    with open(file, "wb") as to:
        numpy.array([n, d], dtype=numpy.uint32).tofile(to)
        for first in range(0, n, AT_ONCE):
            count = min(AT_ONCE, n - first)
            kind = torch.multinomial(frequency, count, replacement=True)
            way = torch.where(
                torch.rand(count) < 0.3, torch.rand(count), torch.zeros(count)
            )[:, None]
            scale = torch.exp(0.15 * torch.randn(count))[:, None]
            x = torch.lerp(centre[kind], centre[following[kind]], way)
            x += (0.15 * spread + 0.55) * scale * torch.randn(count, d)
            x.float().cpu().numpy().tofile(to)


def rows_of_shards(folder, kind, rows):
    """Rows of all shards of one kind; in a shard they are consecutive."""
    names = sorted(n for n in os.listdir(folder) if n.startswith(kind + "-"))
    begin, found = 0, []
    for name in names:
        path = os.path.join(folder, name)
        count, k = (int(i) for i in numpy.fromfile(path, numpy.uint32, 2))
        dtype = numpy.int32 if kind == "index" else numpy.float32
        all_rows = numpy.memmap(path, dtype, "r", 8, (count, k))
        here = rows[(rows >= begin) & (rows < begin + count)] - begin
        found.append(numpy.array(all_rows[here]))
        begin += count
    return numpy.concatenate(found)


def check(file, k, folder, num_rows, device):
    k, num_rows = int(k), int(num_rows)
    n, d = (int(i) for i in numpy.fromfile(file, numpy.uint32, 2))
    points = numpy.memmap(file, numpy.float32, "r", 8, (n, d))
    numpy.random.seed(2)
    rows = numpy.sort(numpy.random.choice(n, min(n, num_rows), replace=False))
    own = torch.from_numpy(numpy.array(points[rows])).to(device).double()
    own_rows = torch.from_numpy(rows).to(device)
    squares = (own * own).sum(1)
    best = torch.full((len(rows), k), float("inf"), device=device).double()
    for first in range(0, n, AT_ONCE):
        last = min(n, first + AT_ONCE)
        x = torch.from_numpy(points[first:last]).to(device).double()
        square = torch.addmm(
            squares[:, None] + (x * x).sum(1), own, x.T, alpha=-2
        )
        here = ((own_rows >= first) & (own_rows < last)).nonzero()[:, 0]
        square[here, own_rows[here] - first] = float("inf")
        near = torch.topk(square, min(k, last - first), 1, largest=False)
        best = torch.cat([best, near.values], 1)
        best = torch.topk(best, k, 1, largest=False).values
    true = best.clamp(min=0).sqrt()
    index = rows_of_shards(folder, "index", rows)
    given = rows_of_shards(folder, "distance", rows)
    given = torch.from_numpy(given).to(device).double()
    difference = ((given - true) / true).abs()
    # The neighbours themselves: their distances, computed from the points.
    named = torch.from_numpy(points[index.reshape(-1)]).to(device).double()
    named = named.reshape(len(rows), k, d) - own[:, None, :]
    named = ((named * named).sum(2).sqrt() - true) / true
    distinct = all(len(set(row)) == k for row in index.tolist())
    wrong = int((named.abs() > 1e-9).sum()) + (0 if distinct else 1)
    wrong += int((index == rows[:, None]).sum())
    print(f"{len(rows)} rows, {wrong} wrong, {float(difference.max()):.3g}")


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](*sys.argv[2:])

"""Queries of points by PyTorch on one GPU: matmul and topk in float32.

    python3 queries_torch.py FOLDER N QUERIES D K METRIC,... COUNT,...

FOLDER has the files points and queries: float32, one feature after another. The
points are on the GPU, centred and of length 1 for "pearson". Prints a line of CSV
for each metric and count: version, metric, queries, and medians of milliseconds
with queries and answer on the GPU, and from host to host. Writes the distances of
the fewest queries to the file FOLDER/METRIC.
"""

import statistics
import sys
import time

import torch

torch.backends.cuda.matmul.allow_tf32 = False
device = torch.device("cuda")


def read(path, rows, features):
    with open(path, "rb") as file:
        values = torch.frombuffer(bytearray(file.read()), dtype=torch.float32)
    return values.view(features, -1).T[:rows].contiguous()


def unit(x):
    x = x - x.mean(1, keepdim=True)
    return x / x.norm(dim=1, keepdim=True)


def searcher(metric, points, k):
    """Returns a function from queries to their distances and neighbours."""
    if metric == "pearson":
        points = unit(points)

        def search(queries):
            found = torch.topk(unit(queries) @ points.T, k, dim=1)
            return 1 - found.values, found.indices

        return search
    lengths = (points * points).sum(1)

    def search(queries):
        square = torch.addmm(lengths, queries, points.T, alpha=-2)
        found = torch.topk(square, k, dim=1, largest=False)
        own = (queries * queries).sum(1, keepdim=True)
        return (found.values + own).clamp_min(0).sqrt(), found.indices

    return search


def timed(call, at_least=5, seconds=0.3):
    """Returns the median of milliseconds of a call."""
    call()
    call()
    times = []
    began = time.perf_counter()
    while len(times) < at_least or (
            time.perf_counter() - began < seconds and len(times) < 300):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def main(arguments):
    folder = arguments[0]
    n, m, d, k = (int(a) for a in arguments[1:5])
    points = read(folder + "/points", n, d).to(device)
    queries = read(folder + "/queries", m, d)
    counts = [int(a) for a in arguments[6].split(",")]
    for metric in arguments[5].split(","):
        if metric not in ("pearson", "euclidean"):
            continue
        search = searcher(metric, points, k)
        for count in counts:
            host = queries[:count].contiguous()
            there = host.to(device)
            device_ms = timed(lambda: search(there))
            call_ms = timed(lambda: [
                part.cpu() for part in search(host.to(device))])
            print(",".join(str(v) for v in (
                torch.__version__, metric, count, device_ms, call_ms)),
                flush=True)
        distances = search(queries[:min(counts)].to(device))[0]
        with open(folder + "/" + metric, "wb") as file:
            file.write(distances.cpu().contiguous().numpy().tobytes())


main(sys.argv[1:])

"""Exact neighbours by PyTorch on one GPU: chunked matmul and topk in float32.

    python3 torch_peer.py N D K [N D K ...]

Rows (64 latent factors and noise, made on the GPU) are centred and brought to
length 1 first, which is not timed. Prints a line of CSV for each case: version,
n, d, k, chunk, seconds (median of 5 after one to warm up), lowest, highest, runs.
Beyond 400,000 points one run over a part of the rows is timed, and scaled.
"""

import statistics
import sys
import time

import torch

torch.backends.cuda.matmul.allow_tf32 = False
device = torch.device("cuda")


def simulated(n, d, factors=64):
    torch.manual_seed(1)
    scores = torch.randn(factors, d, device=device)
    x = torch.randn(n, factors, device=device) @ scores
    x += torch.randn(n, d, device=device)
    x -= x.mean(1, keepdim=True)
    return x / x.norm(dim=1, keepdim=True)


def neighbours(x, k, chunk, rows):
    for first in range(0, rows, chunk):
        last = min(first + chunk, rows)
        r = x[first:last] @ x.T
        r[torch.arange(last - first, device=device),
          torch.arange(first, last, device=device)] = -2
        torch.topk(r, k, dim=1)


def timed(x, k, chunk, rows):
    torch.cuda.synchronize()
    start = time.perf_counter()
    neighbours(x, k, chunk, rows)
    torch.cuda.synchronize()
    return time.perf_counter() - start


def main(arguments):
    for i in range(0, len(arguments), 3):
        n, d, k = (int(a) for a in arguments[i:i + 3])
        x = simulated(n, d)
        # Eight GiB of products at a time.
        chunk = max(1, min(n, (1 << 31) // n))
        rows = n if n <= 400000 else 4 * chunk
        runs = 5 if n <= 200000 else 1
        timed(x, k, chunk, min(rows, 2 * chunk))
        times = [timed(x, k, chunk, rows) * n / rows for _ in range(runs)]
        print(",".join(str(v) for v in (
            torch.__version__, n, d, k, chunk, statistics.median(times),
            min(times), max(times), runs if rows == n else 0)), flush=True)
        del x
        torch.cuda.empty_cache()


main(sys.argv[1:])

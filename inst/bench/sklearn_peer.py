"""scikit-learn's exact search, for cpu.R: prints the seconds of one search.

Usage: sklearn_peer.py POINTS N D K INDEX, or sklearn_peer.py version
POINTS: doubles, N rows of D, a point after the other, centred and of length 1.
INDEX: written; 32-bit integers from 0, N rows of K + 1, the point itself among
them. The search is run twice, and the second is timed.
"""

import sys
import time

import numpy
import sklearn
from sklearn.neighbors import NearestNeighbors


def main(points, n, d, k, index):
    x = numpy.fromfile(points).reshape(int(n), int(d))
    for _ in range(2):
        start = time.perf_counter()
        finder = NearestNeighbors(n_neighbors=int(k) + 1, algorithm="brute")
        found = finder.fit(x).kneighbors(x, return_distance=False)
        seconds = time.perf_counter() - start
    found.astype(numpy.int32).tofile(index)
    print(seconds)


if sys.argv[1] == "version":
    print(sklearn.__version__)
else:
    main(*sys.argv[1:])

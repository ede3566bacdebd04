# Writes extdata/cells.h5ad, a small file of AnnData for examples and tests:
#
#   python3 cells.py cells.h5ad
#
# 150 simulated cells of three types, 40 genes. X has the counts (sparse), the
# layer "logcounts" their logarithms, and obsm "X_pca" eight principal
# components. AnnData is Debian's python3-anndata (0.8.0).

import sys

import anndata
import numpy
import pandas
import scipy.sparse

rng = numpy.random.default_rng(1)
num_cells, num_genes = 150, 40
types = rng.integers(0, 3, num_cells)
levels = rng.gamma(2, 1, (3, num_genes))
counts = rng.poisson(levels[types] * rng.lognormal(0, 0.2, (num_cells, 1)))
logs = numpy.log1p(counts / counts.sum(1, keepdims=True) * 1e4)
centred = logs - logs.mean(0)
left, sizes, _ = numpy.linalg.svd(centred, full_matrices=False)

cells = anndata.AnnData(
    scipy.sparse.csr_matrix(counts.astype("float32")),
    obs=pandas.DataFrame(
        {"type": pandas.Categorical(numpy.array(["B", "NK", "T"])[types])},
        index=["cell%d" % (i + 1) for i in range(num_cells)],
    ),
    var=pandas.DataFrame(index=["gene%d" % (i + 1) for i in range(num_genes)]),
    dtype="float32",
)
cells.layers["logcounts"] = logs.astype("float32")
cells.obsm["X_pca"] = left[:, :8] * sizes[:8]
cells.write_h5ad(sys.argv[1], compression="gzip")

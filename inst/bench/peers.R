# The other exact searches that cpu.R times. Each is a list:
#   name      in the table; `what` says how it is called and what is not timed
#   threads   that it uses of those asked for
#   missing   why it cannot be run here, or NULL
#   run()     one search; gives list(seconds, index), index n x k from 1, the
#             point itself excluded
#   float     its distances are in single precision
#   rounds_at_most, where it takes part in fewer than the others
#   try_small is tried on few points first, being slow
# All get points that are ready: for Pearson, centred and of length 1, so that
# the Euclidean order is that of 1 - r. What that costs is not on their clock,
# except for the two that are written out in R below.

timed <- function(search) {
  start <- clock()
  index <- search()
  list(seconds = clock() - start, index = index)
}

has_package <- function(package) {
  if (!requireNamespace(package, quietly = TRUE)) {
    sprintf("not run: no R package %s", package)
  }
}

# Rows of candidates with the point itself among them (or not, where a tie put
# it out), as an n x k matrix without it. found: (k + 1) x n.
drop_self <- function(found) {
  self <- found == rep(seq_len(ncol(found)), each = nrow(found))
  none <- colSums(self) == 0
  self[nrow(found), none] <- TRUE
  t(matrix(found[!self], ncol = ncol(found)))
}

# --- Written in R -------------------------------------------------------------

# The largest k of v, in order, the first of equals first. `low` is at most the
# k-th largest: only what reaches it is sorted.
top_k <- function(v, k, low) {
  hit <- which(v >= low)
  hit[order(v[hit], decreasing = TRUE, method = "radix")[seq_len(k)]]
}

kth_largest <- function(v, k) {
  at <- length(v) - k + 1L
  sort.int(v, partial = at)[[at]]
}

# Blocks of the correlation matrix by crossprod(); the k-th largest of the first
# 2,048 entries of a column bounds that of all from below. In two processes,
# each with its own BLAS thread, since R's own code runs on one thread only.
blocked_crossprod <- function(x, k, threads, block = 256L) {
  old <- options(matprod = "blas")
  on.exit(options(old))
  points <- t(unit_rows(x))
  n <- ncol(points)
  sampled <- seq_len(min(n, 2048L))
  one_block <- function(first) {
    rows <- first:min(first + block - 1L, n)
    r <- crossprod(points, points[, rows, drop = FALSE])
    r[cbind(rows, seq_along(rows))] <- -Inf
    vapply(seq_along(rows), function(j) {
      v <- r[, j]
      top_k(v, k, kth_largest(v[sampled], k))
    }, integer(k))
  }
  firsts <- seq(1L, n, by = block)
  found <- if (threads == 1) {
    lapply(firsts, one_block)
  } else {
    parallel::mclapply(firsts, one_block, mc.cores = threads)
  }
  t(do.call(cbind, found))
}

# What comes to mind first.
cor_and_partial_sort <- function(x, k) {
  r <- stats::cor(t(x))
  diag(r) <- -Inf
  t(apply(r, 1, function(v) top_k(v, k, kth_largest(v, k))))
}

# --- FAISS --------------------------------------------------------------------

# Ways to call it: c(split, query block, database block, BLAS from so many
# queries, reservoir from k). Of these the bench takes the fastest at each size;
# reservoirs, larger and smaller blocks, and doing without BLAS were all slower.
faiss_called <- c(0L, 4096L, 1024L, 20L, 100L)
faiss_ways <- list(
  c(1L, 4096L, 1024L, 20L, 100L), c(1L, 1024L, 4096L, 20L, 100L),
  c(1L, 1024L, 1024L, 20L, 100L), c(1L, 256L, 4096L, 20L, 100L),
  c(1L, 256L, 1024L, 20L, 100L), c(0L, 4096L, 1024L, 20L, 100L)
)

faiss_version <- function() {
  paste(.Call("bench_faiss_version", PACKAGE = "faiss_peer"), collapse = ".")
}

faiss_search <- function(k, product, threads, way, blas_threads) {
  set_blas_threads(blas_threads)
  on.exit(set_blas_threads(machine_threads))
  found <- .Call(
    "bench_faiss_search", k + 1L, product, threads, way, PACKAGE = "faiss_peer"
  )
  list(seconds = found[[1]], index = drop_self(found[[2]]))
}

# Where the points are many, each try is long: the way that was best before.
best_ways <- new.env()
best_faiss_way <- function(k, product, threads, n, d) {
  case <- paste(product, threads, d)
  if (n > 50000 && !is.null(best_ways[[case]])) {
    return(best_ways[[case]])
  }
  seconds <- vapply(faiss_ways, function(way) {
    one <- function(try) faiss_search(k, product, threads, way, 1L)$seconds
    min(vapply(seq_len(if (n > 10000) 1L else 3L), one, 0))
  }, 0)
  best_ways[[case]] <- faiss_ways[[which.min(seconds)]]
  best_ways[[case]]
}

faiss_peers <- function(points, k, product, threads, missing) {
  called_threads <- if (threads == 1) 1L else machine_threads
  way <- NULL
  list(
    list(
      name = "FAISS, best way found", threads = threads, float = TRUE,
      missing = missing, what = "search alone; one BLAS thread each",
      prepare = function() {
        .Call("bench_faiss_load", points, PACKAGE = "faiss_peer")
        way <<- best_faiss_way(
          k, product, threads, nrow(points), ncol(points)
        )
      },
      run = function() faiss_search(k, product, threads, way, 1L),
      note = function() {
        paste(c(
          if (threads > 1 && way[[1]]) "queries dealt to threads",
          sprintf("blocks of %d x %d", way[[2]], way[[3]])
        ), collapse = ", ")
      }
    ),
    list(
      name = "FAISS, as called", threads = threads, float = TRUE,
      missing = missing, what = "search alone; BLAS threads as they are",
      run = function() {
        faiss_search(k, product, threads, faiss_called, called_threads)
      }
    )
  )
}

# --- Packages -----------------------------------------------------------------

package_peer <- function(name, package, threads, what, run) {
  list(
    name = name, threads = threads, float = FALSE,
    missing = has_package(package), what = what, try_small = TRUE, run = run
  )
}

bioc_peer <- function(points, k, threads, name, class) {
  package_peer(
    paste("BiocNeighbors", name), "BiocNeighbors", threads, "findKNN()",
    function() {
      workers <- if (threads == 1) {
        BiocParallel::SerialParam()
      } else {
        BiocParallel::MulticoreParam(threads)
      }
      parameters <- getExportedValue("BiocNeighbors", class)()
      timed(function() {
        BiocNeighbors::findKNN(
          points, k, BNPARAM = parameters, BPPARAM = workers
        )$index
      })
    }
  )
}

fnn_peer <- function(points, k, algorithm) {
  package_peer(paste("FNN", algorithm), "FNN", 1L, "get.knn()", function() {
    timed(function() FNN::get.knn(points, k, algorithm = algorithm)$nn.index)
  })
}

# With two threads the queries are split between two processes.
rann_peer <- function(points, k, threads) {
  search <- function(rows) {
    RANN::nn2(points, points[rows, , drop = FALSE], k + 1L)$nn.idx
  }
  what <- if (threads == 1) "nn2()" else "nn2(), one process a thread"
  package_peer("RANN", "RANN", threads, what, function() {
    found <- timed(function() {
      pieces <- parallel::splitIndices(nrow(points), threads)
      do.call(rbind, parallel::mclapply(pieces, search, mc.cores = threads))
    })
    found$index <- drop_self(t(found$index))
    found
  })
}

# --- scikit-learn, in a process of its own ------------------------------------

# NULL where there is none.
sklearn_version <- function() {
  python <- "/usr/bin/python3"
  if (!file.exists(python)) {
    return(NULL)
  }
  version <- suppressWarnings(system2(
    python, c(shQuote(bench_file("sklearn_peer.py")), "version"),
    stdout = TRUE, stderr = FALSE
  ))
  if (length(version) == 1) version
}

sklearn_peer <- function(points, k, threads, missing) {
  data <- tempfile()
  answer <- tempfile()
  list(
    name = "scikit-learn", threads = threads, float = FALSE, missing = missing,
    what = "NearestNeighbors(algorithm = \"brute\"), search alone",
    rounds_at_most = 5, # each starts Python
    prepare = function() writeBin(as.vector(t(points)), data),
    run = function() {
      seconds <- system2(
        "/usr/bin/python3",
        c(
          shQuote(bench_file("sklearn_peer.py")), data, nrow(points),
          ncol(points), k, answer
        ),
        stdout = TRUE,
        env = c(
          paste0("OMP_NUM_THREADS=", threads),
          paste0("OPENBLAS_NUM_THREADS=", threads)
        )
      )
      found <- readBin(answer, "integer", nrow(points) * (k + 1))
      list(
        seconds = as.numeric(seconds),
        index = drop_self(matrix(found + 1L, nrow = k + 1))
      )
    },
    done = function() unlink(c(data, answer))
  )
}

# --- The peers of each table --------------------------------------------------

peers_of_graph <- function(x, k, threads, first_size, missing) {
  points <- unit_rows(x)
  peers <- c(
    faiss_peers(points, k, TRUE, threads, missing$faiss),
    list(
      sklearn_peer(points, k, threads, missing$sklearn),
      list(
        name = "blocked crossprod()", threads = threads, float = FALSE,
        what = "R, whole call; one process a thread",
        run = function() {
          set_blas_threads(1L)
          on.exit(set_blas_threads(machine_threads))
          timed(function() blocked_crossprod(x, k, threads))
        }
      ),
      bioc_peer(points, k, threads, "exhaustive", "ExhaustiveParam"),
      fnn_peer(points, k, "brute"),
      rann_peer(points, k, threads)
    )
  )
  if (first_size) {
    peers <- c(peers, list(list(
      name = "cor() and partial sort", threads = threads, float = FALSE,
      what = "R, whole call",
      run = function() timed(function() cor_and_partial_sort(x, k))
    )))
  }
  peers
}

# product: the points have length 1, and FAISS may use their inner products.
peers_of_low_d <- function(points, k, product, threads, missing) {
  peers <- c(
    faiss_peers(points, k, product, threads, missing$faiss),
    list(
      bioc_peer(points, k, threads, "Kmknn", "KmknnParam"),
      bioc_peer(points, k, threads, "Vptree", "VptreeParam"),
      rann_peer(points, k, threads)
    )
  )
  if (threads == 1) c(peers, list(fnn_peer(points, k, "kd_tree"))) else peers
}

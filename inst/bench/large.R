# Searches larger than memory and disk: latent factors and noise, rows that are
# made where they are needed (the exact step too), on GPUs in their own memory.
#
#   Rscript large.R long             2,000,000 x 15,876, k = 200; two GPUs
#   Rscript large.R wide             10,000,000 x 295, k = 20, into shards
#   Rscript large.R CASE N D K [FOLDER]
#                                    of other sizes; FOLDER: where the shards go
#   Rscript large.R check            both cases in seconds, on what there is
#
# Prints seconds by part, pairs and the machine, each line when it is known.
# Sampled rows are checked by all pairs in doubles, and some of them once more
# in R, from rows made again. Every search, also that of sampled rows, begins
# with one pass of the host over all values, which makes them: some 12 ns of one
# core each, of `long` 400 CPU seconds.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

cases <- list(
  long = list(n = 2e6, d = 15876, k = 200, shards = FALSE),
  wide = list(n = 1e7, d = 295, k = 20, shards = TRUE)
)
num_checked <- 50

seconds_of <- function(expr) {
  started <- clock()
  force(expr)
  clock() - started
}

# By a definition that shares no code with the package but for the rows, 1 -
# the products of plain doubles: each neighbour is as far as it is said to be,
# and of `others` none is nearer than the last neighbour without being one.
check_by_products <- function(x, found, rows, others) {
  own <- unit_rows(x[rows, ])
  index <- as.matrix(found$index[rows, ])
  distance <- as.matrix(found$distance[rows, ])
  for (r in seq_along(rows)) {
    again <- 1 - unit_rows(x[index[r, ], ]) %*% own[r, ]
    stopifnot(
      max(abs(again - distance[r, ])) < 1e-12,
      !is.unsorted(distance[r, ]),
      !anyDuplicated(c(rows[[r]], index[r, ]))
    )
  }
  at_once <- max(1, floor(2^25 / ncol(x)))
  for (first in seq(1, length(others), by = at_once)) {
    block <- others[seq(first, min(length(others), first + at_once - 1))]
    apart <- 1 - tcrossprod(own, unit_rows(x[block, ]))
    for (r in seq_along(rows)) {
      nearer <- block[apart[r, ] < distance[r, ncol(distance)] - 1e-12]
      stopifnot(nearer %in% c(rows[[r]], index[r, ]))
    }
  }
}

# By searches without a filter, which so few queries at a time have none: all
# pairs in doubles. The same bits.
check_by_queries <- function(x, found, rows, k) {
  at_once <- if (on_gpu) 64 else 16
  whole <- list(index = as.matrix(found$index[rows, ]),
                distance = as.matrix(found$distance[rows, ]))
  for (few in split(seq_along(rows), ceiling(seq_along(rows) / at_once))) {
    again <- knn_query(x, x[rows[few], ], k + 1)
    stopifnot(
      knn_stats()$pairs_filtered == 0,
      same_rows(again, whole, rows[few], k, few)
    )
  }
}

run_case <- function(name, n, d, k, folder = tempfile("shards-")) {
  x <- fsknn:::latent_rows(n, d, factors = 10, noise = 1)
  say(
    "== ", name, ": ", format(n, big.mark = ","), " x ",
    format(d, big.mark = ","), ", k = ", k, ", made of ",
    format(fsknn:::bytes_made_from(x) / 2^20, digits = 3), " MB"
  )
  shards <- cases[[name]]$shards &&
    requireNamespace("DelayedArray", quietly = TRUE)
  if (cases[[name]]$shards && !shards) {
    say("no package DelayedArray: the answer stays in memory, no shards")
  }
  # What a first call takes.
  invisible(knn_search(fsknn:::latent_rows(5000, d), 3))
  say("searching")
  if (shards) {
    output <- knn_output(folder, "bin", precision = "double")
    seconds <- seconds_of(found <- knn_search(x, k, output = output))
  } else {
    seconds <- seconds_of(found <- knn_search(x, k))
  }
  stats <- knn_stats()
  say("seconds, whole call: ", format(seconds, digits = 4))
  print(stats)
  if (shards) {
    bytes <- sum(file.size(list.files(folder, full.names = TRUE)))
    say("shards: ", format(bytes / 2^20, digits = 4), " MB")
  }
  pairs <- n * (n - 1) / 2
  say(
    "pairs: ", format(pairs, digits = 6), "; filtered, of those: ",
    format(stats$pairs_filtered / pairs, digits = 6), "; exact, of a row: ",
    format(stats$pairs_exact / n, digits = 5)
  )
  sampled <- unique(round(seq(1, n, length.out = num_checked)))
  few <- sampled[seq(1, length(sampled), by = 10)]
  others <- if (n * d <= 5e8) {
    seq_len(n)
  } else {
    unique(round(seq(1, n, length.out = 20000)))
  }
  say("checking")
  seconds <- seconds_of(check_by_queries(x, found, sampled, k))
  say(
    "checked: ", length(sampled), " rows by all pairs in doubles; all the same",
    " (", format(seconds, digits = 3), " s)"
  )
  seconds <- seconds_of(check_by_products(x, found, few, others))
  say(
    "checked: ", length(few), " rows in R against ",
    format(length(others), big.mark = ","), " points; all the same (",
    format(seconds, digits = 3), " s)"
  )
  if (shards) unlink(folder, recursive = TRUE)
}

case <- word(1, "")
if (!case %in% c(names(cases), "check")) {
  stop("Rscript large.R long | wide | check [N D K [FOLDER]]", call. = FALSE)
}
on_gpu <- fsknn:::backend_facts()$cuda$usable
print(knn_backends())
say(R.version.string, ", fsknn ", version_of("fsknn"), ", ", format(Sys.Date()))
if (case == "check") {
  # Enough points for a filter on GPUs.
  run_case("long", 5000, 700, 20)
  run_case("wide", 6000, 60, 10)
} else {
  run_case(
    case, word(2, cases[[case]]$n), word(3, cases[[case]]$d),
    word(4, cases[[case]]$k), word(5, tempfile("shards-"))
  )
}

# How long does a search by blocks take, beside a complete one with the same
# number of neighbours in all?
#
#   Rscript inst/bench/blocks.R [--backend=cuda] [--seconds=N] [N ...]
#
# with the package installed; N: numbers of points (100,000 and 400,000). README.md
# beside this file says what is measured and how.

library(fsknn)

arguments <- commandArgs(TRUE)
option_value <- function(name, default) {
  pattern <- paste0("^--", name, "=")
  given <- sub(pattern, "", grep(pattern, arguments, value = TRUE))
  c(given, default)[[1]]
}
backend <- option_value("backend", "cuda")
most_seconds <- as.numeric(option_value("seconds", "Inf"))
sizes <- as.integer(grep("^[0-9]", arguments, value = TRUE))
if (length(sizes) == 0) {
  sizes <- c(100000L, 400000L)
}
started <- Sys.time()
time_left <- function() {
  most_seconds - as.double(Sys.time() - started, units = "secs")
}

# Rows of 32 latent factors and noise.
simulated <- function(n, d) {
  set.seed(1)
  factors <- matrix(rnorm(n * 32), n)
  factors %*% matrix(rnorm(32 * d), 32) + rnorm(n * d)
}

# Medians of the whole call and of the device.
timed <- function(search, times = 3) {
  search()
  runs <- vapply(seq_len(times), function(i) {
    gc(FALSE)
    call <- system.time(search(), gcFirst = FALSE)[["elapsed"]]
    c(call, unname(knn_stats()$seconds["device"]))
  }, c(0, 0))
  apply(runs, 1, stats::median)
}

# Blocks alike, or each half of what those before it left.
draw_blocks <- function(n, count, uneven, seed) {
  set.seed(seed)
  if (!uneven) {
    return(sample(rep_len(seq_len(count), n)))
  }
  share <- 0.5^seq_len(count)
  sizes <- pmax(1000, floor(n * share))
  sizes[[1]] <- n - sum(sizes[-1])
  sample(rep(seq_len(count), sizes))
}

devices <- if (backend == "cuda") 1
cases <- data.frame(
  blocks = c(2, 4, 10, 40, 4, 10), k = c(10, 5, 2, 1, 5, 2),
  uneven = c(FALSE, FALSE, FALSE, FALSE, TRUE, TRUE)
)
for (n in sizes) {
  x <- simulated(n, 295)
  for (at in seq_len(nrow(cases))) {
    count <- cases$blocks[[at]]
    k <- cases$k[[at]]
    if (time_left() < 0) {
      next
    }
    block <- draw_blocks(n, count, cases$uneven[[at]], at)
    for (verb in c("knn_search", "knn_graph")) {
      ask <- function(...) {
        get(verb)(x, ..., backend = backend, devices = devices)
      }
      whole <- timed(function() ask(k * count))
      for (between in list(FALSE, TRUE)) {
        lists <- count - if (between) 1 else 0
        other <- if (between) timed(function() ask(k * lists)) else whole
        by_block <- timed(function() ask(k, block = block, between = between))
        cat(sprintf(
          paste(
            "%-10s n = %6d, %2d %s blocks, k = %2d, between = %-5s:",
            "call %.3f s beside %.3f s, %.2f times;",
            "device %.4f s beside %.4f s, %.2f times\n"
          ),
          verb, n, count, if (cases$uneven[[at]]) "uneven" else "even  ", k,
          between, by_block[[1]], other[[1]],
          by_block[[1]] / other[[1]], by_block[[2]], other[[2]],
          by_block[[2]] / other[[2]]
        ))
        flush(stdout())
      }
    }
  }
}

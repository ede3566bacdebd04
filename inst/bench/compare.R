# Is one installed version of the package slower than another?
#
#   Rscript inst/bench/compare.R OLD NEW cpu|cuda [--rounds=N] [--repeats=N]
#     [--quick] [--file=CSV]
#
# OLD and NEW are libraries, folders that R CMD INSTALL --library= wrote to.
# Each round measures OLD, NEW and OLD once more, each in a session of its own,
# in an order that rotates from round to round; OLD over itself is the noise of
# the machine. Printed are medians over all rounds, NEW over OLD and OLD over
# itself. With "cuda" seconds are those of the device where a search reports
# them, else those of the call.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))

is_session <- identical(word(1), "session")
backend <- match.arg(word(3), c("cpu", "cuda"))
one_device <- if (backend == "cuda") 1L

# --- One session: all cases of one version ------------------------------------

graph <- function(k, metric = "pearson") {
  function(x) {
    fsknn::knn_graph(x, k, metric, backend = backend, devices = one_device)
  }
}
queries <- function(x) {
  fsknn::knn_query(
    x, x[seq_len(2000), ], 20, backend = backend, devices = one_device
  )
}
within <- function(x) {
  fsknn::threshold_graph(x, 0.3, backend = backend, devices = one_device)
}
case <- function(name, search, n, d = 295, change = identity) {
  list(
    name = paste0(name, ", n = ", n), search = search,
    data = function() change(simulated(n, d))
  )
}

cases_of <- list(
  cpu = function() {
    c(
      lapply(c(5000, 10000, if (!flag("quick")) 24158), function(n) {
        case("graph", graph(20), n)
      }),
      list(
        case("euclidean", graph(20, "euclidean"), 5000),
        case("manhattan", graph(20, "manhattan"), 5000),
        case("2000 queries", queries, 10000),
        case("within, r >= 0.3", within, 10000)
      )
    )
  },
  cuda = function() {
    sizes <- c(24158, 1e5, if (!flag("quick")) c(384126, 1533876))
    metrics <- c("manhattan", "chebyshev", "euclidean")
    c(
      lapply(sizes, function(n) case("graph", graph(20), n)),
      lapply(c(1, 128, 1024), function(k) {
        case(paste("k =", k), graph(k), 1e5)
      }),
      lapply(metrics, function(metric) case(metric, graph(20, metric), 1e5)),
      lapply(c(8, 1024), function(d) {
        case(paste("d =", d), graph(20), 1e5, d)
      }),
      list(
        case(
          "proportional", graph(20, "proportional"), 1e5,
          change = function(x) exp(x / 8)
        ),
        case("2000 queries", queries, 1e5),
        case("within, r >= 0.3", within, 24158)
      )
    )
  }
)

if (is_session) {
  # session LIBRARY BACKEND
  .libPaths(c(word(2), .libPaths()))
  loadNamespace("fsknn", lib.loc = word(2))
  for (case in cases_of[[backend]]()) {
    x <- case$data()
    invisible(case$search(x))
    seconds <- vapply(seq_len(option("repeats", 5)), function(i) {
      gc(FALSE)
      call <- system.time(case$search(x), gcFirst = FALSE)[["elapsed"]]
      device <- fsknn::knn_stats()$seconds[["device"]]
      if (backend == "cuda" && isTRUE(device > 0)) device else call
    }, 0)
    cat("case", case$name, paste(seconds, collapse = "\t"), sep = "\t")
    cat("\n")
    rm(x)
  }
  quit(status = 0)
}

# --- All sessions -------------------------------------------------------------

# The sessions find what is compiled here.
compile("tools.cpp")
Sys.setenv(FSKNN_BENCH_BUILD = tempdir())
rounds <- option("rounds", 5)
versions <- c(old = word(1), new = word(2), again = word(1))
runs <- NULL
for (round in seq_len(rounds)) {
  for (who in names(versions)[(seq_along(versions) + round) %% 3 + 1]) {
    arguments <- c(script, "session", versions[[who]], backend, given_options)
    printed <- system2(rscript, shQuote(arguments), stdout = TRUE)
    for (line in strsplit(grep("^case\t", printed, value = TRUE), "\t")) {
      runs <- rbind(runs, data.frame(
        case = line[[2]], who = who, round = round,
        seconds = as.numeric(line[-(1:2)])
      ))
    }
  }
  say("round ", round, " of ", rounds)
}
middle <- tapply(runs$seconds, runs[c("case", "who")], stats::median)
lowest <- tapply(runs$seconds, runs[c("case", "who")], min)
table <- data.frame(
  case = rownames(middle), old = middle[, "old"], new = middle[, "new"],
  new_over_old = middle[, "new"] / (middle[, "old"] + middle[, "again"]) * 2,
  old_over_itself = middle[, "again"] / middle[, "old"],
  lowest_new_over_old =
    lowest[, "new"] / pmin(lowest[, "old"], lowest[, "again"])
)
options(width = 150)
show(format(table[match(unique(runs$case), table$case), ], digits = 3))
file <- option("file")
if (!is.null(file)) utils::write.csv(runs, file, row.names = FALSE)

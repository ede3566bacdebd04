# Is one installed version of the package slower than another?
#
#   Rscript inst/bench/compare.R OLD NEW cpu|cuda [--rounds=N] [--repeats=N]
#     [--quick] [--file=CSV]
#
# OLD and NEW are libraries, folders that R CMD INSTALL --library= wrote to. Each
# round measures OLD, NEW and OLD once more, each in a session of its own, in an
# order that turns from round to round; OLD against itself is what the machine's
# noise makes of no difference at all. Printed are medians over all rounds, NEW
# over OLD and OLD over itself. With "cuda" seconds are those of the device
# where a search keeps them, else those of the call.

arguments <- commandArgs(TRUE)
given <- grep("^--", arguments, value = TRUE)
plain <- setdiff(arguments, given)
value_of <- function(name, default) {
  found <- sub("^--[^=]*=", "", grep(paste0("^--", name, "="), given, value = TRUE))
  if (length(found)) found[[1]] else default
}
quick <- "--quick" %in% given
repeats <- as.integer(value_of("repeats", "5"))
script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))[[1]]

# --- One session: all cases of one version ------------------------------------

simulated <- function(n, d) {
  .Call(
    "bench_simulate", as.integer(n), as.integer(d), 64L, 1L,
    parallel::detectCores(), PACKAGE = "gpu_tools"
  )
}

# name, then a function that makes the data, then one that searches them.
cases_of <- function(backend) {
  graph <- function(k, metric = "pearson") {
    function(x) {
      fsknn::knn_graph(x, k, metric, backend = backend, devices = one_device)
    }
  }
  one_device <- if (backend == "cuda") 1L
  queries <- function(x) {
    fsknn::knn_query(
      x, x[seq_len(2000), ], 20, backend = backend, devices = one_device
    )
  }
  threshold <- function(at) {
    function(x) {
      fsknn::threshold_graph(x, at, backend = backend, devices = one_device)
    }
  }
  if (backend == "cpu") {
    return(c(
      lapply(c(5000, 10000, if (!quick) 24158), function(n) {
        list(paste("graph, n =", n), function() simulated(n, 295), graph(20))
      }),
      list(
        list("euclidean, n = 5000", function() simulated(5000, 295), graph(20, "euclidean")),
        list("manhattan, n = 5000", function() simulated(5000, 295), graph(20, "manhattan")),
        list("queries, 2000 of 10000", function() simulated(10000, 295), queries),
        list("within, n = 10000, r >= 0.3", function() simulated(10000, 295), threshold(0.3))
      )
    ))
  }
  sizes <- c(24158, 100000, if (!quick) c(384126, 1533876))
  of_100000 <- function(words, search, d = 295, change = identity) {
    list(
      paste0("n = 100000, ", words), function() change(simulated(100000, d)), search
    )
  }
  c(
    lapply(sizes, function(n) {
      list(paste("graph, n =", n), function() simulated(n, 295), graph(20))
    }),
    list(
      of_100000("k = 1", graph(1)),
      of_100000("k = 128", graph(128)),
      of_100000("k = 1024", graph(1024)),
      of_100000("manhattan", graph(20, "manhattan")),
      of_100000("proportional", graph(20, "proportional"), change = function(x) exp(x / 8)),
      of_100000("chebyshev", graph(20, "chebyshev")),
      of_100000("euclidean", graph(20, "euclidean")),
      of_100000("d = 8", graph(20), 8),
      of_100000("d = 1024", graph(20), 1024),
      of_100000("2000 queries", queries),
      list("within, n = 24158, r >= 0.3", function() simulated(24158, 295), threshold(0.3))
    )
  )
}

if (length(plain) > 0 && plain[[1]] == "session") {
  # session LIBRARY BACKEND SHARED_OBJECT
  .libPaths(c(plain[[2]], .libPaths()))
  loadNamespace("fsknn", lib.loc = plain[[2]])
  dyn.load(plain[[4]])
  made <- NULL
  for (case in cases_of(plain[[3]])) {
    x <- case[[2]]()
    invisible(case[[3]](x))
    seconds <- vapply(seq_len(repeats), function(i) {
      gc(FALSE)
      call <- system.time(case[[3]](x), gcFirst = FALSE)[["elapsed"]]
      device <- fsknn::knn_stats()$seconds[["device"]]
      if (plain[[3]] == "cuda" && isTRUE(device > 0)) device else call
    }, 0)
    cat("case\t", case[[1]], "\t", paste(seconds, collapse = "\t"), "\n", sep = "")
    rm(x)
  }
  quit(status = 0)
}

# --- All sessions -----------------------------------------------------------------

stopifnot(
  "Two libraries and a backend are needed." = length(plain) == 3,
  "Backend cpu or cuda." = plain[[3]] %in% c("cpu", "cuda")
)
rounds <- as.integer(value_of("rounds", "5"))
build <- tempfile("bench")
dir.create(build)
invisible(file.copy(file.path(dirname(normalizePath(script)), "gpu_tools.cpp"), build))
writeLines(
  c("PKG_CXXFLAGS = $(SHLIB_OPENMP_CXXFLAGS) -O3", "PKG_LIBS = $(SHLIB_OPENMP_CXXFLAGS)"),
  file.path(build, "Makevars")
)
old_folder <- setwd(build)
invisible(system2(
  file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "gpu_tools.cpp"),
  stdout = TRUE, stderr = TRUE
))
setwd(old_folder)

versions <- c(old = plain[[1]], new = plain[[2]], again = plain[[1]])
runs <- NULL
for (round in seq_len(rounds)) {
  for (who in names(versions)[(seq_along(versions) + round) %% 3 + 1]) {
    said <- system2(
      file.path(R.home("bin"), "Rscript"),
      c(
        shQuote(script), "session", shQuote(versions[[who]]), plain[[3]],
        shQuote(file.path(build, "gpu_tools.so")), given
      ),
      stdout = TRUE
    )
    for (line in strsplit(grep("^case\t", said, value = TRUE), "\t")) {
      runs <- rbind(runs, data.frame(
        case = line[[2]], who = who, round = round,
        seconds = as.numeric(line[-(1:2)])
      ))
    }
  }
  message("round ", round, " of ", rounds)
}
middle <- tapply(runs$seconds, runs[c("case", "who")], median)
lowest <- tapply(runs$seconds, runs[c("case", "who")], min)
table <- data.frame(
  case = rownames(middle), old = middle[, "old"], new = middle[, "new"],
  new_over_old = middle[, "new"] / (middle[, "old"] + middle[, "again"]) * 2,
  old_over_itself = middle[, "again"] / middle[, "old"],
  lowest_new_over_old = lowest[, "new"] / pmin(lowest[, "old"], lowest[, "again"])
)
table <- table[match(unique(runs$case), table$case), ]
options(width = 150)
print(format(table, digits = 3), row.names = FALSE)
file <- value_of("file", "")
if (nzchar(file)) {
  utils::write.csv(runs, file, row.names = FALSE)
}

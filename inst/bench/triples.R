# How long do all triples of Proportional Similarity take, and pairs at the size
# of CoMet's own data: all of them computed, and above a threshold pruned by
# pairs?
#   Rscript inst/bench/triples.R cpu [N ...]          one thread; CPU seconds
#   Rscript inst/bench/triples.R gpu SECTION
# SECTION is one of
#   node     2,880 x 20,000, CoMet's node: all triples, and pruned
#   genotypes  the same size of 0, 1 and 2, all triples, by bits; and a hundred
#            times them, by other numbers
#   study    24,158 x 295 above the threshold that keeps a million triples:
#            pruned; one of 20 stages in full, beside the same stage pruned
#   pairs    189,625 x 385: threshold_graph() above the similarity that keeps
#            1e-5 of the pairs: the whole call, in memory and into a file
#   poplar   189,625 x 385, triples above the threshold that keeps 1e7: pruned,
#            part by part of 200 while there is time; an estimate of the rest
# Options: --folder=DIR puts the rows into DIR/triples-cpu.csv or
# triples-gpu.csv, in place of older ones of that section; --seconds=110 limits
# all of it, data and the search for thresholds included (a call that has begun
# is finished); --threads=T; and to try a section at a small size --backend=cpu,
# --points=N, --features=D, --keep=TRIPLES (or pairs). The data are lognormal
# rows of 64 latent factors, each with most of one of them, from a fixed seed;
# with "cpu" also the study's 500 probes where that folder exists
# (FSKNN_SHARED).

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

where <- word(1, "")
section <- if (where == "gpu") words[2] else "cpu"
sections <- c("cpu", "node", "genotypes", "study", "pairs", "poplar")
if (!section %in% sections || !where %in% c("cpu", "gpu")) {
  stop("Rscript triples.R cpu [N ...], or gpu and one of node, genotypes, ",
       "study, pairs, poplar.")
}
folder <- check_folder(option("folder"))
limit <- option("seconds", 110)
backend <- option("backend", if (where == "gpu") "cuda" else "cpu")
threads <- as.integer(option(
  "threads", if (where == "cpu") 1 else fsknn:::default_num_threads()
))
machine <- if (backend == "cuda") {
  knn_backends()$devices$cuda$name[[1]]
} else {
  paste0(cpu_name(), ", ", threads, if (threads == 1) " thread" else " threads")
}
rows <- NULL
# A row of the table, printed and stored at once. Rows of other sections stay,
# and of "cpu" those of other sizes.
put <- function(row) {
  row <- data.frame(section = section, row, machine = machine,
                    date = format(Sys.Date()))
  measured <- intersect(names(row), c(
    "prepare", "seconds", "cpu_seconds", "slowest", "per_second", "of_limit"
  ))
  row[measured] <- lapply(row[measured], signif, 4)
  rows <<- rbind(rows, row)
  shown <- Filter(Negate(is.na), row[setdiff(
    names(row), c("section", "machine", "date")
  )])
  shown <- vapply(shown, format, "", digits = 4)
  say(paste(names(shown), shown, collapse = "; "))
  store_rows(folder, paste0("triples-", where, ".csv"), rows, function(rows) {
    if (where == "cpu") paste(rows$what, rows$n) else rows$section
  })
}

make_points <- function(n, d) {
  set.seed(2018)
  factors <- matrix(stats::rnorm(64 * d), 64)
  loadings <- matrix(stats::rnorm(n * 64) / 24, n)
  own <- cbind(seq_len(n), seq_len(n) %% 64 + 1)
  loadings[own] <- loadings[own] + 1.5
  exp(loadings %*% factors + 0.3 * stats::rnorm(n * d))
}
make_section <- function(n, d) {
  n <- option("points", n)
  d <- option("features", d)
  x <- make_points(n, d)
  say("data: ", n, " x ", d)
  x
}

# The core itself, which reports the work done.
core <- function(name, ...) {
  found <- utils::getFromNamespace(name, "fsknn")(...)
  if (!is.null(found$failure)) {
    stop(found$message)
  }
  found
}
request <- fsknn:::new_request(NULL, fsknn:::check_options(list(
  metric = "proportional", backend = backend, num_threads = threads,
  devices = if (backend == "cuda") 1L
)))

# One search, or a part of one that is opened: what was found, and its row.
open_search <- function(x, least, path, stage = c(1, 1)) {
  gc()
  times <- system.time(opened <- core(
    "cpp_open_triples", x, request, least, integer(), stage, path
  ))
  list(handle = opened$handle, prepare = times, plan = opened$plan, x = x,
       least = least, path = path, stage = stage)
}
find_part <- function(search, part = 1, parts = 1) {
  times <- system.time(gcFirst = FALSE, found <- core(
    "cpp_find_triples", search$handle, part, parts, 1e8, FALSE, FALSE,
    request
  ))
  found$times <- times
  found
}
close_search <- function(search) {
  getFromNamespace("cpp_close_triples", "fsknn")(search$handle)
}
row_of <- function(search, found, what) {
  stage <- search$stage
  data.frame(
    what = what, n = nrow(search$x), d = ncol(search$x), least = search$least,
    path = if (found$stats$by_pairs) "pairs" else "all",
    stage = paste(stage, collapse = " of "),
    prepare = search$prepare[["elapsed"]], seconds = found$times[["elapsed"]],
    per_second = choose(nrow(search$x), 3) / stage[[2]] * ncol(search$x) /
      found$times[["elapsed"]],
    found = found$stats$triples, candidates = found$stats$candidates,
    planned_looked_at = search$plan$comparisons,
    looked_at = found$stats$comparisons, checksum = found$checksum
  )
}
search_once <- function(x, least, path, what, stage = c(1, 1)) {
  search <- open_search(x, least, path, stage)
  on.exit(close_search(search))
  found <- find_part(search)
  found$row <- row_of(search, found, what)
  found
}

# The threshold that so many triples reach (of some stages: their share of
# them), by searches that come near it from above: steps by how the last counts
# grew.
threshold_for <- function(x, wanted, stages = list(c(1, 1)), from = 0.97) {
  least <- from
  step <- 0.02
  before <- 0
  while (least > 0.76 && time_left(limit) > 0) {
    found <- lapply(stages, function(stage) {
      search_once(x, least, "pairs", "threshold", stage)
    })
    similarity <- unlist(lapply(found, `[[`, "similarity"))
    seconds <- sum(vapply(found, function(one) one$times[["elapsed"]], 1))
    count <- length(similarity)
    say("at least ", format(least, digits = 4), ": ", count, " triples; ",
         format(seconds, digits = 3), " s")
    if (count >= wanted) {
      return(sort(similarity, decreasing = TRUE)[[wanted]])
    }
    if (before > 10 && count > before) {
      growth <- log(count / before) / step
      step <- min(0.02, max(0.002, log(1.1 * wanted / count) / growth))
    }
    before <- count
    least <- least - step
  }
  stop("no threshold was found in time: too few triples, or --seconds")
}

warm_up <- function() {
  # CUDA starts, and memory is pinned, before anything is timed.
  search_once(make_points(300, 295), 0.9, "auto", "warm")
  say("ready, ", backend, ", ", threads, " threads, load ", machine_load())
}

bench_node <- function() {
  x <- make_section(2880, 20000)
  for (path in c("all", "all", "pairs", "pairs")) {
    put(search_once(x, 0.8, path, "whole")$row)
  }
}

# Of two bits each; and a hundred times them, which are no small numbers.
bench_genotypes <- function() {
  n <- option("points", 2880)
  d <- option("features", 20000)
  set.seed(17)
  x <- matrix(
    as.double(sample(0:2, n * d, replace = TRUE, c(0.6, 0.3, 0.1))), n
  )
  say("data: ", n, " x ", d)
  for (by in c(1, 1, 1, 100)) {
    put(search_once(by * x, 0.463, "all", paste("times", by))$row)
  }
}

bench_study <- function() {
  x <- make_section(24158, 295)
  least <- threshold_for(x, option("keep", 1e6))
  for (i in 1:3) put(search_once(x, least, "pairs", "whole")$row)
  stage <- c(1, option("stages", 20))
  for (path in c("pairs", "all")) {
    put(search_once(x, least, path, "stage", stage)$row)
  }
  same <- rows$checksum[[nrow(rows)]] == rows$checksum[[nrow(rows) - 1]]
  say("checksums of the stage are ", if (same) "the same" else "NOT THE SAME")
}

# Of a sample of the points the similarity that keeps that share of the pairs.
similarity_for <- function(x, share) {
  sampled <- x[seq_len(min(nrow(x), 12000)), ]
  breaks <- seq(0, 1, by = 1e-4)
  counts <- pair_histogram(
    sampled, breaks, "proportional", value = "similarity", backend = backend,
    num_threads = threads, progress = FALSE
  )
  above <- rev(cumsum(rev(counts$counts)))
  breaks[[match(TRUE, above <= share * choose(nrow(sampled), 2))]]
}

bench_pairs <- function() {
  x <- make_section(189625, 385)
  share <- option("keep", 1e-5)
  share <- if (share >= 1) share / choose(nrow(x), 2) else share
  least <- similarity_for(x, share)
  say("at least ", least, " by a sample")
  all <- choose(nrow(x), 2) * ncol(x)
  file <- tempfile(fileext = ".csv")
  for (what in c("first", "memory", "memory", "memory", "file")) {
    if (time_left(limit) < 0) break
    gc()
    times <- system.time(found <- threshold_graph(
      x, least, "proportional", backend = backend, progress = FALSE,
      num_threads = threads, devices = if (backend == "cuda") 1L,
      file = if (what == "file") file
    ))
    count <- if (what == "file") found$count else nrow(found)
    put(data.frame(
      what = what, n = nrow(x), d = ncol(x), least = least, path = NA,
      stage = NA, prepare = NA, seconds = times[["elapsed"]],
      per_second = all / times[["elapsed"]], found = count, candidates = NA,
      planned_looked_at = NA, looked_at = NA, checksum = NA
    ))
    say("share of the pairs: ", format(count / choose(nrow(x), 2), digits = 3))
  }
}

bench_poplar <- function() {
  x <- make_section(189625, 385)
  keep <- option("keep", 1e7)
  # Stages have unequal shares of the triples: of 200 some from all over.
  stages <- lapply(seq(5, 195, by = 10), c, 200)
  least <- threshold_for(x, ceiling(keep * length(stages) / 200), stages)
  say("at least ", format(least, digits = 6), " keeps about ", keep)
  search <- open_search(x, least, "pairs")
  on.exit(close_search(search))
  say("prepared in ", format(search$prepare[["elapsed"]], digits = 3),
       " s; of a sample's pairs ", format(100 * search$plan$pairs, digits = 3),
       "% can be in such a triple")
  parts <- 200
  done <- 0
  seconds <- 0
  sums <- c(triples = 0, candidates = 0, comparisons = 0)
  checksums <- character()
  while (done < parts &&
           (done == 0 || time_left(limit) > 1.5 * seconds / done)) {
    done <- done + 1
    found <- find_part(search, done, parts)
    seconds <- seconds + found$times[["elapsed"]]
    sums <- sums + unlist(found$stats[names(sums)])
    checksums <- c(checksums, found$checksum)
    if (done %in% c(1, 2, 5) || done %% 10 == 0) {
      say(done, " of ", parts, " parts, ", format(seconds, digits = 4), " s, ",
           sums[["triples"]], " triples; the rest by the mean: ",
           format(seconds / done * (parts - done), digits = 4), " s")
    }
  }
  found$times[["elapsed"]] <- seconds
  found$stats[names(sums)] <- as.list(sums)
  found$checksum <- fsknn:::add_checksums(checksums)
  row <- row_of(search, found, paste(done, "of", parts, "parts"))
  row$per_second <- row$per_second * done / parts
  put(row)
  say("all of it: ", format(seconds * parts / done, digits = 4), " s and ",
       format(sums[["triples"]] * parts / done, digits = 4), " triples, ",
       if (done == parts) "measured" else "by the mean of the parts done")
}

# --- CPU ----------------------------------------------------------------------

# The study's 500 probes on the natural scale: its ratios.
study_probes <- function() {
  shared <- Sys.getenv("FSKNN_SHARED", "shared")
  file <- file.path(shared, "data", "nki295", "nki295_small.rds")
  if (!file.exists(file)) return(NULL)
  study <- readRDS(file)
  10^(study$expr / study$scale)
}

# The median of up to five runs: of one alone where it takes long.
time_search <- function(x, least, path, what, rate) {
  runs <- list()
  while (length(runs) < 5 && sum(vapply(runs, `[[`, 1, 1)) < 10) {
    search <- open_search(x, least, path)
    found <- find_part(search)
    close_search(search)
    runs[[length(runs) + 1]] <- c(
      processor_seconds(search$prepare) + processor_seconds(found$times)
    )
  }
  seconds <- unlist(runs)
  put(data.frame(
    what = what, n = nrow(x), d = ncol(x), least = least,
    path = if (found$stats$by_pairs) "pairs" else "all", asked = path,
    runs = length(seconds), cpu_seconds = stats::median(seconds),
    slowest = max(seconds),
    per_second = choose(nrow(x), 3) * ncol(x) / stats::median(seconds),
    of_limit = if (found$stats$by_pairs) {
      NA_real_
    } else {
      found$stats$comparisons / stats::median(seconds) / rate
    },
    found = found$stats$triples, candidates = found$stats$candidates,
    load = machine_load(), checksum = found$checksum
  ))
}

bench_cpu <- function() {
  rate <- vector_rate(threads)
  sizes <- as.integer(words[-1])
  if (length(sizes) == 0) sizes <- c(500, 1000, 2000, 5000, 10000, 24158)
  study <- study_probes()
  # What takes 20 seconds or more by the limit is not computed in full; and
  # of many points those above a low threshold take long by pairs, too.
  searches <- function(x, what) {
    thresholds <- c(if (nrow(x) <= 5000) 0.8, 0.9)
    if (choose(nrow(x), 3) * ncol(x) / rate < 20) {
      for (least in c(0.7, 0.8)) time_search(x, least, "all", what, rate)
    }
    for (path in c("pairs", "auto")) {
      for (least in thresholds) time_search(x, least, path, what, rate)
    }
  }
  if (!is.null(study) && length(words) == 1) {
    searches(study, "study's 500 probes")
  }
  for (n in sizes) {
    searches(make_points(n, option("features", 295)), "simulated")
    if (time_left(limit) < 0) break
  }
}

if (where == "gpu") warm_up()
switch(
  section, node = bench_node(), genotypes = bench_genotypes(),
  study = bench_study(), pairs = bench_pairs(), poplar = bench_poplar(),
  cpu = bench_cpu()
)
say("done")

# Real data outside the package. The facts were computed with cor() in plain R.
# A hash is that of the n x k matrix of neighbours, row-major, counted from 0,
# as little-endian int32.

sha256_of_index <- function(index) {
  file <- tempfile()
  on.exit(unlink(file))
  writeBin(as.vector(t(index - 1L)), file, size = 4, endian = "little")
  program <- Sys.which("sha256sum")
  skip_if(!nzchar(program), "There is no program sha256sum")
  sub(" .*", "", system2(program, shQuote(file), stdout = TRUE))
}

small_expression <- function() {
  data <- read_nki295("nki295_small.rds")
  data$expr / data$scale
}

complete_expression <- function() {
  data <- read_nki295("vantveer78_full.rds")
  x <- data$expr / data$scale
  x[!apply(is.na(x), 1, any), ]
}

expect_facts <- function(x, backend, hash_20, hash_1, sums) {
  found <- knn_search(x, 20, backend = backend, num_threads = 2)
  expect_identical(sha256_of_index(found$index), hash_20)
  expect_identical(sha256_of_index(found$index[, 1, drop = FALSE]), hash_1)
  expect_equal(sum(found$distance[, 1]), sums[[1]], tolerance = 1e-12)
  expect_equal(sum(found$distance[, 20]), sums[[2]], tolerance = 1e-12)
  expect_equal(sum(found$distance), sums[[3]], tolerance = 1e-12)
}

test_that("500 probes of 295 patients have the known neighbours", {
  x <- small_expression()
  for (backend in backends_here()) {
    expect_facts(
      x, backend,
      "67f2139b95e4b22c975112700ba0ef46696361d327f2914b9f5f56c66b007ef9",
      "48773d9a61a661add394a8d54c700e190ca69241774062c87777d96c172da4f9",
      c(203.7731434154, 329.9086597904, 5858.9466288421)
    )
  }
})

test_that("13,547 probes of 78 patients have the known neighbours", {
  x <- complete_expression()
  expect_identical(nrow(x), 13547L)
  for (backend in backends_here()) {
    expect_facts(
      x, backend,
      "396765fa31fa370f113e84f62ceeb7b14baf72860fe6368871376a87bff52eda",
      "cd30e5624a0aa8694c515db2b6dabfcdbe7b23308da232b53931abdcfac2d8fb",
      c(3660.8226261948, 5504.8809632217, 100297.8370145107)
    )
  }
})

test_that("the graph of the 500 probes has the known edges and components", {
  edges <- knn_graph(unname(small_expression()), 20, num_threads = 2)
  expect_identical(nrow(edges), 10000L)
  union <- as_igraph(edges, mode = "union")
  expect_equal(igraph::ecount(union), 7625)
  expect_equal(igraph::count_components(union), 1)
  nearest <- as_igraph(edges[edges$rank == 1, ], mode = "union")
  expect_equal(igraph::ecount(nearest), 428)
  expect_equal(igraph::count_components(nearest), 72)
})

test_that("the clinical outcome has the known neighbours", {
  x <- small_expression()
  outcome <- read_nki295("nki295_small.rds")$clinical$TIMErecurrence
  nearest <- c(
    67, 195, 322, 19, 423, 250, 341, 240, 331, 133, 213, 2, 283, 201, 194, 46,
    237, 242, 147, 349
  )
  for (backend in backends_here()) {
    asked <- knn_query(x, rbind(outcome), 20, backend = backend)
    expect_equal(asked$index[1, ] - 1, nearest)
    appended <- knn_search(rbind(x, outcome), 20, backend = backend)
    expect_equal(appended$index[501, ] - 1, nearest)
    expect_equal(appended$distance[[501, 1]], 1 - 0.2600, tolerance = 1e-4)
  }
})

test_that("every metric agrees with brute force on real data", {
  x <- small_expression()
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    expect_same_bits(
      knn_search(x, 20, metric, sign, backend = backend, num_threads = 2),
      brute_force(x, k = 20, metric = metric, sign = sign),
      label = paste(metric, sign, backend)
    )
  }, few_signs())
})

# Returns the outcome of the 78 patients of the sister study, as the study uses
# it.
outcome_of_78 <- function() {
  data <- read_nki295("vantveer78_full.rds")
  x <- data$expr / data$scale
  rownames(x) <- data$probe
  list(x = x, years = data$clinical$months / 12,
       relapsed = data$clinical$metastasis == 1)
}

with_outcome <- function(x, years) {
  add_phenotype(x, years, "clinical metastasis")
}

test_that("the outcome's lists of 20 nearest are the known ones", {
  of_78 <- outcome_of_78()
  known <- utils::read.csv(
    file.path(nki295_folder(), "nearest20.csv"), stringsAsFactors = FALSE
  )
  complete <- stats::complete.cases(of_78$x)
  imputed <- of_78$x[rowSums(!is.na(of_78$x)) > 0, ]
  gaps <- which(is.na(imputed), arr.ind = TRUE)
  imputed[gaps] <- rowMeans(imputed, na.rm = TRUE)[gaps[, 1]]
  small <- read_nki295("nki295_small.rds")
  values <- small$expr / small$scale
  rownames(values) <- small$probe
  clinical <- small$clinical
  metastasis <- clinical$EVENTmeta == 1
  matrices <- list(
    "nki295_small TIMErecurrence" =
      with_outcome(values, clinical$TIMErecurrence),
    "nki295_small TIMEmeta_or_TIMEsurvival" = with_outcome(
      values, ifelse(metastasis, clinical$TIMEmeta, clinical$TIMEsurvival)
    ),
    "nki295_small TIMEmeta_events_only" = with_outcome(
      values[, metastasis], clinical$TIMEmeta[metastasis]
    ),
    "vantveer78_complete months_over_12_all78" =
      with_outcome(of_78$x[complete, ], of_78$years),
    "vantveer78_complete months_over_12_34_relapsed" = with_outcome(
      of_78$x[complete, of_78$relapsed], of_78$years[of_78$relapsed]
    ),
    "vantveer78_imputed months_over_12_all78" =
      with_outcome(imputed, of_78$years)
  )
  signs <- c(highest = "signed", lowest = "negative", abs = "absolute")
  for (name in names(matrices)) {
    for (list in names(signs)) {
      wanted <- known[
        paste(known$dataset, known$clinical) == name & known$list == list,
      ]
      expect_identical(nrow(wanted), 20L)
      found <- nearest_to(
        matrices[[name]], "clinical metastasis", 20, sign = signs[[list]]
      )
      expect_identical(found$index - 1L, wanted$row0, label = paste(name, list))
      expect_identical(found$name, wanted$probe)
      expect_equal(found$correlation, wanted$r, tolerance = 2e-10)
    }
  }
})

test_that("metafeatures of 876 probes have the known nearest of the outcome", {
  data <- read_nki295("vantveer78_876.rds")
  x <- data$expr / data$scale
  rownames(x) <- data$probe
  m <- with_outcome(metafeatures(x, "-"), data$clinical$months / 12)
  expect_identical(nrow(m), 384127L)
  for (backend in backends_here()) {
    high <- nearest_to(m, "clinical metastasis", 1, backend = backend)
    expect_identical(high$name, "U45975 - Contig53506")
    expect_equal(high$correlation, 0.5603702, tolerance = 1e-7)
    low <- nearest_to(
      m, "clinical metastasis", 1, sign = "negative", backend = backend
    )
    expect_identical(low$name, "Contig53506 - NM_020974")
    expect_equal(low$correlation, -0.5595153, tolerance = 1e-7)
    thousand <- nearest_to(
      m, "clinical metastasis", 1000, sign = "absolute", backend = backend
    )
    has_slc40a1 <- grepl("NM_014585", thousand$name, fixed = TRUE)
    expect_identical(c(sum(has_slc40a1[1:20]), sum(has_slc40a1)), c(0L, 3L))
  }
})

test_that("metafeatures of real rows with zeros equal their matrix", {
  data <- read_nki295("vantveer78_876.rds")
  x <- (data$expr / data$scale)[1:24, ]
  rownames(x) <- data$probe[1:24]
  m <- metafeatures(x)
  all <- as.matrix(m)
  skip <- which(apply(!is.finite(all), 1, any))
  expect_gt(length(skip), 0)
  for_all_metrics(function(metric, sign, backend) {
    facts <- fsknn:::metric_facts(metric)
    if (facts$non_negative || facts$levels > 0) {
      return()
    }
    suppressMessages(found <- knn_search(m, 5, metric, sign, backend = backend))
    expect_identical(attr(found, "left_out")$point, unname(skip))
    expect_same_bits(
      as_neighbours(found[c("index", "distance")]),
      brute_force(
        all, k = 5, metric = metric, sign = sign, skip = unname(skip)
      ),
      label = paste(metric, sign, backend)
    )
  }, few_signs())
})

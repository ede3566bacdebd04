# Test matrices. They come from a small generator (Park and Miller), which
# leaves the session's random numbers alone. So they do not depend on the
# version of R, either.
uniform_numbers <- function(count, seed = 1) {
  whole_numbers(count, seed) / 2147483647
}

# Returns numbers from 1 to 2^31 - 2, which are exact in double. Each is 16807
# times the one before, modulo 2^31 - 1; they are made in steps that double.
whole_numbers <- function(count, seed = 1) {
  modulus <- 2147483647
  times <- function(a, b) {
    ((a %/% 2^16 * b) %% modulus * 2^16 + a %% 2^16 * b) %% modulus
  }
  factor <- 16807
  numbers <- times(factor, seed * 7919 + 1)
  while (length(numbers) < count) {
    numbers <- c(numbers, times(factor, numbers))
    factor <- times(factor, factor)
  }
  numbers[seq_len(count)]
}

random_matrix <- function(num_points, num_features, seed = 1) {
  matrix(
    stats::qnorm(uniform_numbers(num_points * num_features, seed)),
    num_points, num_features
  )
}

# Makes whole numbers from 0 to `largest`, with at least two different ones in
# each row. They have many ties, and every row has a correlation.
small_integers <- function(num_points, num_features, largest = 3, seed = 1) {
  x <- floor((largest + 1) * uniform_numbers(num_points * num_features, seed))
  x <- matrix(x, num_points, num_features)
  if (num_features > 1) {
    constant <- apply(x, 1, function(row) max(row) == min(row))
    x[constant, 1] <- (x[constant, 1] + 1) %% (largest + 1)
  }
  # Rows of zeros are avoided, too.
  zero <- rowSums(x) == 0
  x[zero, 1] <- 1
  x
}

# Returns matrices, by name, on which fast arithmetic fails.
hard_matrices <- function() {
  base <- random_matrix(61, 13, seed = 3)
  near_ties <- function(gap) {
    # Each row differs from few others by `gap` in one entry.
    x <- base[rep(1:6, length.out = 61), ]
    at <- cbind(seq_len(61), rep_len(1:13, 61))
    x[at] <- x[at] * (1 + gap * seq_len(61))
    x
  }
  huge <- base
  huge[17, 5] <- 1e100
  list(
    "random" = base,
    "ties" = small_integers(61, 7),
    "duplicates" = base[rep(1:9, length.out = 61), ],
    "opposite rows" = rbind(base[1:30, ], -base[1:30, ], base[31, ]),
    "near-ties at 1e-7" = near_ties(1e-7),
    "near-ties at 1e-12" = near_ties(1e-12),
    "near-ties at 1e-15" = near_ties(1e-15),
    "one huge entry" = huge,
    "1e-300" = base * 1e-300,
    "1e300" = base * 1e300,
    "1e-300 beside 1e300" = base * rep_len(c(1e-300, 1, 1e300), 61),
    "subnormal" = round(base * 1000) * 2^-1074,
    "shifted by 1e9" = base + 1e9,
    "two features" = random_matrix(61, 2, seed = 4),
    "three features" = random_matrix(61, 3, seed = 5),
    "a row of zeros but one" = rbind(base, c(1, numeric(12)), c(numeric(12), 1))
  )
}

# Real data outside the package: breast-cancer microarrays (van 't Veer 2002,
# van de Vijver 2002). They are in a folder shared/data/nki295 above the tests,
# or in the folder that FSKNN_SHARED names.
nki295_folder <- function() {
  shared <- Sys.getenv("FSKNN_SHARED")
  candidates <- if (nzchar(shared)) shared
  above <- normalizePath(".")
  repeat {
    candidates <- c(candidates, file.path(above, "shared"))
    if (dirname(above) == above) {
      break
    }
    above <- dirname(above)
  }
  folders <- file.path(candidates, "data", "nki295")
  folders <- folders[dir.exists(folders)]
  if (length(folders) > 0) folders[[1]]
}

read_nki295 <- function(name) {
  folder <- nki295_folder()
  skip_if(
    is.null(folder),
    "The folder shared/data/nki295 is not here (see CONTRIBUTING.md)"
  )
  readRDS(file.path(folder, name))
}

# Removes the name of the container's element from an answer.
values_of <- function(answer) {
  if (inherits(answer, "fsknn_mst_knn")) {
    answer[c("edges", "tree")] <- lapply(answer[c("edges", "tree")], values_of)
  }
  attr(answer, "taken_from") <- NULL
  answer
}

expect_same_values <- function(actual, expected) {
  testthat::expect_identical(values_of(actual), values_of(expected))
}

# Replaces a share of the values by missing ones.
with_holes <- function(x, share, seed = 1) {
  withr::with_seed(seed, x[sample(length(x), share * length(x))] <- NA)
  x
}

unname_rows <- function(x) {
  rownames(x) <- NULL
  x
}

# What a diffusion map is made of.
near <- function(x, k) knn_search(x, k, metric = "euclidean", backend = "cpu")

# Few points with names, for metafeatures.
small <- function(num_rows = 7, num_columns = 9) {
  x <- random_matrix(num_rows, num_columns, seed = 31)
  dimnames(x) <- list(
    paste0("g", seq_len(num_rows)), paste0("s", seq_len(num_columns))
  )
  x
}

# Digests of answers. Those in digests.csv must never change.

# --- Matrices of whole numbers and powers of two, equal with every libm ------

# Sums of four whole numbers, times 2^-31, are nearly normal around 0.
bell_matrix <- function(num_points, num_features, seed) {
  four <- matrix(whole_numbers(4 * num_points * num_features, seed), nrow = 4)
  matrix((colSums(four) - 0x1p32) * 0x1p-31, num_points, num_features)
}

tied_matrix <- function(num_points, num_features, seed) {
  matrix(
    (whole_numbers(num_points * num_features, seed) %/% 4096) %% 4,
    num_points, num_features
  )
}

# Returns matrices by name. `queries` are rows of the same kind.
digest_matrices <- function() {
  bell <- bell_matrix(210, 19, seed = 101)
  copies <- bell[rep_len(1:31, 210), ] * rep_len(c(1, 1, -1), 210)
  huge <- bell
  huge[17, 5] <- 0x1p100
  list(
    generic = list(x = bell, queries = bell_matrix(40, 19, seed = 102)),
    ties = list(
      x = tied_matrix(180, 9, seed = 103),
      queries = tied_matrix(33, 9, seed = 104)
    ),
    duplicates = list(x = copies, queries = copies[c(200:210, 1:9), ]),
    scales = list(
      x = bell * rep_len(c(0x1p600, 1, 0x1p-700), 210),
      queries = bell[1:20, ] * 0x1p600
    ),
    "one-huge" = list(x = huge, queries = bell[1:20, ])
  )
}

# About every seventh value is missing, and nearly a whole row.
with_gaps <- function(x, seed) {
  x[(whole_numbers(length(x), seed) %/% 4096) %% 7 == 0] <- NA
  x[3, -(1:2)] <- NA
  x
}

# --- Answers as bytes --------------------------------------------------------

# An answer has some of these parts, in this order. Lists have a vector for each
# point, and their lengths count, too.
answer_parts <- c(
  "index", "from", "to", "second", "third", "rank", "distance", "correlation",
  "similarity", "membership", "triples"
)

whole_parts <- c(
  "index", "from", "to", "second", "third", "rank", "membership", "triples"
)

answer_bytes <- function(answer) {
  bytes <- lapply(intersect(answer_parts, names(answer)), function(part) {
    values <- answer[[part]]
    whole <- part %in% whole_parts
    c(
      if (is.list(values)) plain_bytes(lengths(values), TRUE),
      plain_bytes(if (is.list(values)) unlist(values) else values, whole)
    )
  })
  unlist(bytes)
}

# The bits of missing values are not defined, so they are replaced.
plain_bytes <- function(values, whole) {
  values <- if (whole) as.integer(values) else as.double(values)
  values[is.na(values)] <- if (whole) -1L else -1
  writeBin(values, raw(), endian = "little")
}

digest_of <- function(answer) {
  digest::digest(answer_bytes(answer), "sha256", serialize = FALSE)
}

# --- The table ---------------------------------------------------------------

# If FSKNN_WRITE_DIGESTS is "1", digests are written, not compared.
writes_digests <- function() {
  identical(Sys.getenv("FSKNN_WRITE_DIGESTS"), "1")
}

digest_file <- function() {
  testthat::test_path("digests.csv")
}

digest_table <- function() {
  table <- utils::read.csv(digest_file(), colClasses = "character")
  stats::setNames(table$sha256, table$key)
}

# Holds the digests found, by key.
digests_seen <- new.env(parent = emptyenv())

# `answers` is a list named by the keys of the cases.
expect_digests <- function(answers, label) {
  found <- vapply(answers, digest_of, "")
  known <- if (writes_digests()) {
    unlist(mget(names(found), digests_seen, ifnotfound = as.list(found)))
  } else {
    digest_table()[names(found)]
  }
  list2env(as.list(found), digests_seen)
  wrong <- names(found)[is.na(known) | known != found]
  testthat::expect(
    length(wrong) == 0,
    paste0(
      label, ": ", length(wrong), " of ", length(found),
      " answers have other bits than digests.csv says:\n",
      paste(utils::head(wrong, 20), collapse = "\n")
    )
  )
}

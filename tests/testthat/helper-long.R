# The long suite: FSKNN_LONG_TESTS=1, by `make test-long`. It has what takes long and
# repeats, with more cases, what other tests ask.
is_long <- function() {
  nzchar(Sys.getenv("FSKNN_LONG_TESTS"))
}

skip_unless_long <- function() {
  testthat::skip_if_not(is_long(), "FSKNN_LONG_TESTS is not set")
}

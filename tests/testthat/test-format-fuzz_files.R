test_that("readers stand whatever a file holds", {
  skip_on_cran()
  fuzzer <- new.env()
  sys.source(system.file("bench", "fuzz_files.R", package = "fsknn"), fuzzer)
  withr::local_preserve_seed()
  files <- if (is_long()) 20000 else 2000
  found <- fuzzer$fuzz_files(files, seed = 20000)
  expect_identical(found[["read"]] + found[["refused"]], files)
  expect_gt(found[["read"]], files / 10)
  expect_gt(found[["refused"]], files / 10)
  expect_lt(found[["slowest"]], 10)
})

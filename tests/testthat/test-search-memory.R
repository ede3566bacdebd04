test_that("free memory is the least of the machine's and the groups'", {
  folder <- withr::local_tempdir()
  meminfo <- file.path(folder, "meminfo")
  writeLines(c("MemTotal: 9 kB", "MemAvailable:    1000 kB"), meminfo)
  free <- function(...) fsknn:::free_memory(meminfo, ...)
  expect_identical(free(character()), 1024000)
  group <- file.path(folder, "group")
  dir.create(group)
  write <- function(name, ...) writeLines(c(...), file.path(group, name))
  write("memory.max", "max")
  write("memory.current", "100")
  expect_identical(free(group), 1024000)
  write("memory.max", "5000")
  expect_identical(free(group), 4900)
  # Cached files in memory may be dropped.
  write("memory.stat", "anon 5", "inactive_file 60", "active_file 7")
  expect_identical(free(group), 4960)
  write("memory.max", "10")
  write("memory.stat", "inactive_file 0")
  expect_identical(free(group), 0)
  expect_identical(fsknn:::free_memory("nowhere", character()), 2^32)
})

test_that("the groups looked at are the process's own and those above it", {
  mount <- withr::local_tempdir()
  dir.create(file.path(mount, "a", "b"), recursive = TRUE)
  own <- withr::local_tempfile()
  writeLines("0::/a/b", own)
  groups <- fsknn:::memory_groups(mount, own)
  expect_setequal(
    normalizePath(groups),
    normalizePath(file.path(mount, c("", "a", "a/b")))
  )
})

test_that("max_memory is bytes, or a string of them", {
  check <- fsknn:::check_max_memory
  expect_identical(check("2 GB"), 2e9)
  expect_identical(check(Inf), Inf)
  expect_null(check(NULL))
  withr::local_options(fsknn.max_memory = "1 KiB")
  expect_identical(check(NULL), 1024)
  x <- random_matrix(20, 4)
  expect_messages({
    knn_search(x, 2, max_memory = "much")
    knn_search(x, 2, max_memory = 0)
  })
})

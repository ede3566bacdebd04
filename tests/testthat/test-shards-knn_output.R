# The folder of an answer must be free, and belongs to one search.

test_that("an output says what it is", {
  local_folder()
  expect_snapshot({
    knn_output("out")
    knn_output("out", "bin", shard_rows = 1000)
    knn_output("out", "bin", shard_rows = Inf, precision = "double")
  })
})

test_that("what is no output is refused", {
  skip_if_not_installed("HDF5Array")
  local_folder()
  x <- random_matrix(20, 5)
  writeLines("a", "file")
  expect_messages({
    knn_output(1)
    knn_output("file")
    knn_output("out", "hdf")
    knn_output("out", shard_rows = 0.5)
    knn_output("out", precision = "half")
    knn_output("out", 5, 6)
    knn_search(x, 3, output = 5)
    knn_search(x, 3, output = "")
    knn_search(x, 3, output = "file")
    knn_search(x, rep(3, 20), output = "out")
    knn_search(x, 3, output = "file/out")
  })
  expect_identical(list.files(), "file")
})

test_that("a folder with something in it is left as it is", {
  skip_if_not_installed("HDF5Array")
  local_folder()
  x <- random_matrix(20, 5)
  dir.create("out")
  writeLines("mine", "out/shard-1.h5")
  expect_messages(knn_search(x, 3, output = "out"))
  expect_identical(list.files("out"), "shard-1.h5")
  knn_search(x, 3, output = "new/folder/")
  before <- tools::md5sum(list.files("new/folder", full.names = TRUE))
  expect_messages(knn_search(x, 3, output = "new/folder"))
  after <- tools::md5sum(list.files("new/folder", full.names = TRUE))
  expect_identical(after, before)
})

test_that("~ is the home directory", {
  skip_if_not_installed("DelayedArray")
  home <- withr::local_tempdir()
  withr::local_envvar(HOME = home)
  skip_if(path.expand("~") != home, "R does not read HOME anew")
  found <- knn_search(random_matrix(20, 5), 3, output = knn_output("~/o", "bin"))
  expect_true(file.exists(file.path(home, "o", "fsknn-shards")))
  expect_identical(as_knn(read_knn("~/o")), as_knn(found))
})

test_that("what a search left that was ended is cleared, and nothing else", {
  skip_if_not_installed("DelayedArray")
  local_folder()
  dir.create("out")
  left <- c(
    "fsknn-lock", "index-000001.ibin", "distance-000002.fbin",
    "shard-000001.h5.part-00000000deadbeef",
    "fsknn-shards.part-00000000deadbeef"
  )
  file.create(file.path("out", left))
  expect_error(read_knn("out"), class = "fsknn_shards_error")
  found <- knn_search(random_matrix(20, 5), 3, output = knn_output("out", "bin"))
  expect_setequal(
    list.files("out"),
    c("fsknn-lock", "fsknn-shards", "index-000001.ibin", "distance-000001.fbin")
  )
  expect_identical(dim(found), c(20L, 3L))
})

test_that("an error takes away what was written, and the folder is free", {
  skip_if_not_installed("DelayedArray")
  local_folder()
  claim <- fsknn:::claim_output(knn_output("out", "bin", shard_rows = 3), NULL)
  expect_error(fsknn:::write_shards(function(first, last) {
    if (first > 6) stop("no more")
    rows <- first:last
    list(index = cbind(rows), distance = cbind(rows / 2))
  }, 9, 1, claim), "no more")
  expect_length(list.files("out", "index"), 2)
  fsknn:::release_output(claim)
  expect_identical(list.files("out", all.files = TRUE, no.. = TRUE),
                   "fsknn-lock")
  knn_search(random_matrix(20, 5), 3, output = knn_output("out", "bin"))
  expect_true(file.exists("out/fsknn-shards"))
})

test_that("a folder that another search writes to is refused, and not touched", {
  skip_if_not_installed("DelayedArray")
  folder <- withr::local_tempdir()
  child <- start_child(c(
    sprintf("output <- knn_output(%s, 'bin')", deparse(folder)),
    "claim <- fsknn:::claim_output(output, NULL)",
    "file.create(file.path(output$folder, 'index-000001.ibin'))",
    "say('writing'); Sys.sleep(120)"
  ))
  expect_identical(said_by(child), "writing")
  error <- expect_error(
    knn_search(random_matrix(20, 5), 3, output = knn_output(folder, "bin")),
    class = "fsknn_output_error"
  )
  expect_match(conditionMessage(error), "Another search is writing to it")
  expect_true(file.exists(file.path(folder, "index-000001.ibin")))
  # A killed process holds no lock.
  tools::pskill(child$pid, tools::SIGKILL)
  free <- function() {
    lock <- fsknn:::cpp_lock_host(file.path(folder, "fsknn-lock"))$lock
    if (is.null(lock)) {
      return(FALSE)
    }
    fsknn:::cpp_unlock_host(lock)
    TRUE
  }
  expect_true(wait_for(free, 60))
  knn_search(random_matrix(20, 5), 3, output = knn_output(folder, "bin"))
  expect_true(file.exists(file.path(folder, "fsknn-shards")))
})

test_that("what a file is called is no code", {
  skip_if_not_installed("DelayedArray")
  x <- random_matrix(20, 4)
  folder <- withr::local_tempdir()
  file.create(file.path(folder, "{stop('run')}"))
  expect_error(
    knn_search(x, 3, output = knn_output(folder)), "{stop('run')}",
    fixed = TRUE, class = "fsknn_output_error"
  )
})

test_that("a damaged answer is not said to be opened", {
  skip_if_not_installed("DelayedArray")
  local_folder()
  x <- random_matrix(20, 5)
  search <- function() knn_search(x, 3, output = knn_output("out", "bin"))
  for (name in c("fsknn-shards", "index-000001.ibin")) {
    for (hurt in list(function(path) writeBin(as.raw(1:99), path), unlink)) {
      if (name == "fsknn-shards" && identical(hurt, unlink)) next
      unlink("out", recursive = TRUE)
      search()
      expect_error(search(), "opens it", class = "fsknn_output_error")
      hurt(file.path("out", name))
      files <- list.files("out")
      expect_error(
        search(), "damaged[.]\n.*says what is wrong",
        class = "fsknn_output_error"
      )
      expect_identical(list.files("out"), files)
      expect_error(read_knn("out"), class = "fsknn_shards_error")
    }
  }
})

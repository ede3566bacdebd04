# The header inst/include/fsknn.h, through a package that links to this one
# (folder ccallable).

# Installs it, once for all tests of this file, and returns its namespace.
library_of_caller <- withr::local_tempdir(.local_envir = teardown_env())

caller <- function() {
  if (!isNamespaceLoaded("fsknncaller")) {
    skip_on_cran()
    skip_on_os("windows")
    # R compiles in the folder of the sources.
    file.copy(test_path("ccallable"), library_of_caller, recursive = TRUE)
    log <- suppressWarnings(system2(
      file.path(R.home("bin"), "R"),
      c("CMD", "INSTALL", "--no-docs", "--no-test-load", "--no-byte-compile",
        shQuote(paste0("--library=", library_of_caller)),
        shQuote(file.path(library_of_caller, "ccallable"))),
      stdout = TRUE, stderr = TRUE,
      env = paste0("R_LIBS=", paste(.libPaths(), collapse = ":"))
    ))
    if (any(grepl("warning:", log))) {
      stop(paste(log, collapse = "\n"))
    }
    loadNamespace("fsknncaller", lib.loc = library_of_caller)
    withr::defer(unloadNamespace("fsknncaller"), teardown_env())
  }
  asNamespace("fsknncaller")
}

# Data that every metric takes: 0 and 1 for binary ones. `ties` makes ties.
data_for <- function(metric, num_points, ties = FALSE, seed = 1) {
  if (fsknn:::metric_facts(metric)$levels > 0) {
    return(pmin(small_integers(num_points, 12, seed = seed), 1))
  }
  make <- if (ties) small_integers else random_matrix
  abs(make(num_points, 12, seed = seed)) + 0
}

test_that("C code gets the answers of knn_search() and knn_query()", {
  nearest <- caller()$nearest
  table <- fsknn:::metric_table()
  for (metric in table$name) {
    signs <- if (table$has_sign[table$name == metric]) {
      fsknn:::metric_signs
    } else {
      "signed"
    }
    for (ties in c(FALSE, TRUE)) {
      x <- data_for(metric, 70, ties)
      query <- data_for(metric, 9, ties, seed = 2)
      for (sign in signs) {
        for (threads in 1:2) {
          info <- paste(metric, sign, ties, threads)
          expect_identical(
            nearest(x, 6, metric, sign = sign, num_threads = threads),
            bare(knn_search(x, 6, metric, sign, backend = "cpu")),
            info = info
          )
          expect_identical(
            nearest(x, 6, metric, query, sign = sign, num_threads = threads),
            bare(knn_query(x, query, 6, metric, sign, backend = "cpu")),
            info = info
          )
        }
      }
    }
  }
})

test_that("sizes may be the smallest and the largest", {
  nearest <- caller()$nearest
  x <- random_matrix(5000, 20)
  expect_identical(
    nearest(x, 15, "pearson", num_threads = 2),
    bare(knn_search(x, 15, backend = "cpu"))
  )
  x <- random_matrix(4, 1)
  expect_identical(
    nearest(x, 3, "euclidean"), bare(knn_search(x, 3, "euclidean"))
  )
  one <- x[1, , drop = FALSE]
  expect_identical(
    nearest(one, 1, "euclidean", one), bare(knn_query(one, one, 1, "euclidean"))
  )
  # Wide values have a metric of their own, which queries decide, too.
  wide <- x * 1e200
  expect_identical(
    nearest(x, 3, "inner_product", wide),
    bare(knn_query(x, wide, 3, "inner_product"))
  )
})

test_that("C code gets a status and words for arguments that are wrong", {
  nearest <- caller()$nearest
  x <- random_matrix(5, 3)
  refused <- function(words, ...) {
    expect_error(nearest(...), words, fixed = TRUE, class = "status_1")
  }
  none <- x[0, , drop = FALSE]
  refused("`k` must be between 1 and 4, not 5.", x, 5, "pearson")
  refused("`k` must be between 1 and 5, not 6.", x, 6, "pearson", x)
  refused("`k` must be between 1 and 4, not 0.", x, 0, "pearson")
  one <- x[1, , drop = FALSE]
  refused("`num_points` must be between 2 and", one, 1, "bicor")
  refused("`num_points` must be between 1 and", none, 1, "bicor", x)
  refused("`num_queries` must be between 1 and", x, 1, "bicor", none)
  refused("`num_features` must be between 1 and", x[, 0], 1, "euclidean")
  refused("between 0 and 1024, not 1025", x, 1, "cosine", num_threads = 1025)
  refused("between 0 and 1024, not -1", x, 1, "cosine", num_threads = -1)
  refused("must not be NULL", x, 1, NULL)
  refused("no metric \"cos\" with sign \"signed\"", x, 1, "cos")
  refused("no metric \"cosine\" with sign \"negative\"", x, 1, "cosine",
          sign = "negative")
  refused("`backend` must be \"cpu\" or \"cuda\", not \"gpu\"", x, 1, "cosine",
          backend = "gpu")
  x <- x / max(abs(x)) * 1.7e308
  expect_error(
    nearest(x, 4, "manhattan"), "beyond the range of a double",
    class = "status_3"
  )
  # Another metric has a value for it.
  expect_identical(
    nearest(x, 4, "pearson"), bare(knn_search(x, 4, "pearson"))
  )
})

test_that("each metric refuses the values that knn_search() refuses", {
  nearest <- caller()$nearest
  bad <- list(
    "NA, NaN or infinite" = NaN, "NA, NaN or infinite" = NA,
    "NA, NaN or infinite" = -Inf, "constant" = rep(1, 12),
    "zero" = rep(0, 12), "negative" = -1, "other than 0 and 1" = 2
  )
  for (metric in fsknn:::metric_table()$name) {
    for (at in seq_along(bad)) {
      good <- data_for(metric, 8)
      x <- good
      value <- bad[[at]]
      x[4, seq_along(value)] <- value
      info <- paste(metric, names(bad)[[at]])
      right <- tryCatch(
        bare(knn_search(x, 2, metric, backend = "cpu")),
        fsknn_argument_error = function(e) NULL
      )
      if (!is.null(right)) {
        expect_identical(nearest(x, 2, metric), right, info = info)
        next
      }
      words <- tryCatch(nearest(x, 2, metric), status_1 = conditionMessage)
      expect_match(
        words, "^`points` must not have .*: 1 found, for instance at point 4.",
        info = info
      )
      # Zeros are constant, and a 2 or -1 is not binary.
      if (at <= 4) expect_match(words, names(bad)[[at]], info = info)
      expect_error(
        nearest(good, 2, metric, x), "^`queries` must not have",
        class = "status_1", info = info
      )
    }
  }
})

test_that("a backend that can't be used has a status", {
  nearest <- caller()$nearest
  x <- random_matrix(50, 8)
  if (!cuda_is_usable()) {
    expect_error(
      nearest(x, 3, "pearson", backend = "cuda"), "knn_backends() says why",
      fixed = TRUE, class = "status_5"
    )
  }
  skip_if_no_cuda()
  for (metric in c("pearson", "manhattan", "canberra")) {
    expect_identical(
      nearest(x, 3, metric, backend = "cuda"), bare(knn_search(x, 3, metric))
    )
    expect_identical(
      nearest(x, 3, metric, x, backend = "cuda"),
      bare(knn_query(x, x, 3, metric))
    )
  }
})

test_that("another version of the header, and another thread, are refused", {
  caller <- caller()
  x <- random_matrix(5, 3)
  expect_error(
    caller$nearest(x, 1, "pearson", how = caller$C_find_versioned),
    "compiled with version 2 of fsknn.h, but fsknn has 1.", fixed = TRUE,
    class = "status_6"
  )
  # The message is cut to the caller's 20 bytes.
  expect_error(
    caller$nearest(x, 1, "pearson", how = caller$C_find_in_thread),
    "^Only R's main threa$", class = "status_1"
  )
})

test_that("Ctrl-C stops a search from C", {
  caller()
  expect_interrupted(
    c(
      sprintf("loadNamespace('fsknncaller', '%s')", library_of_caller),
      "x <- matrix(rnorm(100000 * 100), ncol = 100)"
    ),
    "fsknncaller::nearest(x, 200L, 'pearson', num_threads = 2)", delay = 1.5
  )
})

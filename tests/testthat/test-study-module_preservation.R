# Preservation compared with a loop over permutations in R, and with WGCNA.

# Makes two data sets with modules of 12, 9 and 20 points among noise. The second
# module is noise in the second data set. Points of a module have both signs.
two_sets <- function(num_samples = c(16, 19), seed = 5) {
  of <- rep(c(1, 2, 3, NA), c(12, 9, 20, 40))
  made <- lapply(1:2, function(set) {
    d <- num_samples[[set]]
    base <- random_matrix(3, d, seed + 10 * set)
    x <- random_matrix(length(of), d, seed + 10 * set + 1)
    strength <- rep_len(c(1.5, -0.7, 1, 0.4), length(of))
    for (module in setdiff(1:3, if (set == 2) 2)) {
      at <- which(of == module)
      x[at, ] <- x[at, ] + strength[at] * rep(base[module, ], each = length(at))
    }
    rownames(x) <- paste0("g", seq_along(of))
    x
  })
  list(of = of, x = made[[1]], x_test = made[[2]])
}

naive_adjacency <- function(r, type, power) {
  switch(
    type, unsigned = abs(r), signed = (1 + r) / 2, "signed hybrid" = pmax(r, 0)
  )^power
}

# Returns the seven statistics of the rows `test`, of which each belongs to the
# row of `ref` with its number.
naive_preservation <- function(ref, test, type, power) {
  of <- lapply(list(ref, test), function(rows) {
    z <- scale(t(rows))
    r <- stats::cor(z)
    a <- naive_adjacency(r, type, power)
    diag(a) <- 0
    list(
      r = r[lower.tri(r)], a = a[lower.tri(a)], kim = rowSums(a),
      kme = as.vector(stats::cor(z, svd(z, nu = 1, nv = 0)$u[, 1]))
    )
  })
  c(
    mean(of[[2]]$kme^2),
    abs(mean(sign(of[[1]]$kme) * of[[2]]$kme)),
    mean(sign(of[[1]]$r) * of[[2]]$r),
    mean(of[[2]]$a),
    stats::cor(of[[1]]$kim, of[[2]]$kim),
    abs(stats::cor(of[[1]]$kme, of[[2]]$kme)),
    stats::cor(of[[1]]$r, of[[2]]$r)
  )
}

test_that("statistics, Z and p-values are by definition", {
  data <- two_sets()
  # 20 points exceed the samples of one set, and 9 do not.
  settings <- list(
    list(type = "unsigned", power = 6), list(type = "signed", power = 12),
    list(type = "signed hybrid", power = 2.5)
  )
  for (one in settings) {
    found <- withr::with_seed(4, module_preservation(
      data$of, data$x, data$x_test, one$power, 29, type = one$type
    ))
    drawn <- withr::with_seed(4, replicate(29, sample.int(81, 20)))
    for (module in 1:3) {
      at <- which(data$of == module)
      value <- function(rows) {
        naive_preservation(
          data$x[at, ], data$x_test[rows, ], one$type, one$power
        )
      }
      observed <- value(at)
      null <- apply(drawn[seq_along(at), ], 2, value)
      own <- found$statistics[found$statistics$module == module, ]
      expect_equal(own$observed, observed, tolerance = 1e-9)
      expect_equal(own$mean, rowMeans(null), tolerance = 1e-8)
      expect_equal(own$sd, apply(null, 1, stats::sd), tolerance = 1e-8)
      expect_equal(own$p_value, (rowSums(null >= observed) + 1) / 30)
      row <- found$modules[found$modules$module == module, ]
      expect_equal(row$z_density, stats::median(own$z[1:4]))
      expect_equal(row$z_connectivity, stats::median(own$z[5:7]))
      expect_equal(row$z_summary, (row$z_density + row$z_connectivity) / 2)
      all <- t(scale(t(cbind(observed, null))))
      summary <- apply(all[1:4, ], 2, stats::median) +
        apply(all[5:7, ], 2, stats::median)
      expect_equal(row$p_value, mean(summary >= summary[[1]] - 1e-9))
    }
    expect_identical(found$modules$module, 1:3)
    expect_identical(found$modules$size, c(12L, 9L, 20L))
    expect_equal(
      found$modules$p_adjusted, stats::p.adjust(found$modules$p_value, "holm")
    )
  }
  found <- withr::with_seed(
    1, module_preservation(data$of, data$x, data$x_test, permutations = 199)
  )
  expect_identical(found$modules$p_adjusted <= 0.05, c(TRUE, FALSE, TRUE))
})

# WGCNA's names of the statistics.
wgcna_names <- c(
  "propVarExplained.pres", "meanSignAwareKME.pres", "meanSignAwareCorDat.pres",
  "meanAdj.pres", "cor.kIM", "cor.kME", "cor.cor"
)

of_wgcna <- function(data, type, permutations) {
  colors <- c("turquoise", "blue", "brown")[data$of]
  colors[is.na(colors)] <- "grey"
  utils::capture.output(found <- suppressWarnings(WGCNA::modulePreservation(
    list(A = list(data = t(data$x)), B = list(data = t(data$x_test))),
    list(A = colors), networkType = type, nPermutations = permutations,
    verbose = 0, quickCor = 0, savePermutedStatistics = FALSE
  )))
  found
}

of_this <- function(data, type, permutations) {
  colors <- c("turquoise", "blue", "brown")[data$of]
  withr::with_seed(2, module_preservation(
    colors, data$x, data$x_test, type = type, permutations = permutations
  ))
}

test_that("the statistics are WGCNA's", {
  skip_if_not_installed("WGCNA")
  data <- two_sets()
  for (type in c("unsigned", "signed", "signed hybrid")) {
    theirs <- of_wgcna(data, type, 0)$observed[[1]]
    theirs <- cbind(theirs$intra[[2]], theirs$inter[[2]])
    ours <- of_this(data, type, 1)
    for (module in ours$modules$module) {
      expect_equal(
        ours$statistics$observed[ours$statistics$module == module],
        unlist(theirs[module, wgcna_names], use.names = FALSE),
        tolerance = 1e-8
      )
    }
  }
})

test_that("Z is WGCNA's, within Monte Carlo error", {
  # WGCNA takes seconds for each permutation.
  skip_unless_long()
  skip_if_not_installed("WGCNA")
  data <- two_sets()
  for (type in c("unsigned", "signed", "signed hybrid")) {
    theirs <- of_wgcna(data, type, 100)$preservation$Z[[1]][[2]]
    ours <- of_this(data, type, 400)
    # The standard error of Z from B permutations is about
    # sqrt((1 + z^2 / 2) / B), for both.
    error <- function(z) 4.5 * sqrt((1 + z^2 / 2) * (1 / 100 + 1 / 400))
    for (module in ours$modules$module) {
      z <- ours$statistics$z[ours$statistics$module == module]
      other <- unlist(
        theirs[module, paste0("Z.", wgcna_names)], use.names = FALSE
      )
      expect_true(all(abs(z - other) <= error(z)), label = type)
      summary <- ours$modules$z_summary[ours$modules$module == module]
      expect_lte(
        abs(summary - theirs[module, "Zsummary.pres"]), error(summary)
      )
    }
  }
})

test_that("points are matched by name, and constant ones are left out", {
  data <- two_sets()
  same <- function(...) withr::with_seed(3, module_preservation(...))
  expected <- same(data$of, data$x, data$x_test, permutations = 19)
  # The order of x_test does not matter to what is observed.
  turned <- same(data$of, data$x, data$x_test[81:1, ], permutations = 19)
  expect_equal(turned$statistics$observed, expected$statistics$observed)
  named <- stats::setNames(data$of, rownames(data$x))
  expect_identical(
    same(rev(named), data$x, data$x_test, permutations = 19), expected
  )
  expect_identical(
    same(data$of, data$x, unname_rows(data$x_test), permutations = 19), expected
  )
  # Further points, and points that are missing.
  some <- same(data$of, data$x, data$x_test[-(1:10), ], permutations = 19)
  expect_identical(some$modules$module, 2:3)
  expect_identical(some$left_out, 1L)
  expect_identical(some$num_points, 71L)
  expect_output(print(some), "1 module with too few common points: 1")
  flat <- data$x_test
  flat[c(13, 81), ] <- 1
  expect_wrong(same(data$of, data$x, flat), "x_test")
  found <- same(
    data$of, data$x, flat, permutations = 19, constant = "isolate"
  )
  expect_identical(found$modules$common, c(12L, 8L, 20L))
  expect_identical(found$modules$size, c(12L, 9L, 20L))
  expect_identical(found$num_points, 79L)
  expect_equal(
    found$statistics$observed[8:14],
    naive_preservation(data$x[14:21, ], data$x_test[14:21, ], "unsigned", 6)
  )
})

test_that("the answer depends on neither threads nor instructions", {
  data <- two_sets()
  found <- function(...) {
    withr::with_seed(3, module_preservation(
      data$of, data$x, data$x_test, permutations = 21, ...
    ))
  }
  expected <- found(num_threads = 1)
  expect_identical(found(num_threads = 3), expected)
  for (name in c("baseline", "auto")) {
    withr::local_options(fsknn.instruction_set = name)
    expect_identical(found(), expected)
  }
  columns <- withr::with_seed(3, module_preservation(
    data$of, t(data$x), t(data$x_test), permutations = 21, points = "columns"
  ))
  expect_identical(columns, expected)
})

test_that("large modules are represented by some of their points", {
  data <- two_sets()
  found <- withr::with_seed(3, module_preservation(
    data$of, data$x, data$x_test, permutations = 9, max_size = 10
  ))
  points <- withr::with_seed(3, sample.int(12, 10))
  expect_equal(
    found$statistics$observed[1:7],
    naive_preservation(data$x[points, ], data$x_test[points, ], "unsigned", 6)
  )
  expect_identical(found$modules$common, c(12L, 9L, 20L))
  all <- withr::with_seed(3, module_preservation(
    data$of, data$x, data$x_test, permutations = 9, max_size = Inf
  ))
  expect_equal(
    all$statistics$observed[1:7],
    naive_preservation(data$x[1:12, ], data$x_test[1:12, ], "unsigned", 6)
  )
})

test_that("eigengenes of nearly equal rows, pairs and few samples are found", {
  x <- random_matrix(30, 5, 8)
  x[1:10, ] <- rep(x[1, ], each = 10) + 1e-9 * random_matrix(10, 5, 9)
  of <- rep(1:3, each = 10)
  test <- random_matrix(30, 3, 11)
  found <- withr::with_seed(1, module_preservation(of, x, test, permutations = 9))
  for (module in 1:3) {
    at <- which(of == module)
    expected <- naive_preservation(x[at, ], test[at, ], "unsigned", 6)
    # Correlations of nearly equal values are rounding.
    checked <- if (module == 1) 1:4 else 1:7
    own <- found$statistics$observed[found$statistics$module == module]
    expect_equal(own[checked], expected[checked], tolerance = 1e-8)
  }
  same <- module_preservation(
    of, x, test[rep(1, 30), ] + 0, permutations = 9
  )
  expect_equal(same$statistics$observed[1:4], rep(1, 4))
  expect_true(all(is.na(same$modules$z_summary)))
})

test_that("wrong arguments are explained", {
  data <- two_sets()
  expect_wrong(
    module_preservation(data$of, data$x, data$x_test, power = 0.5), "power"
  )
  expect_wrong(
    module_preservation(data$of, data$x, data$x_test, permutations = 0),
    "permutations"
  )
  expect_wrong(
    module_preservation(data$of, data$x, data$x_test, min_size = 2), "min_size"
  )
  expect_wrong(
    module_preservation(data$of, data$x, data$x_test, min_size = 50),
    "The largest has 20"
  )
  expect_wrong(
    module_preservation(data$of, data$x, data$x_test, max_size = 2), "max_size"
  )
  expect_wrong(
    module_preservation(data$of, data$x, unname_rows(data$x_test)[-1, ]),
    "same points"
  )
  twice <- data$x_test
  rownames(twice)[2] <- "g1"
  expect_wrong(module_preservation(data$of, data$x, twice), "unique")
  expect_wrong(
    module_preservation(data$of, data$x, data$x_test, weights = rep(1, 16)),
    "does not take"
  )
  expect_wrong(
    module_preservation(data$of, data$x, data$x_test, what = 3), "what"
  )
})

test_that("results print and convert", {
  data <- two_sets()
  found <- withr::with_seed(3, module_preservation(
    data$of, data$x, data$x_test, permutations = 19
  ))
  expect_output(
    print(found, n = 2),
    "3 modules: 81 common points, 16 and 19 samples.*power 6.*1 more module"
  )
  expect_identical(as.data.frame(found), found$modules)
  expect_identical(
    as.data.frame(found, what = "statistics"), found$statistics
  )
})

test_that("modules that are not in x_test are called at their level", {
  num_sets <- if (is_long()) 400 else 120
  module <- c(rep(1:3, c(5, 5, 12)), rep(NA, 38))
  p_value <- withr::with_seed(11, replicate(num_sets, {
    x <- matrix(stats::rnorm(60 * 12), 60)
    for (of in 1:3) {
      x[which(module == of), ] <- x[which(module == of), ] +
        rep(stats::rnorm(12), each = sum(module == of, na.rm = TRUE))
    }
    # Other modules, and a factor that half of the points follow.
    x_test <- x[, 12:1][sample(60), ] + 2 * outer(
      sample(0:1, 60, TRUE), stats::rnorm(12)
    )
    module_preservation(
      module, x, x_test, permutations = 19, num_threads = 1
    )$modules$p_value
  }))
  for (level in c(0.05, 0.2, 0.5)) {
    expect_lte(
      sum(p_value[1, ] <= level), stats::qbinom(1 - 1e-4, num_sets, level)
    )
    expect_gte(
      sum(p_value[1, ] <= level), stats::qbinom(1e-4, num_sets, level)
    )
    expect_lte(
      sum(p_value[3, ] <= level), stats::qbinom(1 - 1e-4, num_sets, level)
    )
  }
})

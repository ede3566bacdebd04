study_rows <- function() {
  outcome <- random_matrix(1, 40, seed = 2)[1, ]
  x <- rbind(random_matrix(3, 40, seed = 3), 5 + outcome)
  x[2, ] <- x[2, ] + outcome
  rownames(x) <- c("ARF1", "SLC40A1", "A - B", "years to relapse")
  x
}

titles <- function(plot) levels(plot$data$panel)

test_that("a panel for each point has r and all samples", {
  skip_if_not_installed("ggplot2")
  x <- study_rows()
  plot <- plot_profiles(x, c("SLC40A1", "ARF1"), against = "years to relapse")
  r <- stats::cor(t(x))["years to relapse", c("SLC40A1", "ARF1")]
  expect_identical(
    titles(plot),
    paste0(c("SLC40A1", "ARF1"), "\nr = ", sprintf("%.3f", r), ", n = 40")
  )
  expect_identical(nrow(plot$data), 80L)
  expect_equal(plot$data$value[1:40], unname(x["SLC40A1", ]))
  expect_equal(plot$data$outcome[41:80], unname(x["years to relapse", ]))
  expect_identical(plot$labels$y, "years to relapse")
  expect_no_error(ggplot2::ggplot_build(plot))
})

test_that("a row that is not there is made of two that are", {
  skip_if_not_installed("ggplot2")
  x <- study_rows()
  for (op in c("-", "+", "*", "/")) {
    plot <- plot_profiles(x, paste("ARF1", op, "SLC40A1"), "years to relapse")
    expect_equal(
      plot$data$value, unname(match.fun(op)(x["ARF1", ], x["SLC40A1", ]))
    )
  }
  # A row with this name takes precedence, and a name may contain the sign
  # itself.
  expect_equal(
    plot_profiles(x, "A - B", "years to relapse")$data$value,
    unname(x["A - B", ])
  )
  expect_equal(
    plot_profiles(x, "A - B - ARF1", "years to relapse")$data$value,
    unname(x["A - B", ] - x["ARF1", ])
  )
})

test_that("metafeatures give the same panels as the matrix", {
  skip_if_not_installed("ggplot2")
  x <- study_rows()[c(1, 2, 4), ]
  m <- metafeatures(x, "-")
  points <- c("ARF1", "ARF1 - SLC40A1")
  expect_equal(
    plot_profiles(m, points, "years to relapse")$data,
    plot_profiles(x, points, "years to relapse")$data
  )
})

test_that("samples with a missing value are left out and counted", {
  skip_if_not_installed("ggplot2")
  x <- study_rows()
  x["ARF1", 3:4] <- NA
  x["years to relapse", 5] <- NA
  plot <- plot_profiles(x, c("ARF1", "SLC40A1"), "years to relapse")
  expect_match(titles(plot)[[1]], "n = 37 (3 missing)", fixed = TRUE)
  expect_match(titles(plot)[[2]], "(1 missing)", fixed = TRUE)
  expect_identical(nrow(plot$data), 76L)
  r <- stats::cor(x["ARF1", ], x["years to relapse", ], use = "complete.obs")
  expect_match(titles(plot)[[1]], sprintf("%.3f", abs(r)), fixed = TRUE)
})

test_that("samples can be coloured", {
  skip_if_not_installed("ggplot2")
  plot <- plot_profiles(
    study_rows(), "ARF1", "years to relapse", colour = rep(c("yes", "no"), 20)
  )
  built <- ggplot2::ggplot_build(plot)
  expect_setequal(built$data[[2]]$fill, cluster_colours[1:2])
  expect_identical(length(unique(built$data[[2]]$shape)), 2L)
  # Samples without a class are also drawn, because they count in r.
  plot <- plot_profiles(
    study_rows(), "ARF1", "years to relapse", colour = c(NA, rep(1:3, 13))
  )
  expect_identical(levels(plot$data$colour), c("1", "2", "3", "missing"))
  expect_false(anyNA(ggplot2::ggplot_build(plot)$data[[2]]$fill))
})

test_that("axes have titles, with units where they are given", {
  skip_if_not_installed("ggplot2")
  x <- study_rows()
  labels <- function(...) {
    plot_profiles(x, "ARF1", ...)$labels[c("x", "y")]
  }
  expect_identical(
    labels("years to relapse"), list(x = "Value", y = "years to relapse")
  )
  expect_identical(
    labels(1:40, xlab = "log2 ratio", ylab = "Tumour (mm)"),
    list(x = "log2 ratio", y = "Tumour (mm)")
  )
  expect_identical(labels(1:40)$y, "Outcome")
})

test_that("an outcome may be given that is no row", {
  skip_if_not_installed("ggplot2")
  x <- study_rows()
  years <- x["years to relapse", ]
  by_name <- plot_profiles(x, "ARF1", "years to relapse")
  by_value <- plot_profiles(x, "ARF1", unname(years))
  expect_equal(by_value$data, by_name$data)
  early <- years < 5
  kinds <- factor(ifelse(early, "early", "late"), levels = c("late", "early"))
  r <- sprintf("%.3f", stats::cor(x["ARF1", ], early))
  for (against in list(early, kinds)) {
    plot <- plot_profiles(x, "ARF1", against)
    expect_identical(titles(plot), paste0("ARF1\nr = ", r, ", n = 40"))
    expect_equal(plot$data$outcome, as.double(early))
    scale <- plot$scales$get_scales("y")
    expect_identical(
      scale$labels, if (is.factor(against)) levels(kinds) else c("FALSE", "TRUE")
    )
    dots <- ggplot2::layer_data(plot, 1)
    expect_equal(round(dots$y), as.double(early))
  }
})

test_that("events are dots and what is censored are crosses", {
  skip_if_not_installed("ggplot2")
  skip_if_not_installed("survival")
  x <- study_rows()
  time <- exp(x["years to relapse", ] / 4)
  event <- rep(c(TRUE, FALSE, TRUE), length.out = 40)
  times <- survival::Surv(time, event)
  times[[3]] <- NA
  plot <- plot_profiles(x, "SLC40A1", times, ylab = "Years")
  residuals <- stats::residuals(survival::coxph(
    times[-3] ~ 1
  ), type = "martingale")
  r <- stats::cor(x["SLC40A1", -3], residuals)
  expect_identical(
    titles(plot), paste0(
      "SLC40A1\nr = ", sprintf("%.3f", r), "\nn = 39, ", sum(event[-3]),
      " events (1 missing)"
    )
  )
  expect_equal(plot$data$outcome, unname(time[-3]))
  dots <- ggplot2::layer_data(plot, 1)
  expect_equal(dots$shape, ifelse(event[-3], 16, 3))
  expect_match(plot$labels$caption, "martingale")
  # There is no line, because censored times would bend it.
  expect_identical(length(plot$layers), 1L)
  coloured <- plot_profiles(x, "SLC40A1", times, colour = rep(c("a", "b"), 20))
  expect_setequal(ggplot2::layer_data(coloured, 1)$colour, cluster_colours[1:2])
})

test_that("what can't be drawn is an error that helps", {
  skip_if_not_installed("ggplot2")
  x <- study_rows()
  bare <- x
  rownames(bare) <- NULL
  flat <- x
  flat["ARF1", ] <- 1
  outcome <- "years to relapse"
  expect_messages({
    plot_profiles(x, "SLC40A2", outcome)
    plot_profiles(x, "ARF1", "year to relapse")
    plot_profiles(x, "ARF1 - BCAR1", outcome)
    plot_profiles(x, 1:2, outcome)
    plot_profiles(x, "ARF1", c("a", "b"))
    plot_profiles(bare, "ARF1", outcome)
    plot_profiles(flat, "ARF1", outcome)
    plot_profiles("a", "ARF1", outcome)
    plot_profiles(x, "ARF1", 1:3)
    plot_profiles(x, "ARF1", list(1))
    plot_profiles(x, "ARF1", rep(1, 40))
    plot_profiles(x, "ARF1", factor(rep(1:4, 10)))
    plot_profiles(x, "ARF1", outcome, xlab = 1)
    plot_profiles(x, "ARF1", outcome, colour = 1:3)
    plot_profiles(x, "ARF1", outcome, ncol = 0)
    plot_profiles(rbind(x, ARF1 = x[1, ]), "ARF1", outcome)
  })
  none <- rbind(x, zero = 0)
  expect_messages(plot_profiles(none, "ARF1 / zero", outcome))
  apart <- rbind(a = c(1, 2, 5, NA, NA), b = c(NA, 3, 3, 1, 2))
  expect_messages(plot_profiles(apart, "a", "b"))
})

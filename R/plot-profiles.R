#' Plot points against an outcome, sample by sample
#'
#' Draws each of some points against another point or an outcome. Each point has
#' a panel with one dot for each sample, the correlation r and the least-squares
#' line. Figure 3b to d of Arefin et al. (2012) are such plots.
#'
#' @param x Points in rows, with row names, in any form that [knn_graph()]
#'   takes. Missing values are allowed here.
#' @param which Names of rows of `x`, one for each panel. `"a - b"` (also `+`,
#'   `*` or `/`) is computed from the rows `a` and `b`, if no row has that name.
#' @param against The variable on the other axis. Either the name of a row of
#'   `x`, or one value for each column of `x`, in that order or with their
#'   names. Such values are numbers, logical values, a factor or text with two
#'   levels, or right-censored survival times ([survival::Surv()]).
#' @param ... Must be empty.
#' @param colour A variable that colours the samples: a vector or factor with up
#'   to eight different values, including `NA`. It is in the order of the
#'   columns of `x` or has their names. `NULL` (default): one colour.
#' @param ncol Number of panels side by side. `NULL` (default) chooses it.
#' @param xlab,ylab Titles of the axes, with units, such as
#'   `"Expression (log2 ratio)"` and `"Follow-up (years)"`. `NULL` (default):
#'   `"Value"`, and the name of the row, `"Outcome"` or `"Time"`.
#'
#' @details For survival times, the picture shows the time. Events are dots.
#' Censored samples, whose time of event is known only to be later, are crosses.
#' r is the correlation with the martingale residuals of the times, as in
#' [nearest_to()] and [add_phenotype()]. There is no line, because a
#' least-squares line through censored times would be wrong. For an outcome with
#' two levels there is no line either, and dots are jittered.
#'
#' @returns A ggplot object. r is Pearson's correlation, and n is the number of
#'   samples that it is computed from. Samples with a missing value are left out
#'   of a panel, and the title of the panel counts them.
#'
#' @section Errors:
#' The following are errors of class `fsknn_argument_error`:
#' * a name that no row of `x` has (the message suggests the nearest spelling),
#'   or that several rows have;
#' * no row names;
#' * a constant row, or a row with fewer than two numbers in samples where the
#'   other variable is known.
#'
#' The package ggplot2 is required.
#' @references
#' Arefin AS, Riveros C, Berretta R, Moscato P (2012). GPU-FS-kNN: A Software
#' Tool for Fast and Scalable kNN Computation Using GPUs. *PLoS ONE* 7(8):
#' e44000. \doi{10.1371/journal.pone.0044000}
#' @seealso [plot_neighbourhood()]
#' @export
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' outcome <- rnorm(40)
#' x <- rbind(
#'   ARF1 = rnorm(40), SLC40A1 = outcome + rnorm(40), years = 5 + outcome
#' )
#' plot_profiles(
#'   x, c("ARF1", "SLC40A1", "ARF1 - SLC40A1"), against = "years",
#'   xlab = "log2 ratio"
#' )
#' if (requireNamespace("survival", quietly = TRUE)) {
#'   relapse <- survival::Surv(5 + outcome, rep(c(TRUE, FALSE), 20))
#'   plot_profiles(x, "SLC40A1", against = relapse, ylab = "Years to relapse")
#' }
plot_profiles <- function(x, which, against, ..., colour = NULL, ncol = NULL,
                          xlab = NULL, ylab = NULL) {
  check_no_more(...)
  check_supplied(x)
  check_supplied(which)
  check_supplied(against)
  rlang::check_installed("ggplot2", "to draw profiles.")
  call <- current_env()
  rows <- named_rows(x, call)
  check_profile_names(which)
  outcome <- profile_outcome(rows, against, call)
  values <- lapply(which, function(name) {
    profile(rows, name, "which", call)
  })
  for (at in seq_along(which)) {
    check_pair(
      values[[at]], outcome$numbers, which[[at]], outcome$name, call
    )
  }
  colour <- match_names(
    colour, feature_names(rows$values), "colour", "features"
  )
  colour <- check_sample_colour(colour, length(outcome$numbers))
  if (!is.null(ncol)) {
    ncol <- check_whole_number(ncol, "ncol", min = 1, max = 1000)
  }
  outcome$xlab <- check_title(xlab, "xlab") %||% "Value"
  outcome$ylab <- check_title(ylab, "ylab") %||% outcome$ylab

  panels <- vapply(seq_along(which), function(at) {
    panel_title(which[[at]], values[[at]], outcome)
  }, "")
  panels <- factor(panels, levels = unique(panels))
  dots <- data.frame(
    panel = rep(panels, each = length(outcome$numbers)),
    value = unlist(values), outcome = rep(outcome$shown, length(which))
  )
  dots$status <- rep(outcome$status, length(which))
  dots$colour <- rep(colour %||% factor("all"), length(which))
  numbers <- rep(outcome$numbers, length(which))
  there <- stats::complete.cases(dots$value, numbers)
  draw_profiles(dots[there, ], outcome, is.null(colour), ncol)
}

check_title <- function(title, arg, call = caller_env()) {
  if (!is.null(title) && !rlang::is_string(title)) {
    given <- describe_value(title)
    abort_argument("{.arg {arg}} must be one text, not {given}.", call)
  }
  title
}

# Returns the numbers that are correlated, the values to show, and their name.
profile_outcome <- function(rows, against, call) {
  if (rlang::is_string(against)) {
    numbers <- profile(rows, against, "against", call)
    return(list(
      numbers = numbers, shown = numbers, name = against, ylab = against,
      line = TRUE
    ))
  }
  against <- match_names(
    against, feature_names(rows$values), "against", "features", call
  )
  if (is_text(against)) {
    against <- levels_of(against)
  }
  is_surv <- inherits(against, "Surv")
  numbers <- outcome_numbers(against, ncol(rows$values), call)
  outcome <- list(
    numbers = numbers, shown = numbers, name = "against", ylab = "Outcome",
    line = TRUE
  )
  if (is_surv) {
    columns <- colnames(against)
    time <- against[, intersect(c("time", "stop"), columns)[[1]]]
    outcome$shown <- as.double(time)
    outcome$status <- factor(
      ifelse(against[, "status"] == 1, "event", "censored"),
      levels = c("event", "censored")
    )
    outcome[c("ylab", "line")] <- list("Time", FALSE)
  } else if (!is.numeric(against)) {
    outcome$line <- FALSE
    outcome$levels <- if (is.factor(against)) {
      levels(droplevels(against))
    } else {
      c("FALSE", "TRUE")
    }
  }
  outcome
}

outcome_numbers <- function(against, num_samples, call) {
  is_surv <- inherits(against, "Surv")
  given <- if (is_surv) nrow(against) else length(against)
  known <- is_surv || is.factor(against) || is.logical(against) ||
    (is.numeric(against) && is.null(dim(against)))
  if (!known || given != num_samples) {
    type <- describe_type(against)
    abort_argument(
      c(
        "{.arg against} must be the name of a row of {.arg x}, or have one value
         for each of its {num_samples} columns.",
        x = if (known) "It has {given} value{?s}." else "It is {type}.",
        i = if (!known) {
          "Values may be numbers, logical, a factor or text with two levels, or
           survival times ({.fn survival::Surv})."
        }
      ),
      call
    )
  }
  numbers <- as.double(as_outcome(against, "against", call = call))
  numbers[!is.finite(numbers)] <- NA
  if (length(unique(numbers[!is.na(numbers)])) < 2) {
    abort_argument(
      "{.arg against} must have two different values or more.", call
    )
  }
  numbers
}

named_rows <- function(x, call = caller_env()) {
  rows <- in_memory(as_points(x, "x", call), "x", call)
  # Metafeatures make their names on request.
  rows$names <- rows$names %||% rownames(rows$values)
  if (is.null(rows$names)) {
    abort_argument("{.arg x} must have row names, and has none.", call)
  }
  rows
}

check_profile_names <- function(which, call = caller_env()) {
  if (!is.character(which) || length(which) == 0 || anyNA(which)) {
    given <- describe_value(which)
    abort_argument("{.arg which} must be names of rows, not {given}.", call)
  }
}

# Returns one row as numbers, either a row of x or computed from two.
profile <- function(rows, name, arg, call) {
  names <- rows$names
  row_of <- function(one) {
    at <- check_point(one, names, arg, "x", call)
    as.double(as.matrix(rows$values[at, , drop = FALSE]))
  }
  parts <- if (!all(name %in% names)) split_name(name, names)
  values <- if (is.null(parts)) {
    row_of(name)
  } else {
    match.fun(parts[[2]])(row_of(parts[[1]]), row_of(parts[[3]]))
  }
  usable <- values[is.finite(values)]
  if (length(usable) < 2) {
    abort_argument(
      "Row {.val {name}} of {.arg x} has no two values that are finite.", call
    )
  }
  if (max(usable) == min(usable)) {
    abort_argument(
      "Row {.val {name}} of {.arg x} is constant and has no correlation.", call
    )
  }
  values[!is.finite(values)] <- NA
  values
}

# Checks that the two have a correlation over their common samples.
check_pair <- function(values, outcome, name, against, call) {
  there <- !is.na(values) & !is.na(outcome)
  varies <- function(x) length(unique(x[there])) > 1
  if (!varies(values) || !varies(outcome)) {
    both <- tally(sum(there), "sample")
    abort_argument(
      c(
        "Rows {.val {name}} and {.val {against}} of {.arg x} must have a
         correlation.",
        x = "Over the {both} that both have, one of them does not vary."
      ),
      call
    )
  }
}

# Splits "a - b" into a, -, b if both are rows. Names may contain the signs
# themselves.
split_name <- function(name, names) {
  if (!rlang::is_string(name)) {
    return(NULL)
  }
  at <- gregexpr(" [-+*/] ", name)[[1]]
  for (start in at[at > 0]) {
    parts <- c(
      substr(name, 1, start - 1), substr(name, start + 1, start + 1),
      substr(name, start + 3, nchar(name))
    )
    if (all(parts[c(1, 3)] %in% names)) {
      return(parts)
    }
  }
  NULL
}

panel_title <- function(point, values, outcome) {
  there <- !is.na(values) & !is.na(outcome$numbers)
  r <- stats::cor(values[there], outcome$numbers[there])
  left_out <- sum(!there)
  is_surv <- !is.null(outcome$status)
  events <- sum(outcome$status[there] == "event")
  paste0(
    point, "\nr = ", sprintf("%.3f", r), if (is_surv) "\n" else ", ",
    "n = ", sum(there), if (is_surv) paste0(", ", tally(events, "event")),
    if (left_out > 0) paste0(" (", left_out, " missing)")
  )
}

check_sample_colour <- function(colour, num_samples, call = caller_env()) {
  if (is.null(colour)) {
    return(NULL)
  }
  given <- length(colour)
  different <- length(unique(colour))
  if (!is.atomic(colour) || given != num_samples || different > 8) {
    abort_argument(
      c(
        "{.arg colour} must be a vector with one value for each of the
         {num_samples} columns of {.arg x}, and at most 8 different ones.",
        x = "It has {given} value{?s}, {different} of them different."
      ),
      call
    )
  }
  colour <- addNA(colour, ifany = TRUE)
  levels(colour)[is.na(levels(colour))] <- "missing"
  colour
}

draw_profiles <- function(dots, outcome, plain, ncol) {
  plot <- ggplot2::ggplot(
    dots, ggplot2::aes(x = .data$value, y = .data$outcome)
  )
  if (outcome$line) {
    plot <- plot + ggplot2::geom_smooth(
      method = "lm", formula = y ~ x, se = FALSE, colour = "grey35",
      linewidth = 0.6, na.rm = TRUE
    )
  }
  plot <- if (!is.null(outcome$status)) {
    plot + survival_dots(plain)
  } else {
    plot + sample_dots(plain, apart = !is.null(outcome$levels))
  }
  if (!is.null(outcome$levels)) {
    plot <- plot +
      ggplot2::scale_y_continuous(breaks = 0:1, labels = outcome$levels) +
      ggplot2::expand_limits(y = c(-0.15, 1.15))
  }
  plot +
    ggplot2::facet_wrap(~panel, scales = "free_x", ncol = ncol) +
    ggplot2::labs(
      x = outcome$xlab, y = outcome$ylab,
      caption = if (!is.null(outcome$status)) {
        "r with the martingale residuals of the times"
      }
    ) +
    ggplot2::theme_bw(base_size = 11) +
    ggplot2::theme(
      panel.grid.minor = ggplot2::element_blank(),
      strip.background = ggplot2::element_blank(),
      strip.text = ggplot2::element_text(hjust = 0, size = 9.5),
      legend.position = "bottom",
      plot.caption = ggplot2::element_text(colour = "grey30"),
      # The rightmost number of the last panel needs room.
      plot.margin = ggplot2::margin(6, 14, 6, 6)
    )
}

# With two levels, dots are jittered, always in the same way.
sample_dots <- function(plain, apart) {
  position <- if (apart) {
    ggplot2::position_jitter(width = 0, height = 0.07, seed = 1)
  } else {
    "identity"
  }
  if (plain) {
    return(ggplot2::geom_point(
      shape = 21, fill = "#0072B2", colour = "white", size = 2.2, stroke = 0.3,
      position = position
    ))
  }
  list(
    ggplot2::geom_point(
      ggplot2::aes(fill = .data$colour, shape = .data$colour),
      colour = "white", size = 2.4, stroke = 0.3, position = position
    ),
    ggplot2::scale_fill_manual(values = cluster_colours, name = NULL),
    ggplot2::scale_shape_manual(values = cluster_shapes, name = NULL)
  )
}

# Censored samples are crosses and others dots. Shapes have no other meaning
# here.
survival_dots <- function(plain) {
  shapes <- ggplot2::scale_shape_manual(
    values = c(event = 16, censored = 3), name = NULL, drop = FALSE,
    guide = legend_of(1)
  )
  if (plain) {
    return(list(
      ggplot2::geom_point(
        ggplot2::aes(shape = .data$status), colour = "#0072B2", size = 2
      ),
      shapes
    ))
  }
  list(
    ggplot2::geom_point(
      ggplot2::aes(shape = .data$status, colour = .data$colour), size = 2
    ),
    shapes,
    ggplot2::scale_colour_manual(
      values = cluster_colours, name = NULL, guide = legend_of(2)
    )
  )
}

# --- names -------------------------------------------------------------------

# Returns a point's number. An unknown name is an error that suggests another.
check_point <- function(point, names, arg, where, call = caller_env()) {
  valid <- length(point) == 1 && is.atomic(point) && !is.na(point)
  if (!valid) {
    given <- describe_value(point)
    abort_argument("{.arg {arg}} must be one name, not {given}.", call)
  }
  check_text(point, paste0("`", arg, "`"), "name", arg, call)
  point <- id_text(point)
  at <- which(names == point)
  if (length(at) == 1) {
    return(at)
  }
  if (length(at) > 1) {
    numbers <- first_few(at)
    abort_argument(
      c(
        "{.arg {arg}} must name one point of {.arg {where}}.",
        x = "Several are called {.val {point}}: {numbers}.",
        i = "Rename them, for example with {.fn make.unique}."
      ),
      call
    )
  }
  hint <- nearest_name(point, names)
  abort_argument(
    c(
      "{.arg {arg}} must be a point of {.arg {where}}: there is no
       {.val {point}}.",
      i = if (!is.null(hint)) "Did you mean {.val {hint}}?"
    ),
    call
  )
}

# Among very many names, it compares only those of similar length.
nearest_name <- function(name, names) {
  names <- names[abs(nchar(names) - nchar(name)) <= 3]
  if (length(names) > 50000) {
    names <- names[tolower(substr(names, 1, 2)) == tolower(substr(name, 1, 2))]
  }
  names <- utils::head(names, 50000)
  if (length(names) > 0) nearest_spelling(name, names)
}

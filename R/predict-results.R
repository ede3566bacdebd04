# Methods for predictions: print, summary, data frame and plot.

#' @method format fsknn_prediction
#' @export
format.fsknn_prediction <- function(x, ...) {
  has_truth <- !is.null(x$truth)
  how <- if (!has_truth) {
    paste0(
      tally(length(x$predicted), "point"), " predicted from ",
      format_count(x$num_donors)
    )
  } else if (is.null(x$folds) || nlevels(x$folds) == length(x$truth)) {
    paste("Leave-one-out prediction of", tally(length(x$truth), "point"))
  } else {
    paste0(
      "Prediction of ", tally(length(x$truth), "point"), " from the other ",
      "folds of ", nlevels(x$folds)
    )
  }
  c(
    paste0(
      how, ": k = ", x$k, ", ",
      describe_metric(x$metric, x$sign, x$weighted),
      if (x$weighting == "distance") ", votes by 1 / distance"
    ),
    format_searched(x),
    if (has_truth) error_in_words(x),
    if (!is.null(x$features)) features_in_words(x$features),
    if (anyNA(x$predicted)) {
      paste(
        "Without a prediction:", tally(sum(is.na(x$predicted)), "point")
      )
    }
  )
}

error_in_words <- function(x) {
  at <- x$error[x$k, ]
  if (!is.factor(x$truth)) {
    spread <- standard_deviation(x$truth)
    return(paste0(
      "Root mean square error ", format(at$rmse, digits = 3),
      " (standard deviation of the truth ", format(spread, digits = 3),
      "), correlation ", format(at$correlation, digits = 2)
    ))
  }
  sizes <- table(x$truth)
  most <- names(sizes)[[which.max(sizes)]]
  others <- length(x$truth) - max(sizes)
  paste0(
    "Wrong: ", share_in_words(at$wrong, at$number), "; if all were called \"",
    most, "\": ", share_in_words(others, length(x$truth))
  )
}

share_in_words <- function(count, of) {
  paste0(
    format_count(count), " of ", format_count(of), " (",
    sprintf("%.1f%%", 100 * count / of), ")"
  )
}

# Describes the features that were chosen in each fold.
features_in_words <- function(features) {
  chosen <- features[!vapply(features, is.null, NA)]
  if (length(chosen) == 0) {
    return("Learned anew for each fold, by a function")
  }
  sizes <- vapply(chosen, function(of) {
    if (is.logical(of)) sum(of) else length(of)
  }, 0)
  size <- if (min(sizes) == max(sizes)) {
    format_count(sizes[[1]])
  } else {
    paste(format_count(min(sizes)), "to", format_count(max(sizes)))
  }
  paste0(
    "Features chosen: ", size,
    if (length(chosen) > 1) {
      paste0(" in each fold; in all folds ", format_count(in_all(chosen)))
    }
  )
}

in_all <- function(chosen) {
  length(Reduce(intersect, lapply(chosen, function(of) {
    if (is.logical(of)) which(of) else of
  })))
}

#' @export
print.fsknn_prediction <- function(x, ...) {
  cat(format(x), sep = "\n")
  if (!is.null(x$confusion)) {
    print(x$confusion)
  } else if (is.factor(x$predicted)) {
    print(table(predicted = x$predicted))
  } else {
    print(summary(x$predicted))
  }
  invisible(x)
}

#' @rdname results
#' @method summary fsknn_prediction
#' @export
summary.fsknn_prediction <- function(object, ...) {
  check_no_more(...)
  structure(
    list(
      lines = format(object), error = object$error,
      classes = if (!is.null(object$confusion)) by_class(object$confusion)
    ),
    class = "summary.fsknn_prediction"
  )
}

# Counts the members of each class, those predicted, and those predicted
# correctly.
by_class <- function(confusion) {
  right <- diag(confusion)
  data.frame(
    class = rownames(confusion),
    number = as.vector(rowSums(confusion)),
    predicted = as.vector(colSums(confusion)),
    sensitivity = as.vector(right / rowSums(confusion)),
    precision = as.vector(right / colSums(confusion))
  )
}

#' @export
print.summary.fsknn_prediction <- function(x, ...) {
  cat(x$lines, sep = "\n")
  if (!is.null(x$classes)) {
    print(x$classes, row.names = FALSE, digits = 3)
  }
  if (!is.null(x$error)) {
    cat("By the number of neighbours:\n")
    print(x$error, row.names = FALSE, digits = 3)
  }
  invisible(x)
}

#' @rdname results
#' @method as.data.frame fsknn_prediction
#' @export
as.data.frame.fsknn_prediction <- function(x, row.names = NULL,
                                           optional = FALSE, ...) {
  check_no_more(...)
  check_unused(row.names, optional)
  count <- length(x$predicted)
  columns <- list(point = seq_len(count))
  columns$name <- x$names
  columns$truth <- x$truth
  columns$predicted <- x$predicted
  frame <- as.data.frame(columns, stringsAsFactors = FALSE)
  if (!is.null(x$probability)) {
    shares <- as.data.frame(x$probability, optional = TRUE)
    classes <- colnames(x$probability)
    names(shares) <- paste0("probability_", id_text(factor(classes, classes)))
    frame <- cbind(frame, shares)
  }
  frame$fold <- x$folds
  frame
}

#' @rdname results
#' @method plot fsknn_prediction
#' @export
plot.fsknn_prediction <- function(x, ..., which = c("error", "confusion")) {
  check_no_more(...)
  which <- check_choice(which, c("error", "confusion"), "which")
  rlang::check_installed("ggplot2", "to draw predictions.")
  if (is.null(x$truth)) {
    abort_argument(
      "There is nothing to draw: these are points whose labels are not known.",
      current_env()
    )
  }
  title <- format(x)[[1]]
  if (which == "error") {
    return(draw_error(x, title))
  }
  if (is.null(x$confusion)) {
    abort_argument(
      "There is no confusion matrix of numbers: {.arg which} can be
       {.val error} only.",
      current_env()
    )
  }
  draw_confusion(x$confusion, title)
}

draw_error <- function(x, title) {
  is_class <- is.factor(x$truth)
  shown <- data.frame(
    k = x$error$k, error = if (is_class) x$error$error else x$error$rmse
  )
  guess <- if (is_class) {
    1 - max(table(x$truth)) / length(x$truth)
  } else {
    root_mean_square(x$truth, mean(x$truth))
  }
  word <- if (is_class) {
    "always the commonest class"
  } else {
    "always the mean"
  }
  ggplot2::ggplot(shown, ggplot2::aes(x = .data$k, y = .data$error)) +
    ggplot2::geom_hline(
      yintercept = guess, linetype = "dashed", colour = "grey40"
    ) +
    ggplot2::annotate(
      "text", x = Inf, y = guess, hjust = 1.05, vjust = -0.6, size = 3,
      colour = "grey30", label = word
    ) +
    ggplot2::geom_line(colour = "#6FA3C7") +
    ggplot2::geom_point(colour = "#0B3C5D", size = 1.8) +
    ggplot2::scale_x_continuous(
      breaks = function(limits) setdiff(whole_breaks(limits), 0)
    ) +
    ggplot2::scale_y_continuous(
      labels = if (is_class) share_label else ggplot2::waiver(),
      limits = c(0, NA), expand = ggplot2::expansion(c(0, 0.08))
    ) +
    ggplot2::labs(
      title = title, x = "Neighbours, k",
      y = paste0(
        if (is_class) "Wrong" else "Root mean square error", " (n = ",
        format_count(length(x$truth)), ")"
      )
    ) +
    theme_summary()
}

share_label <- function(share) {
  paste0(format(100 * share, trim = TRUE), "%")
}

draw_confusion <- function(confusion, title) {
  shown <- as.data.frame(confusion)
  of <- rowSums(confusion)[as.character(shown$truth)]
  shown$share <- shown$Freq / of
  words <- paste0(
    rownames(confusion), " (", format_count(rowSums(confusion)), ")"
  )
  shown$truth <- factor(
    words[as.integer(shown$truth)], rev(words)
  )
  ggplot2::ggplot(
    shown, ggplot2::aes(x = .data$predicted, y = .data$truth)
  ) +
    ggplot2::geom_tile(ggplot2::aes(fill = .data$share), colour = "white") +
    ggplot2::geom_text(ggplot2::aes(
      label = format_counts(.data$Freq), colour = .data$share > 0.5
    )) +
    ggplot2::scale_colour_manual(
      values = c("TRUE" = "white", "FALSE" = "grey15"), guide = "none"
    ) +
    ggplot2::scale_fill_gradient(
      low = "#EEF4F9", high = "#0B3C5D", limits = c(0, 1), labels = share_label,
      name = "of the true class"
    ) +
    ggplot2::scale_x_discrete(expand = c(0, 0)) +
    ggplot2::scale_y_discrete(expand = c(0, 0)) +
    ggplot2::labs(title = title, x = "Predicted", y = "Truth (points)") +
    theme_summary() +
    ggplot2::theme(
      panel.grid = ggplot2::element_blank(),
      legend.title = ggplot2::element_text(size = 9),
      legend.key.width = ggplot2::unit(30, "pt")
    )
}

# Methods for plans: summary, data frame and plot.

#' @rdname results
#' @method as.data.frame fsknn_plan
#' @export
as.data.frame.fsknn_plan <- function(x, row.names = NULL, optional = FALSE,
                                     ...) {
  check_no_more(...)
  check_unused(row.names, optional)
  row <- one_row(unclass(x))
  row$num_devices <- nrow(x$devices)
  row
}

#' @rdname results
#' @method summary fsknn_plan
#' @export
summary.fsknn_plan <- function(object, ...) {
  check_no_more(...)
  room <- room_for(object)
  all <- as.double(object$num_splits) * object$chunks_per_split
  structure(
    list(
      num_points = object$num_points, num_features = object$num_features,
      num_queries = object$num_queries, k = object$k,
      metric = describe_metric(object$metric, object$sign, object$weighted),
      backend = object$backend,
      workers = if (object$backend == "cuda") {
        tally(nrow(object$devices), "GPU")
      } else {
        tally(object$num_threads, "thread")
      },
      share_computed = object$num_chunks / all,
      filter = object$filter,
      bytes_peak = object$bytes_peak, bytes_free = room,
      bytes_file = object$bytes_file, in_place = isTRUE(object$in_place),
      fits = object$bytes_peak <= room
    ),
    class = "summary.fsknn_plan"
  )
}

# Returns the bytes that the plan may use, on the machine or on the GPU with the
# least memory.
room_for <- function(plan) {
  if (plan$backend == "cuda") {
    limits <- c(plan$devices$memory_free, plan$max_device_memory)
    return(min(limits[limits > 0]))
  }
  free_memory()
}

#' @export
print.summary.fsknn_plan <- function(x, ...) {
  points <- paste(
    tally(x$num_points, "point"), "of", tally(x$num_features, "feature")
  )
  if (x$num_queries > 0) {
    points <- paste0(points, ", ", tally(x$num_queries, "query point"))
  }
  where <- if (x$backend == "cuda") "each GPU" else "this machine"
  lines <- c(
    "Search" = paste0(points, ", k = ", format_count(x$k), ", ", x$metric),
    "Runs on" = paste0(x$backend, ", ", x$workers),
    "Work" = paste0(
      percent(x$share_computed), " of the matrix, ",
      if (nzchar(x$filter)) paste("filter:", x$filter) else "no filter"
    ),
    "Memory" = paste0(
      format_bytes(x$bytes_peak), ", and ", format_bytes(x$bytes_free),
      " free on ", where, if (!x$fits) ": does not fit"
    ),
    "Temporary file" = if (x$bytes_file > 0 && !x$in_place) {
      format_bytes(x$bytes_file)
    }
  )
  cat(paste0(format(paste0(names(lines), ":")), " ", lines), sep = "\n")
  invisible(x)
}

#' @rdname results
#' @method plot fsknn_plan
#' @export
plot.fsknn_plan <- function(x, ...) {
  check_no_more(...)
  rlang::check_installed("ggplot2", "to draw a plan.")
  shown <- plan_cells(x)
  segments <- paste("segment", seq_len(x$num_segments))
  few <- x$num_segments <= length(cluster_colours)
  shown$fill <- if (few) {
    factor(segments[shown$segment], levels = segments)
  } else {
    shown$segment
  }
  chunk <- paste0(
    format_count(x$num_splits), " x ", format_count(x$chunks_per_split),
    " chunks of ", format_count(x$chunk_size), " points on a side, ",
    format_count(x$num_chunks), " computed"
  )
  scale <- if (few) {
    ggplot2::scale_fill_manual(
      values = stats::setNames(
        utils::head(cluster_colours, x$num_segments), segments
      )
    )
  } else {
    ggplot2::scale_fill_viridis_c(end = 0.95, name = "segment")
  }
  ggplot2::ggplot(
    shown[shown$computed, ],
    ggplot2::aes(x = .data$column, y = .data$row, fill = .data$fill)
  ) +
    ggplot2::geom_tile(colour = "white", linewidth = 0.2) +
    scale +
    ggplot2::scale_x_continuous(
      position = "top", labels = format_counts,
      limits = c(0, x$padded_points), expand = c(0.01, 0)
    ) +
    ggplot2::scale_y_reverse(
      labels = format_counts, limits = c(max(shown$bottom), 0),
      expand = c(0.01, 0)
    ) +
    ggplot2::labs(
      title = paste0(
        tally(x$num_points, "point"), " of ",
        tally(x$num_features, "feature"), ", backend ", x$backend
      ),
      caption = paste0(chunk, if (attr(shown, "several")) {
        "; a cell stands for several"
      }, "\nA row of chunks is a split, the splits of one worker a segment"),
      x = "Points", y = if (x$num_queries > 0) "Query points" else "Points"
    ) +
    ggplot2::coord_equal() +
    theme_summary() +
    ggplot2::theme(
      legend.position = "right", panel.grid = ggplot2::element_blank(),
      legend.title = if (few) {
        ggplot2::element_blank()
      } else {
        ggplot2::element_text(size = 9)
      }
    )
}

# Returns the chunks or, if there are many, cells that represent several. A cell
# has its position in points, its segment, and whether it is computed. By
# symmetry, split I meets the splits up to half of all after it.
plan_cells <- function(plan, most = 40) {
  down <- min(plan$num_splits, most)
  across <- min(plan$chunks_per_split, most)
  cells <- expand.grid(i = seq_len(down) - 1, j = seq_len(across) - 1)
  all <- as.double(plan$num_splits) * plan$chunks_per_split
  cells$computed <- if (plan$num_chunks < all) {
    ahead <- (cells$j - cells$i) %% down
    2 * ahead < down | (2 * ahead == down & cells$i < ahead)
  } else {
    TRUE
  }
  height <- plan$num_splits * plan$chunk_size / down
  width <- plan$chunks_per_split * plan$chunk_size / across
  split <- floor(cells$i / down * plan$num_splits)
  cells <- data.frame(
    row = (cells$i + 0.5) * height, column = (cells$j + 0.5) * width,
    bottom = (cells$i + 1) * height,
    segment = pmin(split %/% plan$splits_per_segment + 1, plan$num_segments),
    computed = cells$computed
  )
  attr(cells, "several") <- plan$num_splits > most ||
    plan$chunks_per_split > most
  cells
}

# A plot of a neighbourhood as a web page. inst/htmlwidgets/neighbourhood.js
# draws its content. The content consists of vectors in lists, so that one point
# or edge is no special case.

draw_page <- function(picture, caption) {
  points <- picture$points
  edges <- picture$edges
  width <- edge_widths(edges$strength, picture$strength)
  dash <- c(solid = "", dashed = "7 5", dotted = "2 4")
  focus <- points$label[points$focus]
  drawn <- list(
    title = paste("Neighbourhood of", focus), caption = caption,
    points = lapply(list(
      x = points$x, y = points$y, label = points$label, fill = points$fill,
      shape = symbol_names(points$shape), focus = points$focus,
      text = point_words(picture)
    ), I),
    edges = lapply(list(
      from = edges$from - 1L, to = edges$to - 1L,
      colour = unname(line_colours[edges$line]), width = width,
      dash = unname(dash[line_types[edges$line]]), text = edge_words(picture)
    ), I),
    scale = page_scale(picture),
    legend = page_legend(picture, width, dash)
  )
  htmlwidgets::createWidget(
    "neighbourhood", drawn, package = "fsknn",
    sizingPolicy = htmlwidgets::sizingPolicy(
      defaultWidth = 900, defaultHeight = 620, browser.fill = TRUE,
      knitr.figure = TRUE
    )
  )
}

page_scale <- function(picture) {
  if (!is.null(picture$limit)) {
    list(
      title = picture$title, limit = signif(picture$limit, 3),
      colours = I(diverging(seq(-1, 1, length.out = 9), 1))
    )
  }
}

# Lists points, then widths of edges, then line types if they differ.
page_legend <- function(picture, width, dash) {
  points <- picture$points
  if (is.null(points$value)) {
    shown <- unname(picture$groups)
    parts <- list(list(
      title = picture$title,
      entries = Map(point_entry, shown, picture$shapes[shown],
                    picture$colours[shown])
    ))
  } else {
    shown <- intersect(names(sign_words_of_value), points$sign[!points$focus])
    fill <- ifelse(shown == "not known", unknown_colour, "white")
    parts <- list(list(
      title = "Point",
      entries = Map(
        point_entry, sign_words_of_value[shown], sign_shapes[shown], fill
      )
    ))
  }
  edges <- picture$edges
  if (nrow(edges) > 0) {
    few <- order(edges$strength)[unique(round(
      seq(1, nrow(edges), length.out = min(3, nrow(edges)))
    ))]
    few <- few[!duplicated(sprintf("%.2f", edges$strength[few]))]
    parts <- c(parts, list(list(
      title = picture$strength,
      entries = Map(
        line_entry, sprintf("%.2f", edges$strength[few]), width[few],
        line_colours[["an edge"]], ""
      )
    )))
    lines <- unique(edges$line)
    if (length(lines) > 1) {
      parts <- c(parts, list(list(
        title = "Edge",
        entries = Map(
          line_entry, lines, 2, line_colours[lines], dash[line_types[lines]]
        )
      )))
    }
  }
  lapply(parts, function(part) {
    part$entries <- unname(part$entries)
    part
  })
}

point_entry <- function(label, shape, fill) {
  list(label = label, shape = symbol_names(shape), fill = fill)
}

line_entry <- function(label, width, colour, dash) {
  list(label = label, line = TRUE, width = width, colour = colour, dash = dash)
}

# Returns the text that the pointer shows for a point or an edge.
point_words <- function(picture) {
  points <- picture$points
  degree <- tabulate(c(picture$edges$from, picture$edges$to), nrow(points))
  says <- if (!is.null(points$value)) {
    value <- ifelse(
      is.na(points$value), "not known", sprintf("%.3f", points$value)
    )
    paste0(gsub("\n", " ", picture$title, fixed = TRUE), ": ", value)
  } else {
    title <- if (is.null(picture$title)) "" else paste0(picture$title, ": ")
    paste0(title, points$group)
  }
  says[points$focus & is.na(points$value %||% NA)] <- "the point itself"
  paste0(
    points$label, "\n", says, "\n", degree,
    ifelse(degree == 1, " edge here", " edges here")
  )
}

edge_words <- function(picture) {
  edges <- picture$edges
  if (nrow(edges) == 0) {
    return(character())
  }
  label <- picture$points$label
  paste0(
    label[edges$from], " - ", label[edges$to],
    if (!is.null(edges$correlation)) sprintf("\nr = %.3f", edges$correlation),
    sprintf("\ndistance %.4g", edges$distance)
  )
}

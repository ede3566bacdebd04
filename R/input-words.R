# Formats values, counts and lists for messages.

# Describes a value that is wrong, briefly: "2.5", "NA", "the string \"a\"", "a
# vector of length 2", "a list".
describe_value <- function(value) {
  if (is.null(value)) {
    return("NULL")
  }
  if (is.factor(value) || is.object(value) || !is.atomic(value) ||
        !is.null(dim(value))) {
    return(describe_type(value))
  }
  if (length(value) != 1) {
    return(paste0("a vector of length ", length(value)))
  }
  if (is.character(value) && !is.na(value)) {
    if (!is_valid_text(value)) {
      value <- encodeString(value)
    }
    return(paste0("the string \"", value, "\""))
  }
  if (is.numeric(value)) {
    return(format_bound(value))
  }
  as.character(value)
}

describe_type <- function(value) {
  if (is.null(value)) {
    return("NULL")
  }
  if (is.factor(value)) {
    return("a factor")
  }
  if (is.data.frame(value)) {
    return("a data frame")
  }
  if (is.object(value)) {
    return(paste0("an object of class <", class(value)[[1]], ">"))
  }
  if (is.function(value)) {
    return("a function")
  }
  shape <- switch(
    as.character(length(dim(value))),
    "0" = "vector", "1" = "array", "2" = "matrix", "array"
  )
  if (is.list(value)) {
    return(if (shape == "vector") "a list" else paste("a list", shape))
  }
  if (!is.atomic(value)) {
    return(paste0("an object of type ", typeof(value)))
  }
  type <- if (is.double(value)) "numeric" else typeof(value)
  article <- if (grepl("^[aeiou]", type)) "an" else "a"
  paste(article, type, shape)
}

# Converts names to text. as.character() makes "1e+05" of the id 100000. So does
# factor(): its levels are numbers if all are written as R writes numbers.
id_text <- function(names) {
  if (is.factor(names)) {
    levels <- levels(names)
    numbers <- suppressWarnings(as.numeric(levels))
    if (!anyNA(numbers) && identical(as.character(numbers), levels)) {
      levels <- id_text(numbers)
    }
    return(levels[names])
  }
  text <- as.character(names)
  if (is.numeric(names) && !is.object(names)) {
    whole <- which(names == trunc(names) & abs(names) < 2^64)
    text[whole] <- sprintf("%.0f", names[whole] + 0)
  }
  text
}

# Converts columns of numeric names to text for printing.
with_id_text <- function(data, columns) {
  for (column in columns) {
    if (is.numeric(data[[column]]) || is.factor(data[[column]])) {
      data[[column]] <- id_text(data[[column]])
    }
  }
  data
}

# Joins at most `limit` of the items, with "and N more" if some are left.
first_few <- function(items, total = length(items), limit = 3L) {
  shown <- utils::head(items, limit)
  more <- total - length(shown)
  text <- paste(shown, collapse = ", ")
  if (more > 0) {
    text <- paste0(text, ", and ", format_count(more), " more")
  }
  text
}

# Numbers in messages have a decimal point, whatever options(OutDec = ) says.
format_count <- function(count) {
  format(
    count, big.mark = ",", decimal.mark = ".", scientific = FALSE, trim = TRUE
  )
}

# Formats 1000000000 in full rather than as 1e+09, but keeps 1e+300.
format_bound <- function(number) {
  plain <- is.finite(number) && abs(number) < 1e15
  format(
    number, digits = 15, decimal.mark = ".",
    scientific = if (plain) FALSE else 5
  )
}

tally <- function(count, what) {
  paste0(format_count(count), " ", what, if (count != 1) "s")
}

# Returns "\"pearson\", \"spearman\" and \"bicor\"". Versions of cli join the
# last of a list differently.
quote_metrics <- function(names) {
  quoted <- paste0("\"", names, "\"")
  last <- length(quoted)
  if (last < 2) {
    return(quoted)
  }
  paste(paste(quoted[-last], collapse = ", "), "and", quoted[[last]])
}

format_bytes <- function(bytes) {
  units <- c("B", "KiB", "MiB", "GiB", "TiB", "PiB")
  power <- pmin(floor(log(pmax(bytes, 1), 1024)), length(units) - 1)
  scaled <- bytes / 1024^power
  digits <- ifelse(power == 0 | scaled >= 100, 0L, 1L)
  paste(sprintf("%.*f", digits, scaled), units[power + 1])
}

# Returns 0.12 s, 12 s, 3.4 min, 5.6 h, 7.8 days.
format_seconds <- function(seconds) {
  vapply(seconds, function(one) {
    units <- c(s = 1, min = 60, h = 3600, days = 86400)
    unit <- if (one < 120) {
      "s"
    } else if (one < 7200) {
      "min"
    } else if (one < 172800) {
      "h"
    } else {
      "days"
    }
    value <- one / units[[unit]]
    paste(sprintf(if (value < 0.995) "%.2f" else "%.3g", value), unit)
  }, "", USE.NAMES = FALSE)
}

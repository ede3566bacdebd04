# What the articles with stored measurements share: reading and formatting.

knitr::opts_chunk$set(echo = FALSE, crop = NULL, message = FALSE)

stored <- function(file, ...) {
  utils::read.csv(
    system.file("extdata", "bench", file, package = "fsknn", mustWork = TRUE),
    stringsAsFactors = FALSE, ...
  )
}
count <- function(n) {
  format(n, big.mark = ",", trim = TRUE, scientific = FALSE)
}
# Numbers as text, and nothing for missing ones.
or_nothing <- function(text, x) ifelse(is.na(x), "", text)
seconds <- function(x) {
  or_nothing(ifelse(x < 10, sprintf("%.3f", x), sprintf("%.1f", x)), x)
}
milliseconds <- function(x) {
  small <- x < 0.1
  or_nothing(ifelse(small, sprintf("%.4f", x), seconds(x)), x)
}
gigabytes <- function(bytes) {
  ifelse(is.na(bytes) | bytes == 0, "", sprintf("%.1f", bytes / 1e9))
}
# The median, and how many times the time of knn_search() it is.
with_ratio <- function(rows, search) {
  ratio <- rows$median / search
  ratio <- ifelse(ratio < 10, sprintf("%.1fx", ratio), sprintf("%.0fx", ratio))
  once <- ifelse(rows$runs == 1, "^1^", "")
  or_nothing(paste0(seconds(rows$median), " (", ratio, ")", once), rows$median)
}
with_spread <- function(rows) {
  range <- paste(seconds(rows$lowest), "to", seconds(rows$highest))
  of_runs <- ifelse(rows$runs > 1, paste0(" (", range, ")"), "^1^")
  or_nothing(paste0(seconds(rows$median), of_runs), rows$median)
}
# The text cell(rows, one) of each program (rows of the table) and column.
spread_out <- function(rows, column, cell) {
  who <- unique(rows$who)
  columns <- unique(column)
  out <- vapply(columns, function(one) {
    here <- rows[column == one, ]
    search <- here$median[here$who == "knn_search()"]
    cell(here[match(who, here$who), ], search)
  }, character(length(who)))
  out <- data.frame(who, out)
  names(out) <- c("program", columns)
  out
}
show <- function(table, ...) knitr::kable(table, row.names = FALSE, ...)

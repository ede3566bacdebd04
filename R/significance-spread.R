# Means of squares. Values are first divided by a power of two, so that their
# squares stay within the range of a double. This changes no bit of a result.

# Returns the power of two at or below each magnitude, or 1 for 0 and non-finite
# ones.
power_below <- function(most) {
  power <- 2^pmin(pmax(floor(log2(most)), -1022), 1023)
  power[!is.finite(most) | most == 0] <- 1
  power
}

unit_of_values <- function(...) {
  power_below(max(abs(range(0, ..., finite = TRUE))))
}

# Returns one power of two for each row.
unit_of_rows <- function(values) {
  most <- double(nrow(values))
  for (at in seq_len(ncol(values))) {
    most <- pmax(most, abs(values[, at]), na.rm = TRUE)
  }
  power_below(most)
}

standard_deviation <- function(values) {
  unit <- unit_of_values(values)
  stats::sd(values / unit) * unit
}

# Returns that of the differences, NA or NaN if there are none.
root_mean_square <- function(values, from = 0) {
  unit <- unit_of_values(values, from)
  sqrt(mean((values / unit - from / unit)^2)) * unit
}

mean_difference <- function(values, from) {
  unit <- unit_of_values(values, from)
  mean(values / unit - from / unit) * unit
}

# Similarities of pairs that were found by distance. For Proportional
# Similarity, Sorensen and Jaccard, the core rounds the similarity once and uses
# 1 - similarity as the distance. If the similarity is below 1/2, its last bits
# are lost, and such pairs are measured again.

# Takes edges from the core, a list or data frame of from and to (by number) and
# distance. Adds the similarity if edges of this metric store one.
with_similarity <- function(found, search, call = caller_env()) {
  if (!keeps_similarity(search$request$metric)) {
    return(found)
  }
  if (is_allele_table(search$request$metric)) {
    return(with_alleles(found, search, call))
  }
  found$similarity <- similarity_of_pairs(
    search, found$from, found$to, found$distance, call
  )
  found
}

is_allele_table <- function(metric) {
  isTRUE(metric_facts(metric)$table)
}

# Adds the largest entry of each pair's table of alleles, and which it is: "10"
# is the counted allele of `from` with the other allele of `to`.
with_alleles <- function(found, search, call) {
  count <- length(found$from)
  found$similarity <- numeric(count)
  entry <- integer(count)
  search$request$progress <- FALSE
  for (part in pairs_that_fit(search, found$from, found$to)) {
    measured <- measure_pairs(search, found$from[part], found$to[part], call)
    found$similarity[part] <- measured$similarity
    entry[part] <- measured$entry
  }
  found$alleles <- factor(allele_pairs[entry + 1L], allele_pairs)
  found
}

allele_pairs <- c("00", "01", "10", "11")

# Returns the alleles of pairs whose ends are exchanged.
swapped_alleles <- function(alleles) {
  allele_pairs[c(1L, 3L, 2L, 4L)][as.integer(alleles)]
}

keeps_similarity <- function(metric) {
  isTRUE(metric_facts(metric)$own_similarity)
}

# Drops pairs below min_similarity from those within the distance 1 -
# min_similarity. Only pairs at exactly that distance can be below it. For
# products of rows of length 1, the core has already done so.
keep_similar <- function(found, search, call = caller_env()) {
  request <- search$request
  least <- request$within$similarity
  if (is.null(least) || is_dot_product(request$metric)) {
    return(found)
  }
  at_limit <- which(found$distance == 1 - least)
  similarity <- similarity_of_pairs(
    search, found$from[at_limit], found$to[at_limit],
    found$distance[at_limit], call
  )
  unlike <- at_limit[similarity < least]
  if (length(unlike) == 0) {
    return(found)
  }
  lapply(found[c("from", "to", "distance")], `[`, -unlike)
}

similarity_of_pairs <- function(search, from, to, distance,
                                call = caller_env()) {
  similarity <- 1 - distance
  far <- which(distance >= 0.5)
  search$request$progress <- FALSE
  for (part in pairs_that_fit(search, from[far], to[far])) {
    part <- far[part]
    measured <- measure_pairs(search, from[part], to[part], call)
    similarity[part] <- measured$similarity
  }
  similarity
}

# Splits pairs into parts. If the points are not in memory, a part needs no more
# rows than fit.
pairs_that_fit <- function(search, from, to) {
  values <- search$points$values
  if (is.matrix(values)) {
    return(row_ranges(length(from), 2^24))
  }
  room <- search$request$max_memory
  room <- if (room > 0) room else 2^30
  rows <- max(1, floor(room / (16 * ncol(values))))
  if (rows >= nrow(values)) {
    return(row_ranges(length(from), 2^24))
  }
  block_of <- function(numbers) (numbers - 1) %/% rows
  unname(split(
    seq_along(from), block_of(from) * nrow(values) + block_of(to)
  ))
}

# Triples that are written to a file during the search.

write_triples <- function(search, sink, call = caller_env()) {
  ends <- c("from", "to", "third")
  search$request$triples$with_pairs <- sink$format == "csv" ||
    search$options$metric$table
  found <- write_found(
    sink, columns_of_triples(search$request$metric), ends, search$points$names,
    function(take) {
      run_triples(search, function(part) take(with_triple_alleles(part)), call)
    }, call
  )
  asked <- search$request$triples
  new_found_file(
    sink, search, "triple", found$count, asked$least,
    checksum = found$checksum, stage = stage_attribute(asked),
    num_subset = if (!is.null(asked$contains)) length(asked$contains)
  )
}

# Searches a half, a quarter, ... of all triples at a time, as much as fits in
# memory. After a part with few triples, the next one is larger.
find_triples_for_file <- function(work, take, call) {
  asked <- work$request$triples
  room <- max(asked$most, nrow(work$values))
  bar <- new_split_bar(work$request$progress, 1, "Triples")
  on.exit(end_bar(bar))
  answer <- list(count = 0)
  part <- 1
  parts <- 1
  while (part <= parts) {
    bar$done <- (part - 1) / parts
    found <- find_triple_part(
      work, request_with_bar(work$request, bar, 1 / parts), part, parts, room,
      stops = TRUE, with_pairs = asked$with_pairs
    )
    if (identical(found$failure, "too_many_triples")) {
      part <- 2 * part - 1
      parts <- 2 * parts
      next
    }
    in_core(found, call)
    take(found)
    count <- length(found$from)
    answer$count <- answer$count + count
    answer$stats <- add_stats(answer$stats, found$stats)
    answer$checksum <- add_checksums(c(answer$checksum, found$checksum))
    found <- NULL
    part <- part + 1
    while (4 * count < room && part %% 2 == 1 && parts > 1) {
      part <- (part + 1) / 2
      parts <- parts / 2
      count <- 2 * count
    }
  }
  answer
}

# Makes predictions from neighbours, for each k from 1 on at once.

new_prediction <- function(found, labels, k, options, weighting, folds,
                           has_query) {
  index <- found$index
  weight <- donor_weights(index, found$distance, weighting)
  is_class <- is.factor(labels)
  voted <- if (is_class) {
    predict_classes(index, weight, labels)
  } else {
    predict_numbers(index, weight, labels)
  }
  predicted <- voted$by_k[, k]
  if (is_class) {
    predicted <- factor(levels(labels)[predicted], levels(labels))
    voted$by_k <- array(levels(labels)[voted$by_k], dim(voted$by_k))
  }
  truth <- if (!has_query) labels
  structure(
    list(
      predicted = predicted,
      truth = truth,
      probability = voted$probability,
      by_k = voted$by_k,
      error = if (!has_query) errors_by_k(voted$by_k, truth),
      confusion = if (!has_query && is_class) {
        table(truth = truth, predicted = predicted)
      },
      neighbours = new_neighbours(found),
      folds = folds,
      features = found$features,
      k = k, metric = options$metric$name, sign = options$sign,
      weighting = weighting,
      weighted = !is.null(options$weights), num_donors = length(labels),
      names = found$names
    ),
    class = "fsknn_prediction", searched = found$searched
  )
}

# Weights are relative to that of the nearest, so that no distance overflows.
# Missing neighbours have weight 0.
donor_weights <- function(index, distance, weighting) {
  weight <- array(1, dim(index))
  if (weighting == "distance") {
    nearest <- distance[, 1]
    weight <- nearest / distance
    at_once <- which(nearest == 0)
    weight[at_once, ] <- distance[at_once, ] == 0
  }
  weight[is.na(index)] <- 0
  weight
}

# If classes have equal votes, the one whose first neighbour is nearest wins.
predict_classes <- function(index, weight, labels) {
  count <- nrow(index)
  classes <- nlevels(labels)
  of <- matrix(as.integer(labels)[index], nrow = count)
  votes <- matrix(0, count, classes)
  first <- matrix(Inf, count, classes)
  by_k <- matrix(NA_integer_, count, ncol(index))
  for (rank in seq_len(ncol(index))) {
    there <- which(!is.na(of[, rank]) & weight[, rank] > 0)
    at <- cbind(there, of[there, rank])
    votes[at] <- votes[at] + weight[there, rank]
    first[at] <- pmin(first[at], rank)
    top <- do.call(pmax, lapply(seq_len(classes), function(c) votes[, c]))
    place <- first
    place[votes < top] <- Inf
    by_k[, rank] <- max.col(-place, ties.method = "first")
    by_k[top == 0, rank] <- NA
  }
  total <- rowSums(votes)
  total[total == 0] <- NA
  probability <- votes / total
  colnames(probability) <- levels(labels)
  list(by_k = by_k, probability = probability)
}

predict_numbers <- function(index, weight, labels) {
  # Labels are scaled, because a sum of the largest doubles would overflow.
  unit <- unit_of_values(labels)
  value <- matrix((labels / unit)[index], nrow = nrow(index)) * weight
  value[weight == 0] <- 0
  total <- weight
  for (rank in seq_len(ncol(index))[-1]) {
    value[, rank] <- value[, rank] + value[, rank - 1]
    total[, rank] <- total[, rank] + total[, rank - 1]
  }
  by_k <- value / total * unit
  by_k[total == 0] <- NA
  list(by_k = by_k)
}

errors_by_k <- function(by_k, truth) {
  k <- seq_len(ncol(by_k))
  if (!is.factor(truth)) {
    unit <- unit_of_values(by_k, truth)
    by_k <- by_k / unit
    truth <- truth / unit
    off <- by_k - truth
    return(data.frame(
      k = k, number = colSums(!is.na(off)),
      rmse = sqrt(colMeans(off^2, na.rm = TRUE)) * unit,
      mae = colMeans(abs(off), na.rm = TRUE) * unit,
      correlation = vapply(k, function(at) {
        known <- !is.na(by_k[, at])
        varies <- function(values) length(unique(values[known])) > 1
        if (varies(by_k[, at]) && varies(truth)) {
          stats::cor(by_k[known, at], truth[known])
        } else {
          NA_real_
        }
      }, 0)
    ))
  }
  bad <- by_k != as.character(truth)
  of_classes <- vapply(levels(truth), function(class) {
    colMeans(bad[truth == class, , drop = FALSE], na.rm = TRUE)
  }, numeric(length(k)))
  data.frame(
    k = k, number = colSums(!is.na(bad)), wrong = colSums(bad, na.rm = TRUE),
    error = colMeans(bad, na.rm = TRUE),
    balanced = rowMeans(matrix(of_classes, length(k)))
  )
}

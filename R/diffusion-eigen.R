# Computes the eigenpairs of a diffusion map's walk for each component.

# Up to the first size, a dense matrix is fast. Up to the second, it takes some
# seconds and is used if Lanczos' method does not converge. That happens for
# eigenvalues very close to 1.
most_dense <- 300L
most_dense_again <- 3000L

# From this size on, the matrix is replaced by a polynomial of it. Lanczos'
# method then does less dense work between products, which runs on one thread.
least_filtered <- 20000L

# An eigenpair with a larger residual causes a warning.
most_residual <- 1e-6

# `walk` is from cpp_walk(). Returns coordinates, eigenvalues, residuals,
# component and sizes.
map_components <- function(walk, num_components, time, num_threads, names,
                           call = caller_env()) {
  parts <- walk_components(walk)
  mapped <- which(parts$sizes > num_components + 1)
  columns <- paste0("DC", seq_len(num_components))
  coordinates <- matrix(
    NA_real_, length(walk$order), num_components,
    dimnames = list(names, columns)
  )
  empty <- matrix(
    NA_real_, length(mapped), num_components,
    dimnames = list(mapped, columns)
  )
  eigenvalues <- residuals <- empty
  for (at in seq_along(mapped)) {
    own <- parts$own[[mapped[[at]]]]
    rows <- seq.int(walk$first[[own]] + 1, walk$first[[own + 1]])
    points <- walk$order[rows]
    found <- leading_pairs(
      walk$walk, own, walk$degree[points], num_components, num_threads, call
    )
    there <- seq_along(found$values)
    eigenvalues[at, there] <- found$values
    residuals[at, there] <- found$residuals
    # psi is scaled so that its squares have mean 1 under the walk's stationary
    # distribution.
    scale <- sqrt(sum(walk$degree[points]) / walk$degree[points])
    for (l in there) {
      psi <- found$vectors[, l] * scale
      coordinates[points, l] <- fixed_sign(psi, points) * found$values[[l]]^time
    }
  }
  tell_unfound(eigenvalues, residuals, call)
  list(
    coordinates = coordinates, eigenvalues = eigenvalues, residuals = residuals,
    component = parts$component, sizes = parts$sizes
  )
}

# Numbers the components of two points or more by decreasing size, and equal
# ones by their first point. `own` has their numbers in the walk.
walk_components <- function(walk) {
  sizes <- as.integer(diff(walk$first))
  own <- which(sizes > 1)
  own <- own[order(-sizes[own], own, method = "radix")]
  number <- rep(NA_integer_, length(sizes))
  number[own] <- seq_along(own)
  component <- integer(length(walk$order))
  component[walk$order] <- rep(number, sizes)
  list(component = component, sizes = sizes[own], own = own)
}

# Fixes the sign: psi is positive at the point of the lowest number where it is
# at least half as large as its maximum. The maximum itself may be at two points
# with opposite signs.
fixed_sign <- function(psi, points) {
  large <- which(abs(psi) >= max(abs(psi)) / 2)
  first <- large[[which.min(points[large])]]
  if (psi[[first]] < 0) -psi else psi
}

# Returns values (descending), vectors (of length 1) and residuals of S, without
# those of the constant.
leading_pairs <- function(walk, component, degree, count, num_threads, call) {
  apply <- function(x, filter = no_filter) {
    in_core(
      cpp_walk_apply(
        walk, component, x, filter$degree, filter$low, filter$high, num_threads
      ),
      call
    )$product
  }
  dense <- function() {
    judge_pairs(dense_vectors(walk, component, degree, count, call), apply)
  }
  size <- length(degree)
  if (size <= most_dense) {
    return(dense())
  }
  check_package("RSpectra", "A diffusion map of so many points", call)
  found <- judge_pairs(sparse_vectors(apply, size, count, num_threads), apply)
  if (size <= most_dense_again && !all_found(found, count)) dense() else found
}

all_found <- function(pairs, count) {
  length(pairs$values) == count && all(pairs$residuals <= most_residual)
}

no_filter <- list(degree = 1L, low = -1, high = 1)

dense_vectors <- function(walk, component, degree, count, call) {
  matrix <- in_core(cpp_walk_dense(walk, component), call)$matrix
  # This moves the constant's eigenvalue from 1 to -2, below all others.
  constant <- sqrt(degree / sum(degree))
  found <- eigen(matrix - 3 * tcrossprod(constant), symmetric = TRUE)
  found$vectors[, seq_len(count), drop = FALSE]
}

# `choose` is a function that chooses a filter, or NULL.
sparse_vectors <- function(apply, size, count, num_threads,
                           choose = if (size >= least_filtered) choose_filter) {
  filter <- if (!is.null(choose)) choose(apply, size, count, num_threads)
  found <- lanczos_vectors(apply, size, count, filter %||% no_filter)
  if (is.null(filter)) {
    return(found)
  }
  # The polynomial is monotone above the filtered interval, so its largest
  # eigenvalues there are those of S. Inside the interval, any eigenvalue of S
  # might give them.
  values <- vapply(seq_len(NCOL(found)), function(l) {
    sum(found[, l] * apply(found[, l]))
  }, 0)
  if (NCOL(found) == count && all(values > filter$high)) {
    return(found)
  }
  lanczos_vectors(apply, size, count, no_filter)
}

lanczos_vectors <- function(apply, size, count, filter) {
  # RSpectra's warning is dropped, because the residuals say more.
  found <- suppressWarnings(RSpectra::eigs_sym(
    function(x, args) apply(x, filter), k = count, which = "LA", n = size,
    opts = list(
      # The polynomial is steep here, so a looser tolerance gives the same
      # accuracy for S.
      tol = if (filter$degree > 1) 1e-9 else 1e-12,
      ncv = min(size, max(2 * count + 1, count + 15)),
      maxitr = 5000, initvec = start_vector(size)
    )
  ))
  found$vectors
}

# The start does not use R's generator, so a map is reproducible.
start_vector <- function(size) {
  at <- seq_len(size)
  (at * 0.6180339887498949) %% 1 - 0.5
}

# Returns values (descending) and residuals of the vectors, of which some may be
# missing.
judge_pairs <- function(vectors, apply) {
  columns <- seq_len(NCOL(vectors))
  values <- residuals <- double(length(columns))
  for (l in columns) {
    product <- apply(vectors[, l])
    values[[l]] <- sum(vectors[, l] * product)
    residuals[[l]] <- sqrt(sum((product - values[[l]] * vectors[, l])^2))
  }
  order <- order(-values)
  list(
    values = values[order], residuals = residuals[order],
    vectors = vectors[, order, drop = FALSE]
  )
}

# Chooses a filter for the `count` largest eigenvalues. Some steps of Lanczos'
# method without reorthogonalisation give lower bounds of the largest
# eigenvalues, in order. The interval below the last of these is filtered out.
# Further steps to improve the bound soon cost more products than they save.
choose_filter <- function(apply, size, count, num_threads, most_steps = 240) {
  wanted <- count + 2L
  before <- 1
  lanczos <- NULL
  while (is.null(lanczos) || length(lanczos$diagonal) < most_steps) {
    lanczos <- more_lanczos(
      apply, size, lanczos, wanted + 30, num_threads
    )
    gap <- min(1 - ritz_value(lanczos, wanted), 1)
    if (gap > 0.5 * before && gap < 1) {
      break
    }
    before <- gap
  }
  high <- 1 - gap
  # At 1 the polynomial is cosh(degree * reach). With 3, that is about 10.
  reach <- acosh(1 + 2 * gap / (1 + high))
  list(
    degree = as.integer(min(max(round(3 / reach), 2), 24)), low = -1,
    high = high
  )
}

# Returns the `wanted`-th largest eigenvalue of Lanczos' tridiagonal matrix, by
# counting those above (Sturm) and bisection. eigen() is avoided: for such a
# small matrix, the threads of a BLAS wait for each other. On a busy machine,
# that can take longer than all products.
ritz_value <- function(lanczos, wanted) {
  diagonal <- lanczos$diagonal
  size <- length(diagonal)
  beside <- lanczos$beside[seq_len(size - 1)]
  reach <- c(0, abs(beside)) + c(abs(beside), 0)
  low <- min(diagonal - reach)
  high <- max(diagonal + reach)
  squared <- c(0, beside^2)
  least <- .Machine$double.eps * max(abs(low), abs(high))
  while (high - low > 4 * least) {
    middle <- (low + high) / 2
    above <- 0
    pivot <- 1
    for (at in seq_len(size)) {
      pivot <- diagonal[[at]] - middle - squared[[at]] / pivot
      if (abs(pivot) < least) {
        pivot <- -least
      }
      above <- above + (pivot > 0)
    }
    if (above >= wanted) {
      low <- middle
    } else {
      high <- middle
    }
  }
  (low + high) / 2
}

more_lanczos <- function(apply, size, state, steps, num_threads) {
  if (is.null(state)) {
    start <- start_vector(size)
    state <- list(
      before = double(size), now = start / sqrt(sum(start^2)),
      diagonal = double(), beside = double()
    )
  }
  for (step in seq_len(steps)) {
    product <- apply(state$now)
    last <- length(state$beside)
    found <- in_core(cpp_lanczos_step(
      product, state$now, state$before,
      if (last > 0) state$beside[[last]] else 0, num_threads
    ))
    state$diagonal <- c(state$diagonal, found$own)
    state$beside <- c(state$beside, found$beside)
    state$before <- state$now
    state$now <- product
  }
  state
}

tell_unfound <- function(eigenvalues, residuals, call) {
  missing <- sum(is.na(eigenvalues))
  inexact <- sum(residuals > most_residual, na.rm = TRUE)
  if (missing + inexact == 0) {
    return(invisible())
  }
  cli::cli_warn(
    c(
      "Not all eigenpairs were found.",
      x = if (missing > 0) {
        "{format_count(missing)} {cli::qty(missing)}{?is/are} missing, and
         {?its/their} coordinates NA."
      },
      x = if (inexact > 0) {
        "{format_count(inexact)} {cli::qty(inexact)}{?has/have} a residual
         above 1e-6."
      },
      i = "Fewer {.arg num_components}, a greater {.arg epsilon} or more
           neighbours make it easier."
    ),
    class = "fsknn_convergence_warning", call = call
  )
}

# Finds the smallest set of rows that satisfies all pairs of samples. The core's
# search and bound come first, and an exact solver closes the remaining gap.
#
# Measured on the remaining rows of the study (425 x 78, one constraint for each
# pair; 2 cores): lpSolve and GLPK agree on every answer. lpSolve is faster on
# most (0.1 to 1.0 s against 0.1 to 3.1 s), but returns no solution at its time
# limit. SYMPHONY is slower than both on small ones (0.3 to 1.8 s), and on one a
# failed assertion in Clp ended R. GLPK also gives the relaxed bound, respects
# its time limit, and takes constraints as triplets. It is therefore used, on
# few constraints at a time.

# Collects the parts of the problem.
new_cover <- function(levels, class, num_threads, solver, progress = FALSE) {
  same <- outer(as.integer(class), as.integer(class), "==")
  list(
    levels = levels,
    class = as.integer(class),
    same = same,
    upper = upper.tri(same),
    num_threads = num_threads,
    solver = solver,
    progress = progress
  )
}

# Returns the number of rows in which each pair of samples agrees (same class)
# or differs.
pair_counts <- function(cover, rows) {
  agree <- in_core(cpp_agreements(cover$levels[rows, , drop = FALSE]))$counts
  ifelse(cover$same, agree, length(rows) - agree)
}

# Returns what is missing for each pair, or 0.
pair_lacks <- function(cover, rows, alpha, beta) {
  need <- ifelse(cover$same, beta, alpha)
  lacks <- pmax(need - pair_counts(cover, rows), 0)
  lacks[!cover$upper] <- 0
  lacks
}

# Returns the minimum number of rows in which a pair of one class agrees.
beta_of <- function(cover, rows) {
  pairs <- cover$same & cover$upper
  if (!any(pairs)) length(rows) else min(pair_counts(cover, rows)[pairs])
}

# `target` is a size that suffices. With 0, the smallest is wanted.
solve_cover <- function(cover, alpha, beta, target, seconds, call) {
  started <- Sys.time()
  left <- function() seconds - as.double(Sys.time() - started, units = "secs")
  exact <- cover$solver == "glpk"
  found <- in_core(
    cpp_search_cover(
      cover$levels, cover$class, alpha, beta, target,
      if (exact) seconds / 2 else seconds, cover$num_threads, cover$progress
    ),
    call
  )
  answer <- list(
    chosen = found$chosen, lower_bound = found$lower_bound, solver = "none"
  )
  if (is_open(answer, target) && exact && left() > 0) {
    answer <- solve_exactly(cover, alpha, beta, target, answer, found, left)
  }
  answer
}

is_open <- function(answer, target) {
  size <- length(answer$chosen)
  size > answer$lower_bound &&
    !(target > 0 && (size <= target || answer$lower_bound > target))
}

# GLPK takes too long on larger programs. Memory matters only from 1e7 entries
# on.
max_program_entries <- 1e6
max_program_rounds <- 200L
rows_per_round <- 60L

# Solves integer programs of few constraints. The first has those that the bound
# depends on, and each next one adds those that the last solution violates. An
# optimum under some of the constraints is a lower bound under all. Rows that
# the bound's costs fix are not variables: the goal is a set smaller than the
# current one (or as small as `target`).
solve_exactly <- function(cover, alpha, beta, target, answer, found, left) {
  size <- length(answer$chosen)
  if (target > 0) {
    size <- min(size, target + 1L)
  }
  fixed <- sort(c(found$in_all, found$in_smaller))
  free <- setdiff(
    seq_len(nrow(cover$levels)), c(fixed, found$out_of_smaller)
  )
  pairs <- utils::head(found$active, 2L * rows_per_round)
  relaxed <- TRUE
  for (round in seq_len(max_program_rounds)) {
    if (as.double(nrow(pairs)) * length(free) > max_program_entries) {
      break
    }
    program <- run_glpk(
      cover, alpha, beta, fixed, free, pairs, relaxed, left()
    )
    if (is.null(program)) {
      break
    }
    answer$solver <- "Rglpk"
    if (program$status == "unknown") {
      break
    }
    # No smaller set exists, so the bound is the size itself.
    least <- if (program$status == "infeasible") Inf else program$value
    answer$lower_bound <- max(
      answer$lower_bound, min(size, ceiling(least - 1e-6))
    )
    if (answer$lower_bound >= size) {
      break
    }
    broken <- broken_pairs(cover, alpha, beta, fixed, free, program$solution)
    if (nrow(broken) > 0) {
      pairs <- unique(rbind(pairs, broken))
    } else if (relaxed) {
      relaxed <- FALSE
    } else {
      answer$chosen <- sort(c(fixed, free[program$solution > 0.5]))
      break
    }
  }
  answer$lower_bound <- as.integer(answer$lower_bound)
  answer
}

# Returns the pairs that a solution, possibly fractional, violates most.
broken_pairs <- function(cover, alpha, beta, fixed, free, solution) {
  need <- pair_lacks(cover, fixed, alpha, beta)
  used <- which(solution > 1e-9)
  values <- cover$levels[free[used], , drop = FALSE]
  weight <- solution[used]
  agree <- matrix(0, ncol(values), ncol(values))
  for (level in unique(as.vector(values))) {
    at <- values == level
    agree <- agree + crossprod(at * weight, at)
  }
  counts <- ifelse(cover$same, agree, sum(weight) - agree)
  lacks <- ifelse(need > 0, need - counts, 0)
  worst <- order(-lacks)
  worst <- worst[lacks[worst] > 1e-6]
  arrayInd(utils::head(worst, rows_per_round), dim(lacks))
}

# Solves one program. Returns NULL if GLPK gave no answer in time.
run_glpk <- function(cover, alpha, beta, fixed, free, pairs, relaxed, seconds) {
  lacks <- pair_lacks(cover, fixed, alpha, beta)[pairs]
  first <- cover$levels[free, pairs[, 1], drop = FALSE]
  second <- cover$levels[free, pairs[, 2], drop = FALSE]
  same <- rep(cover$same[pairs], each = length(free))
  counts <- which((first == second) == same, arr.ind = TRUE)
  constraints <- slam::simple_triplet_matrix(
    counts[, 2], counts[, 1], rep(1, nrow(counts)), nrow(pairs), length(free)
  )
  solved <- in_child(seconds, function() {
    Rglpk::Rglpk_solve_LP(
      rep(1, length(free)), constraints, rep(">=", nrow(pairs)), lacks,
      bounds = list(
        upper = list(ind = seq_along(free), val = rep(1, length(free)))
      ),
      types = if (relaxed) NULL else rep("B", length(free)),
      control = list(
        tm_limit = ceiling(1000 * seconds), presolve = TRUE,
        canonicalize_status = FALSE
      )
    )
  })
  if (is.null(solved$status)) {
    return(NULL)
  }
  # GLPK's status is 5 for optimal and 4 for no solution. Status 3 only means
  # that it gave up on one.
  status <- if (solved$status == 5) {
    "optimal"
  } else if (solved$status == 4) {
    "infeasible"
  } else {
    "unknown"
  }
  list(
    status = status,
    value = length(fixed) + solved$optimum,
    solution = solved$solution
  )
}

# A solver ignores Ctrl-C and sometimes its time limit. It therefore runs in a
# child process that can be killed. Returns NULL if there is no result.
in_child <- function(seconds, work) {
  until <- Sys.time() + seconds
  job <- parallel::mcparallel(work(), mc.set.seed = FALSE, silent = TRUE)
  on.exit({
    tools::pskill(job$pid, tools::SIGKILL)
    suppressWarnings(parallel::mccollect(job))
  })
  repeat {
    result <- suppressWarnings(
      parallel::mccollect(job, wait = FALSE, timeout = 0.1)
    )
    if (!is.null(result)) {
      result <- result[[1]]
      return(if (!inherits(result, "try-error")) result)
    }
    if (Sys.time() > until) {
      return(NULL)
    }
  }
}

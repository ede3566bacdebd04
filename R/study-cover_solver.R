# The smallest set of rows that fulfils all pairs of samples: the core's search
# and bound first, an exact solver for what they leave open.
#
# Measured on what is left of the study's rows (425 x 78, one constraint for
# each pair; 2 cores): lpSolve and GLPK agree on every answer. lpSolve is the
# quicker on most (0.1 to 1.0 s against 0.1 to 3.1 s), but gives no solution
# when its time is up; SYMPHONY is slower than both on small ones (0.3 to 1.8 s)
# and ended R by a failed assertion inside Clp on one. GLPK gives the relaxed
# bound too, keeps its time limit, and takes constraints as triplets: it is the
# one used, on few constraints at a time.

# What is asked, in one place.
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

# In how many rows each pair of samples agrees (same class) or differs.
pair_counts <- function(cover, rows) {
  agree <- in_core(cpp_agreements(cover$levels[rows, , drop = FALSE]))$counts
  ifelse(cover$same, agree, length(rows) - agree)
}

# What is missing for each pair; 0 where nothing is.
pair_lacks <- function(cover, rows, alpha, beta) {
  need <- ifelse(cover$same, beta, alpha)
  lacks <- pmax(need - pair_counts(cover, rows), 0)
  lacks[!cover$upper] <- 0
  lacks
}

# In how many of the rows all pairs of one class agree at least.
beta_of <- function(cover, rows) {
  pairs <- cover$same & cover$upper
  if (!any(pairs)) length(rows) else min(pair_counts(cover, rows)[pairs])
}

# `target`: a size that is small enough (0: the smallest is wanted).
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

# Larger programs take GLPK longer than anyone waits for; 1e7 entries is where
# memory would matter.
max_program_entries <- 1e6
max_program_rounds <- 200L
rows_per_round <- 60L

# Integer programs of few constraints: those that the bound leans on, then those
# that the last solution breaks, until it breaks none. An optimum under some of
# the constraints is a lower bound under all. The rows that the bound's costs
# rule in or out are not variables: what is looked for is a set smaller than the
# one at hand (or as small as `target`).
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
    # Nothing smaller: the bound is the size itself.
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

# The pairs that lack most under a solution, which may be fractional.
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

# One program; NULL where GLPK gave no answer within the time.
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
  # GLPK's words: 5 optimal, 4 no solution. 3 is only one that it gave up on.
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

# A solver hears neither Ctrl-C nor, always, its time limit: it works in a child
# process that can be ended. NULL where it gave nothing.
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

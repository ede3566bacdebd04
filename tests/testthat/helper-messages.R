# Snapshots of what a user reads, in a form that no version of testthat changes.
# Each expression of a block is shown with its output, messages, warnings and
# error. A header gives the class of a condition, and the call of an error,
# where they differ from those before. At first, errors are expected to be of
# class fsknn_argument_error, and from the call in the expression.
expect_messages <- function(block, transform = identity) {
  block <- substitute(block)
  env <- parent.frame()
  if (is.call(block) && identical(block[[1]], quote(`{`))) {
    sources <- lapply(attr(block, "srcref")[-1], source_lines)
    block <- as.list(block)[-1]
  } else {
    sources <- list(deparse(block, 500L))
    block <- list(block)
  }
  show <- condition_printer()
  said <- unlist(Map(function(expr, source) {
    c(
      paste(rep(c(">", "+"), c(1, length(source) - 1)), source),
      utils::capture.output(show_conditions(expr, env, show))
    )
  }, block, sources))
  testthat::expect_snapshot_output(writeLines(transform(said)))
}

# Returns the lines of an expression, without the indentation of the first.
source_lines <- function(srcref) {
  sub(paste0("^ {0,", srcref[[5]] - 1, "}"), "", as.character(srcref))
}

condition_printer <- function() {
  usual <- "[fsknn_argument_error]"
  last <- usual
  function(condition, expr) {
    class <- class(condition)[[1]]
    call <- if (inherits(condition, "error")) {
      called_by(conditionCall(condition))
    }
    header <- if (class == "fsknn_argument_error" &&
                    identical(call, called_by(expr))) {
      usual
    } else {
      paste0("[", paste(c(class, call), collapse = " in "), "]")
    }
    if (header != last) {
      writeLines(header)
    }
    last <<- header
    writeLines(sub("\n$", "", conditionMessage(condition)))
  }
}

# Returns the name of the function that an expression calls.
called_by <- function(expr) {
  if (rlang::is_call(expr, c("<-", "invisible"))) {
    expr <- expr[[length(expr)]]
  }
  if (rlang::is_call_simple(expr)) rlang::call_name(expr) else "none"
}

show_conditions <- function(expr, env, show) {
  tryCatch(
    withCallingHandlers(
      {
        value <- withVisible(eval(expr, env))
        if (value$visible) print(value$value)
      },
      warning = function(condition) {
        show(condition, expr)
        invokeRestart("muffleWarning")
      },
      message = function(condition) {
        show(condition, expr)
        invokeRestart("muffleMessage")
      }
    ),
    error = function(condition) show(condition, expr)
  )
}

# Returns the words of the error of a call, on one line.
words_of <- function(call, class = "fsknn_argument_error") {
  error <- testthat::expect_error(call, class = class)
  gsub("\\s+", " ", conditionMessage(error))
}

# Expects the error of a wrong argument, with some words.
expect_wrong <- function(code, words = NULL, ...) {
  testthat::expect_error(code, words, class = "fsknn_argument_error", ...)
}

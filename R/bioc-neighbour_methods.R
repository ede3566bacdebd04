# S4 classes and methods by which BiocNeighbors calls this package. They are
# defined only when BiocNeighbors is loaded, so that it need not be installed.
# They depend on the form of its generics, of which there have been three:
#
#   1.16       generics dispatch on BNINDEX and BNPARAM; an index has slots
#   2.0 - 2.4  generics dispatch on X and BNPARAM; buildIndex() comes first
#   2.5.1 on   plain functions, which call generics named ...FromIndex
#
# Each method has the arguments of its generic and only passes the given ones to
# a task (R/bioc-neighbour_tasks.R).

# This environment holds the classes and method tables. Unlike the namespace, it
# is not locked.
neighbours_home <- new.env(parent = environment())
neighbours_home$.packageName <- "fsknn"

register_neighbours <- function(bn = asNamespace("BiocNeighbors"),
                                home = neighbours_home) {
  if (isTRUE(home$done)) {
    return(invisible())
  }
  # The slot `package` loads this package in a process that receives an object.
  # Unserialising a namespace loads it, before any method is dispatched.
  methods::setClass(
    "FsknnParam", contains = "BiocNeighborParam",
    slots = c(options = "list", package = "environment"), where = home
  )
  exports <- getNamespaceExports(bn)
  api <- if ("findKnnFromIndex" %in% exports) {
    "from_index"
  } else if ("BNINDEX" %in% bn$findKNN@signature) {
    "bnindex"
  } else {
    "x"
  }
  switch(
    api,
    bnindex = register_by_bnindex(bn, home),
    x = register_by_x(bn, home),
    from_index = register_from_index(bn, home)
  )
  methods::setMethod("show", "FsknnParam", show_param, where = home)
  methods::setMethod("show", "FsknnIndex", show_index, where = home)
  home$done <- TRUE
  invisible()
}

# Registers when this package is loaded, or later when BiocNeighbors is. A
# worker may receive an object before FsknnParam() is called there.
register_when_loaded <- function() {
  if (isNamespaceLoaded("BiocNeighbors")) {
    register_neighbours()
  } else {
    setHook(
      packageEvent("BiocNeighbors", "onLoad"),
      function(...) register_neighbours()
    )
  }
}

register_by_bnindex <- function(bn, home) {
  methods::setClass(
    "FsknnIndex", contains = "BiocNeighborIndex",
    slots = c(param = "FsknnParam", kept = "environment"), where = home
  )
  set_neighbour_method(bn, "buildIndex", "FsknnParam", "build_old", home)
  tasks <- c(
    findKNN = "find_old", queryKNN = "query_old",
    findNeighbors = "within_old", queryNeighbors = "query_within_old"
  )
  signatures <- list(
    c("missing", "FsknnParam"), c("FsknnIndex", "missing"),
    c("FsknnIndex", "FsknnParam")
  )
  for (name in names(tasks)) {
    for (signature in signatures) {
      set_neighbour_method(bn, name, signature, tasks[[name]], home)
    }
  }
  methods::setMethod(
    bn$bnorder, "FsknnIndex", function(x) seq_len(ncol(x@data)), where = home
  )
}

# The slot `names` is that of BiocNeighbors' own indices since 2.0, and others
# read it.
new_index_class <- function(home) {
  methods::setClass(
    "FsknnIndex", contains = "BiocNeighborIndex",
    slots = c(
      data = "ANY", names = "ANY", param = "FsknnParam", kept = "environment"
    ),
    where = home
  )
}

new_tasks <- c(
  KNN = "find", Neighbors = "within", Distance = "distance"
)

register_by_x <- function(bn, home) {
  new_index_class(home)
  # BiocNeighbors' own method for a matrix and any parameter is as near as one
  # for anything and ours.
  for (class in c("matrix", "ANY")) {
    set_neighbour_method(bn, "buildIndex", c(class, "FsknnParam"), "build", home)
  }
  set_neighbour_method(bn, "defineBuilder", "FsknnParam", "builder", home)
  for (what in names(new_tasks)) {
    for (verb in c("find", "query")) {
      name <- paste0(verb, what)
      if (name %in% getNamespaceExports(bn)) {
        task <- task_name(verb, what)
        set_neighbour_method(bn, name, c("FsknnIndex", "ANY"), task, home)
      }
    }
  }
}

register_from_index <- function(bn, home) {
  new_index_class(home)
  set_neighbour_method(bn, "buildIndex", "FsknnParam", "build", home)
  set_neighbour_method(bn, "defineBuilder", "FsknnParam", "builder", home)
  for (what in names(new_tasks)) {
    for (verb in c("find", "query")) {
      name <- paste0(verb, if (what == "KNN") "Knn" else what, "FromIndex")
      if (name %in% getNamespaceExports(bn)) {
        task <- task_name(verb, what)
        set_neighbour_method(bn, name, "FsknnIndex", task, home)
      }
    }
  }
  exports <- getNamespaceExports(bn)
  if (all(c("saveIndex", "registerLoadIndexFunction") %in% exports)) {
    set_neighbour_method(bn, "saveIndex", "FsknnIndex", "save", home)
    bn$registerLoadIndexFunction("fsknn", load_neighbours)
  }
}

# Returns "find", "query_find", "within", "query_within", ...
task_name <- function(verb, what) {
  task <- new_tasks[[what]]
  if (verb == "find") task else paste0("query_", task)
}

set_neighbour_method <- function(bn, name, signature, task, home) {
  generic <- bn[[name]]
  arguments <- formals(generic)
  has_default <- !vapply(arguments, identical, NA, quote(expr = ))
  method <- function() NULL
  formals(method) <- arguments
  body(method) <- bquote(
    answer_neighbours(
      .(task), environment(), .(setdiff(names(arguments), "...")),
      .(names(arguments)[has_default])
    )
  )
  environment(method) <- topenv()
  methods::setMethod(generic, signature, method, where = home)
}

answer_neighbours <- function(task, frame, names, have_defaults) {
  neighbour_tasks[[task]](arguments_of(frame, names, have_defaults))
}

# Returns a list of the arguments of a call that were given or have a default,
# including those in its dots.
arguments_of <- function(frame, names, have_defaults) {
  given <- vapply(names, function(name) {
    name %in% have_defaults || !eval(call("missing", as.name(name)), frame)
  }, NA)
  c(
    mget(names[given], envir = frame),
    if (exists("...", frame, inherits = FALSE)) {
      eval(quote(list(...)), frame)
    },
    .frame = frame
  )
}

show_param <- function(object) {
  options <- object@options
  lines <- c(
    paste("class:", class(object)),
    paste("distance:", object@distance),
    if (length(options) > 0) {
      shown <- vapply(options, function(value) {
        paste(format(value), collapse = " ")
      }, "")
      paste0(names(options), ": ", shown)
    }
  )
  cat(lines, sep = "\n")
}

show_index <- function(object) {
  size <- dim(object@data)
  cat(
    paste("class:", class(object)),
    paste("size:", paste(size, collapse = " x ")),
    paste("distance:", object@param@distance),
    sep = "\n"
  )
}

#' Write neighbours into an AnnData file
#'
#' Adds a k-nearest-neighbour graph of cells to a file of AnnData (`.h5ad`). The
#' graph is stored where scanpy's `pp.neighbors()` stores its own, so
#' `tl.leiden()`, `tl.umap()` and others use it.
#'
#' @section Contents:
#' * `obsp/distances`: the distances, a CSR matrix of doubles with a row for
#'   each cell. The neighbours of a row are in order of distance, without the
#'   cell itself. Neighbours at distance 0 are stored, too.
#' * `obsp/connectivities`: the weights of UMAP's fuzzy graph, a symmetric CSR
#'   matrix of single precision. `uwot::similarity_graph()` computes them from
#'   the given neighbours; no search is made. Leiden clusters and UMAP need
#'   them.
#' * `uns/neighbors`: the names of both matrices, and `params`. `n_neighbors` is
#'   k + 1, since scanpy counts the cell itself. `metric` is the name of
#'   the metric, or `"correlation"`, as in SciPy, for Pearson's.
#'
#' With another `key`, such as `"exact"`, these are `obsp/exact_distances`,
#' `obsp/exact_connectivities` and `uns/exact`, as with scanpy's `key_added`.
#' Then use `tl.leiden(neighbors_key = "exact")`.
#'
#' @section Names of cells: If the points of `edges` have names, they must be
#' those of the cells (`adata.obs_names`), in any order. Otherwise there must be
#' as many points as cells, in the same order.
#'
#' @section The file: The neighbours are written to a copy of the file in the
#' same folder. The copy takes the name of the file when it is complete. After
#' an error or a full disk the file is unchanged. The folder needs room for the
#' copy. The place of replaced neighbours stays empty in the file until
#' `h5repack` or AnnData writes it anew.
#'
#' @param edges The neighbours of all cells: an edge data frame from
#'   [knn_graph()], the result of [knn_search()] or another shape that
#'   [as_knn()] takes, with distances. The distances of shards (see
#'   [read_knn()]) are written by blocks.
#' @param file Path of a file that AnnData 0.7 or later has written.
#' @param ... Must be empty.
#' @param key Name of the neighbours in `uns`, `"neighbors"` by default.
#' @param connectivities `TRUE` writes `obsp/connectivities`, `FALSE` does not.
#'   `NULL` (default) writes them if the package uwot is installed, and
#'   otherwise says that they are missing. Each cell needs equally many
#'   neighbours for them.
#' @param obsm Name of the element of `obsm` whose points were searched, such as
#'   `"X_pca"`. It becomes `use_rep` of `params`, which scanpy's `tl.umap()`
#'   uses for clusters of cells that are not connected. `NULL` (default) leaves
#'   it out.
#' @param overwrite `TRUE` replaces neighbours of the same key. `FALSE`
#'   (default) makes them an error.
#'
#' @returns `file`, invisibly.
#' @section Errors: These are a `fsknn_argument_error`:
#' * neighbours of queries, or without distances;
#' * names that are not those of the cells;
#' * neighbours that the file has already, unless `overwrite = TRUE`.
#'
#' A file that is not one of AnnData, or that can't be written, is a
#' `fsknn_file_error`. A missing package is a `fsknn_package_error`.
#' @inherit read_h5ad references
#' @seealso [read_h5ad()], [write_edges()] for other programs.
#' @export
#' @examples
#' if (requireNamespace("rhdf5", quietly = TRUE)) {
#'   file <- tempfile(fileext = ".h5ad")
#'   file.copy(system.file("extdata", "cells.h5ad", package = "fsknn"), file)
#'   x <- read_h5ad(file, obsm = "X_pca")
#'   edges <- knn_graph(x, k = 14, metric = "euclidean", backend = "cpu")
#'   write_h5ad_neighbours(edges, file, obsm = "X_pca")
#'   parts <- rhdf5::h5ls(file)
#'   parts[startsWith(parts$group, "/obsp"), c("group", "name", "dim")]
#' }
write_h5ad_neighbours <- function(edges, file, ..., key = "neighbors",
                                  connectivities = NULL, obsm = NULL,
                                  overwrite = FALSE) {
  check_no_more(...)
  check_supplied(edges)
  path <- check_path_in(file)
  key <- check_h5ad_name(key, "key")
  obsm <- if (!is.null(obsm)) check_h5ad_name(obsm, "obsm")
  overwrite <- check_flag(overwrite, "overwrite")
  with_graph <- check_connectivities(connectivities)
  call <- current_env()
  prefix <- if (key == "neighbors") "" else paste0(key, "_")
  names <- list(
    uns = paste0("uns/", key),
    distances = paste0("obsp/", prefix, "distances"),
    connectivities = paste0("obsp/", prefix, "connectivities")
  )
  cells <- with_h5ad(file, path, call, function(h5) {
    check_h5ad_target(h5, names, file, overwrite, obsm, call)
    h5ad_index(h5, "obs", file, call)
  })
  nn <- neighbours_of_cells(edges, cells, call)
  graph <- if (with_graph) fuzzy_graph(nn, call)
  params <- list(
    n_neighbors = as.integer(most_neighbours(nn) + 1),
    method = if (with_graph) "umap", metric = scipy_metric(edges),
    use_rep = obsm
  )
  change_h5ad(file, path, call, function(h5) {
    for (name in names) {
      if (h5_exists(h5, name)) rhdf5::H5Ldelete(h5, name)
    }
    for (group in c("obsp", "uns")) {
      if (!h5_exists(h5, group)) put_h5_group(h5, group)
    }
    put_h5_distances(h5, names$distances, nn, call)
    if (with_graph) {
      put_h5_csr(h5, names$connectivities, dim(graph), graph@p,
                 "H5T_IEEE_F32LE", function(put) put(graph@i, graph@x))
    }
    put_h5_group(h5, names$uns)
    for (which in c("connectivities", "distances")) {
      put_h5_scalar(
        h5, paste0(names$uns, "/", which, "_key"), basename(names[[which]])
      )
    }
    put_h5_group(h5, paste0(names$uns, "/params"))
    for (param in names(params)[lengths(params) > 0]) {
      put_h5_scalar(
        h5, paste0(names$uns, "/params/", param), params[[param]]
      )
    }
  })
  invisible(file)
}

check_h5ad_name <- function(name, arg, call = caller_env()) {
  if (!rlang::is_string(name) || is.na(name) || !nzchar(name) ||
        grepl("/", name, fixed = TRUE)) {
    abort_argument("{.arg {arg}} must be one name, without a slash.", call)
  }
  check_text(name, paste0("`", arg, "`"), "name", arg, call)
  enc2utf8(name)
}

check_connectivities <- function(value, call = caller_env()) {
  if (!is.null(value)) {
    if (check_flag(value, "connectivities", call = call)) {
      check_package("uwot", "`connectivities = TRUE`", call)
    }
    return(value)
  }
  is_there <- requireNamespace("uwot", quietly = TRUE)
  if (!is_there) {
    cli::cli_inform(c(
      "Connectivities are not written: the package {.pkg uwot} is not
       installed.",
      i = "scanpy's clusters and UMAP need them."
    ))
  }
  is_there
}

check_h5ad_target <- function(h5, names, file, overwrite, obsm, call) {
  check_h5ad_tables(h5, file, call)
  if (!h5_is_group(h5, "obs")) {
    abort_file(
      file, NULL, "be of AnnData 0.7 or later", "Its \"obs\" is no group",
      "AnnData for Python reads older files, and writes them anew", call
    )
  }
  if (!is.null(obsm)) {
    h5ad_matrix_name(h5, c(obsm = obsm), call)
  }
  there <- Filter(function(name) h5_exists(h5, name), unlist(names))
  if (!overwrite && length(there) > 0) {
    abort_argument(
      c(
        "{.file {file}} must not have neighbours of this {.arg key} yet.",
        x = "It has {.val {unname(there)}}.",
        i = "{.code overwrite = TRUE} replaces them, and another {.arg key}
             keeps both."
      ),
      call
    )
  }
}

# Returns neighbours with the rows and indices of the cells. Shards stay in
# their folder.
neighbours_of_cells <- function(edges, cells, call) {
  if (is_knn_shards(edges)) {
    check_shards_are_graph(edges, "edges", call)
    nn <- edges
    count <- nrow(edges)
  } else {
    nn <- read_knn_shape(edges, queries = NULL, arg = "edges", call = call)
    check_distinct_neighbours(nn, nn$names, call)
    count <- num_rows_of(nn)
    if (is.null(nn$distance)) {
      abort_argument("{.arg edges} must have distances.", call)
    }
    if (is.character(nn$names)) {
      at <- match_order(nn$names, cells, words_of_cells(), call)
      return(if (is.null(at)) nn else rows_in_order(nn, at))
    }
  }
  if (count != length(cells)) {
    abort_argument(
      "{.arg edges} must have the neighbours of the
       {tally(length(cells), \"cell\")} of {.arg file}, not of
       {tally(count, \"point\")}.",
      call
    )
  }
  nn
}

words_of_cells <- function() {
  list(
    must = "The points of {.arg {words$arg}} must be the cells of {.arg file}
            by name, each once.",
    arg = "edges", one = "cell", lacks = "{?has/have} no point"
  )
}

# Row i of the result is row at[i]: indices change with the rows.
rows_in_order <- function(nn, at) {
  place <- order(at)
  take <- function(part) {
    if (is.list(part)) part[at] else part[at, , drop = FALSE]
  }
  nn$index <- take(nn$index)
  nn$distance <- take(nn$distance)
  nn$index <- if (is.list(nn$index)) {
    lapply(nn$index, function(row) place[row])
  } else {
    array(place[nn$index], dim(nn$index))
  }
  nn
}

most_neighbours <- function(nn) {
  if (is_knn_shards(nn)) ncol(nn) else max(0, row_sizes(nn))
}

# scanpy stores SciPy's names. Returns NULL if the metric is unknown.
scipy_metric <- function(edges) {
  metric <- metric_of_neighbours(edges) %||% searched_of(edges)$metric
  if (identical(metric, "pearson")) "correlation" else metric
}

# UMAP's fuzzy graph is symmetric, so its columns are its rows.
fuzzy_graph <- function(nn, call) {
  if (is_knn_shards(nn)) {
    nn <- shards_in_memory(nn, "edges", call)
  }
  if (is.list(nn$index) || anyNA(nn$index)) {
    abort_argument(
      c(
        "{.arg edges} must have as many neighbours for every cell, since
         connectivities need them.",
        i = "{.code connectivities = FALSE} writes the distances alone."
      ),
      call
    )
  }
  nn <- add_self(nn[c("index", "distance")], "uwot")
  graph <- uwot::similarity_graph(
    nn_method = list(idx = nn$index, dist = nn$distance),
    n_threads = check_num_threads(NULL), verbose = FALSE
  )
  methods::as(graph, "generalMatrix")
}

# --- the file ----------------------------------------------------------------

# Calls change() with a copy of the file, which then takes the file's name.
# Links lead to the file that is replaced.
change_h5ad <- function(file, path, call, change) {
  whole <- normalizePath(path)
  if (file.access(whole, 2) != 0) {
    abort_unwritten(file, "It may not be written", call)
  }
  part <- paste0(whole, ".part-", cpp_random_word())
  on.exit(unlink(part, expand = FALSE))
  if (!suppressWarnings(file.copy(whole, part, copy.mode = TRUE))) {
    abort_unwritten(file, "It can't be copied: the disk may be full", call)
  }
  rlang::try_fetch(
    change_h5(part, change),
    error = function(err) {
      if (inherits(err, "fsknn_error")) {
        return(rlang::zap())
      }
      words <- sub("[.]$", "", one_line(conditionMessage(err)))
      abort_unwritten(file, words, call)
    }
  )
  in_output(cpp_name_whole(part, whole), file, call)
  invisible()
}

change_h5 <- function(path, change) {
  h5 <- open_h5(path, "H5F_ACC_RDWR")
  tryCatch(
    {
      change(h5)
      rhdf5::H5Fclose(h5)
    },
    error = function(err) {
      # On a full disk HDF5 can't close the file, and it breaks R later if it
      # does not. The emptied file has room.
      file.create(path)
      try(rhdf5::H5Fclose(h5), silent = TRUE)
      rlang::cnd_signal(err)
    }
  )
  # HDF5 refuses a file whose last bytes did not fit on the disk.
  rhdf5::H5Fclose(open_h5(path, "H5F_ACC_RDONLY"))
}

put_h5_distances <- function(h5, name, nn, call) {
  size <- if (is_knn_shards(nn)) nrow(nn) else num_rows_of(nn)
  at_once <- max(1, floor(2^22 / max(1, most_neighbours(nn))))
  ranges <- row_ranges(size, at_once)
  entries <- function(rows) {
    places <- in_places(block_of_neighbours(nn, rows, call))
    there <- !is.na(places$index)
    list(
      count = tabulate(places$row[there], length(rows)),
      index = places$index[there] - 1L, distance = places$distance[there]
    )
  }
  counts <- unlist(lapply(ranges, function(rows) entries(rows)$count))
  put_h5_csr(
    h5, name, c(size, size), c(0, cumsum(as.double(counts))),
    "H5T_IEEE_F64LE",
    function(put) {
      for (rows in ranges) {
        found <- entries(rows)
        put(found$index, found$distance)
      }
    }
  )
}

# fill() is called with put(indices, values), which appends entries.
put_h5_csr <- function(h5, name, size, begins, type, fill) {
  put_h5_group(h5, name, "csr_matrix")
  total <- begins[[length(begins)]]
  # SciPy has one type for both, which must hold the number of entries.
  whole <- if (total > max_edges) "H5T_STD_I64LE" else "H5T_STD_I32LE"
  make <- function(part, count, type) {
    put_h5_array(h5, paste0(name, "/", part), count, type)
  }
  make("data", total, type)
  make("indices", total, whole)
  make("indptr", length(begins), whole)
  put <- function(part, values, start) {
    put_h5_values(h5, paste0(name, "/", part), values, start)
  }
  put("indptr", begins, 1)
  state <- new.env(parent = emptyenv())
  state$done <- 0
  fill(function(indices, values) {
    if (length(values) > 0) {
      put("indices", indices, state$done + 1)
      put("data", values, state$done + 1)
      state$done <- state$done + length(values)
    }
  })
  group <- rhdf5::H5Gopen(h5, name)
  on.exit(rhdf5::H5Gclose(group))
  space <- rhdf5::H5Screate_simple(2)
  on.exit(rhdf5::H5Sclose(space), add = TRUE, after = FALSE)
  # h5createAttribute() of rhdf5 2.50 takes no name of a type.
  shape <- rhdf5::H5Acreate(group, "shape", "H5T_STD_I64LE", space)
  on.exit(rhdf5::H5Aclose(shape), add = TRUE, after = FALSE)
  rhdf5::H5Awrite(shape, as.integer(size))
}

put_h5_array <- function(h5, name, count, type) {
  space <- rhdf5::H5Screate_simple(count)
  on.exit(rhdf5::H5Sclose(space))
  rhdf5::H5Dclose(rhdf5::H5Dcreate(h5, name, type, space))
}

# rhdf5::h5write() would print the errors of HDF5, and go on.
put_h5_values <- function(h5, name, values, start) {
  array <- rhdf5::H5Dopen(h5, name)
  on.exit(rhdf5::H5Dclose(array))
  whole <- rhdf5::H5Dget_space(array)
  on.exit(rhdf5::H5Sclose(whole), add = TRUE, after = FALSE)
  rhdf5::H5Sselect_hyperslab(whole, start = start, count = length(values))
  part <- rhdf5::H5Screate_simple(length(values))
  on.exit(rhdf5::H5Sclose(part), add = TRUE, after = FALSE)
  rhdf5::H5Dwrite(array, values, h5spaceMem = part, h5spaceFile = whole)
}

# A string, or a whole number.
put_h5_scalar <- function(h5, name, value) {
  type <- "H5T_STD_I64LE"
  if (is.character(value)) {
    type <- rhdf5::H5Tcopy("H5T_C_S1")
    rhdf5::H5Tset_size(type, NULL) # of any length
    rhdf5::H5Tset_cset(type, "UTF-8")
  }
  space <- rhdf5::H5Screate("H5S_SCALAR")
  on.exit(rhdf5::H5Sclose(space))
  scalar <- rhdf5::H5Dcreate(h5, name, type, space)
  on.exit(rhdf5::H5Dclose(scalar), add = TRUE, after = FALSE)
  rhdf5::H5Dwrite(scalar, value)
  put_h5_encoding(
    scalar, if (is.character(value)) "string" else "numeric-scalar", "0.2.0"
  )
}

put_h5_group <- function(h5, name, type = "dict") {
  group <- rhdf5::H5Gcreate(h5, name)
  on.exit(rhdf5::H5Gclose(group))
  put_h5_encoding(group, type, "0.1.0")
}

put_h5_encoding <- function(object, type, version) {
  for (attribute in c("encoding-type", "encoding-version")) {
    rhdf5::h5writeAttribute(
      if (attribute == "encoding-type") type else version, object, attribute,
      encoding = "UTF-8", variableLengthString = TRUE, asScalar = TRUE
    )
  }
}

# A shard while it is written. put(part, row) writes the next rows, of which the
# first is row `row` of the shard. finish() gives the files their final names
# and returns these. drop() deletes unfinished files.

new_shard <- function(shard, size, claim, call) {
  if (claim$output$format == "hdf5") {
    new_hdf5_shard(shard, size, claim, call)
  } else {
    new_bin_shard(shard, size, claim, call)
  }
}

shard_name <- function(what, shard, ending) {
  sprintf("%s-%06d.%s", what, shard, ending)
}

# --- big-ann-benchmarks ------------------------------------------------------

new_bin_shard <- function(shard, size, claim, call) {
  output <- claim$output
  ending <- if (output$precision == "single") "fbin" else "dbin"
  names <- c(
    shard_name("index", shard, "ibin"), shard_name("distance", shard, ending)
  )
  files <- lapply(file.path(claim$folder, names), function(path) {
    in_shard(cpp_new_bin(enc2native(path), size[[1]], size[[2]]), output,
             call)$file
  })
  list(
    put = function(part, row) {
      rows <- part$rows %||% c(1, nrow(part$index))
      put <- function(file, ending, values, shifted) {
        in_shard(
          cpp_put_bin(
            file, ending, values, rows[[1]], rows[[2]], shifted,
            claim$num_threads
          ),
          output, call
        )
      }
      put(files[[1]], "ibin", part$index, TRUE)
      put(files[[2]], ending, part$distance, FALSE)
    },
    finish = function() {
      for (file in files) {
        in_shard(cpp_finish_bin(file), output, call)
      }
      names
    },
    drop = function() {
      for (file in files) cpp_drop_bin(file)
    }
  )
}

# --- HDF5 --------------------------------------------------------------------

new_hdf5_shard <- function(shard, size, claim, call) {
  output <- claim$output
  name <- shard_name("shard", shard, "h5")
  path <- file.path(claim$folder, name)
  part_path <- paste0(path, ".part-", cpp_random_word())
  state <- new.env(parent = emptyenv())
  in_hdf5 <- function(expr) {
    rlang::try_fetch(
      expr,
      error = function(err) {
        words <- hdf5_words(conditionMessage(err), claim$folder, size)
        abort_shard_unwritten(output, name, words, call)
      }
    )
  }
  shut <- function() {
    if (!is.null(state$file)) {
      file <- state$file
      state$file <- NULL
      rhdf5::H5Fclose(file)
    }
  }
  in_hdf5({
    state$file <- suppressMessages(rhdf5::H5Fcreate(part_path))
    float <- if (output$precision == "single") "H5T_IEEE_F32LE"
    make <- function(name, mode, type) {
      made <- suppressMessages(rhdf5::h5createDataset(
        state$file, name, size, storage.mode = mode, H5type = type,
        chunk = NULL, level = 0, filter = "NONE"
      ))
      if (!isTRUE(made)) {
        rlang::abort("HDF5 can't make a data set")
      }
    }
    make("index", "integer", NULL)
    make("distance", "double", float)
  })
  list(
    put = function(part, row) {
      part <- cut_part(part)
      in_hdf5(for (what in c("index", "distance")) {
        rhdf5::h5write(
          check_single(part[[what]], what, output, call), state$file, what,
          start = c(row, 1), count = dim(part[[what]])
        )
      })
    },
    finish = function() {
      in_hdf5(shut())
      check_hdf5_room(part_path, size, output, name, call)
      in_shard(cpp_name_whole(part_path, path), output, call)
      name
    },
    drop = function() {
      try(shut(), silent = TRUE)
      unlink(part_path, expand = FALSE)
    }
  )
}

largest_float <- (2 - 2^-23) * 2^127

# HDF5 would store such a value as infinite.
check_single <- function(values, what, output, call) {
  if (what == "distance" && output$precision == "single" &&
        any(abs(values) > largest_float & is.finite(values), na.rm = TRUE)) {
    rlang::abort("a value is too large for 4 bytes")
  }
  values
}

# Some libraries report no error if the last bytes do not fit on the disk.
check_hdf5_room <- function(path, size, output, name, call) {
  bytes <- prod(size) * if (output$precision == "single") 8 else 12
  if (!isTRUE(file.size(path) >= bytes)) {
    abort_shard_unwritten(output, name, "it is shorter than its values", call)
  }
}

# Messages of HDF5 have many lines. If the disk is full, that is the cause.
hdf5_words <- function(words, folder, size) {
  room <- cpp_bytes_free(folder)$bytes
  if (is.numeric(room) && room < 12 * prod(size)) {
    return("No space left on device")
  }
  trimws(gsub("[[:space:]]+", " ", words))
}

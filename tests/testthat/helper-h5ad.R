# The file of AnnData that the package has, and Python with the package anndata.

cells_file <- function() {
  skip_if_not_installed("rhdf5")
  system.file("extdata", "cells.h5ad", package = "fsknn")
}

# Copies it to "cells.h5ad" in the working folder.
copy_cells <- function() {
  file.copy(cells_file(), "cells.h5ad", overwrite = TRUE)
  "cells.h5ad"
}

# Debian's Python may not be the first in the path.
python_with_anndata <- function() {
  for (python in c("python3", "/usr/bin/python3")) {
    found <- suppressWarnings(system2(
      python, c("-c", shQuote("import anndata")), stdout = FALSE, stderr = FALSE
    ))
    if (found == 0) {
      return(python)
    }
  }
  skip("No Python here has the package anndata.")
}

# Runs lines of Python in the working folder. Returns what they print.
in_python <- function(python, lines) {
  writeLines(
    c("import anndata, h5py, numpy, pandas, scipy.sparse", lines), "script.py",
    useBytes = TRUE
  )
  said <- suppressWarnings(system2(python, "script.py", stdout = TRUE,
                                   stderr = "errors"))
  if (!is.null(attr(said, "status"))) {
    stop(paste(readLines("errors"), collapse = "\n"))
  }
  said
}

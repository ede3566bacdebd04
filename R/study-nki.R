#' Data of the breast-cancer study
#'
#' Reads expression values, probe annotation and clinical data of the patients
#' that Arefin et al. (2012) studied. They are those of van de Vijver et al.
#' (2002), or of the related study of van 't Veer et al. (2002). The form is the
#' same for every source. This package contains none of these data.
#'
#' @section Sources:
#' `"nki295"` is read from the first of these that exists:
#' * the Bioconductor package seventyGeneData: its data set `vanDeVijver` has
#'   24,481 probes of 295 patients;
#' * the Bioconductor package breastCancerNKI: its data set `nki` has 24,481
#'   probes of 337 patients, those of both studies;
#' * a folder with the file `nki295_small.rds`: 500 probes of 295 patients.
#'
#' `vignette("breast-cancer")` needs the first of these for Fig. 2 of Arefin et
#' al. (2012), and for the three data sets of their Fig. 4c. Without it, the
#' vignette shows the graph of 500 probes of these patients. It also shows the
#' component in all probes of 78 patients, and times of simulated data.
#'
#' `"vantveer78"` is read from a folder with the file `vantveer78_full.rds`:
#' 24,481 probes of 78 patients, with missing values. `"vantveer78_876"` is read
#' from a folder with the file `vantveer78_876.rds`: 876 of these probes,
#' without missing values.
#'
#' The folder is the argument `folder`, or otherwise `options(fsknn.data = )`.
#' Each of its files is a list in the format of [readRDS()]. Its elements are
#' `expr` (whole numbers, probes x patients), `scale` (log10 ratio = `expr /
#' scale`), `probe`, `symbol`, `sample` and `clinical`. The last is a data frame
#' with a row for each patient.
#'
#' @param dataset The patients and probes: `"nki295"` (default), `"vantveer78"`
#'   or `"vantveer78_876"`. See "Sources" below.
#' @param ... Must be empty.
#' @param folder The only folder to read from. `NULL` (default) tries all
#'   sources.
#'
#' @returns A `SummarizedExperiment` with patients in columns. Its assay `ratio`
#'   has log10 ratios to the reference, as double, `NA` if missing. Row names
#'   are probes. `rowData` has `probe`, `symbol` (`""` if unknown), and further
#'   columns of the source. `colData` begins with
#'   * `relapse_years`: years to the first relapse, or of follow-up without one.
#'     For `"vantveer78"`, years to a distant metastasis, or of follow-up;
#'   * `metastasis`: whether there was a distant metastasis (for `"vantveer78"`,
#'     within five years);
#'   * `metastasis_years`: years to the first distant metastasis, or of
#'     follow-up without one.
#'
#'   All columns of the source follow under their own names. `metadata()` has
#'   the source of the data.
#' @section Time and event:
#' `metastasis_years` and `metastasis` are a pair for `survival::Surv()`. If
#' `metastasis` is `FALSE`, the time is censored. For 101 of the 295 patients,
#' it is the time to their metastasis (`TIMEmeta`). The other 194 were followed
#' without one to their death or last visit (`TIMEsurvival`). Deaths are
#' censored like other ends of follow-up.
#'
#' Of these 194 patients, 19 had another recurrence before that. Their follow-up
#' did not end with it, since 13 of the 101 patients had one before their
#' metastasis.
#'
#' `relapse_years` has no such pair: no column marks other relapses, and without
#' a relapse it is the time of follow-up. Arefin et al. (2012) use it as a plain
#' number, which mixes the two.
#' @section Errors:
#' If no source exists, an error of class `fsknn_data_error` (also
#' `fsknn_error`) says how to get the data. A file with other content is an
#' error of the same class.
#' @references
#' van de Vijver MJ, He YD, van 't Veer LJ, et al. (2002). A Gene-Expression
#' Signature as a Predictor of Survival in Breast Cancer. *New England Journal
#' of Medicine* 347:1999-2009. \doi{10.1056/NEJMoa021967}
#'
#' van 't Veer LJ, Dai H, van de Vijver MJ, et al. (2002). Gene expression
#' profiling predicts clinical outcome of breast cancer. *Nature* 415:530-536.
#' \doi{10.1038/415530a}
#'
#' Arefin AS, Riveros C, Berretta R, Moscato P (2012). GPU-FS-kNN: A Software
#' Tool for Fast and Scalable kNN Computation Using GPUs. *PLoS ONE* 7(8):
#' e44000. \doi{10.1371/journal.pone.0044000}
#' @seealso [add_phenotype()]; `vignette("breast-cancer", "fsknn")`.
#' @export
#' @examples
#' study <- try(nki_study(), silent = TRUE)
#' if (!inherits(study, "try-error")) {
#'   study <- add_phenotype(study, "relapse_years", "clinical metastasis",
#'                          missing = "drop")
#'   complete <- stats::complete.cases(SummarizedExperiment::assay(study))
#'   nearest_to(study[complete, ], "clinical metastasis", k = 5)
#' }
nki_study <- function(dataset = c("nki295", "vantveer78", "vantveer78_876"),
                      ..., folder = NULL) {
  check_no_more(...)
  dataset <- check_choice(dataset, names(study_files), "dataset")
  check_folder(folder)
  # The package is only located: loading takes seconds, in vain if there are no
  # data.
  if (!nzchar(system.file(package = "SummarizedExperiment"))) {
    abort_data(c(
      "The package {.pkg SummarizedExperiment} is needed, and is not
       installed.",
      i = "Install it with
           {.code BiocManager::install(\"SummarizedExperiment\")}."
    ))
  }
  find_study(dataset, folder)
}

# Files in a data folder.
study_files <- c(
  nki295 = "nki295_small.rds",
  vantveer78 = "vantveer78_full.rds",
  vantveer78_876 = "vantveer78_876.rds"
)

# Packages with all probes of the 295 patients, the preferred one first.
study_packages <- c(seventyGeneData = "vanDeVijver", breastCancerNKI = "nki")

find_study <- function(data, folder, packages = study_packages,
                       load = load_data_set, call = caller_env()) {
  if (is.null(folder) && data == "nki295") {
    for (package in names(packages)) {
      set <- load(package, packages[[package]])
      if (!is.null(set)) {
        return(study_from_set(set, package, packages[[package]], call))
      }
    }
  }
  if (is.null(folder)) {
    folder <- getOption("fsknn.data")
    check_folder(folder, "option {.code fsknn.data}", call)
  }
  if (is.null(folder)) {
    abort_no_data(data, packages, call)
  }
  study_from_folder(folder, data, call)
}

check_folder <- function(folder, what = "{.arg folder}", call = caller_env()) {
  if (is.null(folder) || (rlang::is_string(folder) && dir.exists(folder))) {
    return(invisible())
  }
  given <- describe_value(folder)
  abort_argument(
    paste(what, "must be the path of a folder, not {given}."), call
  )
}

# Returns a data set of a package, or NULL if it does not exist.
load_data_set <- function(package, name) {
  if (!nzchar(system.file(package = package)) ||
        !requireNamespace("Biobase", quietly = TRUE)) {
    return(NULL)
  }
  holder <- new.env()
  found <- tryCatch(
    utils::data(list = name, package = package, envir = holder),
    warning = function(condition) NULL
  )
  if (is.null(found)) NULL else holder[[name]]
}

# Converts an ExpressionSet to the study's form.
study_from_set <- function(set, package, name, call = caller_env()) {
  if (!inherits(set, "ExpressionSet")) {
    abort_data(
      "The data set {.code {name}} of {.pkg {package}} must be an
       ExpressionSet, not {describe_type(set)}.",
      call
    )
  }
  clinical <- Biobase::pData(set)
  features <- Biobase::fData(set)
  event <- column_of(clinical, c("EVENTmeta", "TTMevent", "e.dmfs"))
  years <- column_of(clinical, c("TIMErecurrence", "RFS"))
  if (is.null(years)) {
    # breastCancerNKI counts days.
    days <- column_of(clinical, c("t.rfs", "t.dmfs"))
    years <- in_years(days)
  }
  to_event <- column_of(clinical, "TIMEmeta")
  followed <- column_of(clinical, "TIMEsurvival")
  if (is.null(to_event)) {
    to_event <- in_years(column_of(clinical, "t.dmfs"))
    followed <- in_years(column_of(clinical, "t.os"))
  }
  new_study(
    Biobase::exprs(set),
    symbol = column_of(
      features,
      c("symbol", "Gene.symbol", "HUGO.gene.symbol", "Gene", "Gene.name")
    ),
    features = features, years = years, event = event,
    event_years = event_years(event, to_event, followed, years),
    clinical = clinical, from = paste0(package, "::", name)
  )
}

in_years <- function(days) {
  if (!is.null(days)) days / 365.25
}

# Returns the years to the event, or of follow-up without one. If a source lacks
# either, years to a relapse or of follow-up replace it.
event_years <- function(event, to_event, followed, years) {
  if (is.null(event)) {
    return(NULL)
  }
  out <- ifelse(event == 1, to_event %||% years, followed %||% years)
  ifelse(is.na(out), years, out)
}

# Returns the first of these columns that exists, ignoring case.
column_of <- function(table, names) {
  at <- match(tolower(names), tolower(colnames(table)))
  at <- at[!is.na(at)]
  if (length(at) > 0) table[[at[[1]]]]
}

study_from_folder <- function(folder, data, call = caller_env()) {
  file <- file.path(folder, study_files[[data]])
  if (!file.exists(file)) {
    abort_data(
      c(
        "The folder {.file {folder}} must hold the file
         {.file {basename(file)}}.",
        i = "See {.code ?nki_study} for what is in it."
      ),
      call
    )
  }
  content <- tryCatch(readRDS(file), error = function(err) NULL)
  wanted <- c("expr", "scale", "probe", "symbol", "sample", "clinical")
  fits <- is.list(content) && all(wanted %in% names(content)) &&
    is.matrix(content$expr) && is.data.frame(content$clinical) &&
    nrow(content$expr) == length(content$probe) &&
    ncol(content$expr) == nrow(content$clinical)
  if (!fits) {
    abort_data(
      c(
        "The file {.file {file}} must be a list as {.code ?nki_study} says.",
        x = if (is.null(content)) "It can't be read." else
          "It lacks a part, or the parts don't fit each other."
      ),
      call
    )
  }
  values <- content$expr / content$scale
  dimnames(values) <- list(content$probe, content$sample)
  clinical <- content$clinical
  years <- clinical$TIMErecurrence %||% (clinical$months / 12)
  event <- clinical$EVENTmeta %||% clinical$metastasis
  new_study(
    values, symbol = content$symbol, features = NULL, years = years,
    event = event, event_years = event_years(
      event, clinical$TIMEmeta, clinical$TIMEsurvival, years
    ),
    clinical = clinical[names(clinical) != "metastasis"],
    from = file
  )
}

new_study <- function(values, symbol, features, years, event, event_years,
                      clinical, from) {
  symbol <- as.character(symbol %||% rep("", nrow(values)))
  symbol[is.na(symbol)] <- ""
  annotation <- data.frame(probe = rownames(values), symbol = symbol)
  others <- setdiff(colnames(features), names(annotation))
  if (length(others) > 0) {
    annotation <- cbind(annotation, features[others])
  }
  row.names(annotation) <- make.unique(rownames(values))
  rownames(values) <- row.names(annotation)
  patients <- data.frame(
    relapse_years = as.numeric(years %||% rep(NA, ncol(values))),
    metastasis = as.logical(event %||% rep(NA, ncol(values))),
    metastasis_years = as.numeric(event_years %||% rep(NA, ncol(values)))
  )
  others <- setdiff(colnames(clinical), names(patients))
  patients <- cbind(patients, clinical[others])
  row.names(patients) <- colnames(values)
  SummarizedExperiment::SummarizedExperiment(
    list(ratio = values), rowData = annotation, colData = patients,
    metadata = list(
      study = "van de Vijver et al. (2002), van 't Veer et al. (2002)",
      source = from
    )
  )
}

abort_data <- function(message, call = caller_env(), .envir = parent.frame()) {
  cli_abort(
    message,
    class = c("fsknn_data_error", "fsknn_error"), call = call, .envir = .envir
  )
}

abort_no_data <- function(data, packages, call) {
  packages <- if (data == "nki295") names(packages)
  missing <- paste0("{.pkg ", packages, "}", collapse = " nor ")
  abort_data(
    c(
      "The study's data {.val {data}} are not here.",
      x = if (length(packages) > 0) {
        paste("Neither", missing, "is installed.")
      },
      x = "{.code options(fsknn.data = )} names no folder.",
      i = if (length(packages) > 0) {
        "{.code BiocManager::install(\"seventyGeneData\")} brings all 24,481
         probes of the 295 patients."
      },
      i = "Or name a folder with the file {.file {study_files[[data]]}}: see
           {.code ?nki_study}."
    ),
    call
  )
}

# Imitates seventyGeneData's documented object: an ExpressionSet with the
# columns of the study's clinical table.
fake_set <- function(num_probes, num_patients, days = FALSE) {
  probes <- paste0("NM_", seq_len(num_probes))
  patients <- paste("Sample", seq_len(num_patients))
  values <- matrix(
    (seq_len(num_probes * num_patients) %% 97) / 100, num_probes, num_patients,
    dimnames = list(probes, patients)
  )
  years <- seq(1, 18, length.out = num_patients)
  clinical <- if (days) {
    data.frame(t.rfs = years * 365.25, e.dmfs = rep_len(0:1, num_patients))
  } else {
    data.frame(
      SampleID = seq_len(num_patients), EVENTmeta = rep_len(0:1, num_patients),
      TIMErecurrence = years
    )
  }
  rownames(clinical) <- patients
  features <- data.frame(
    Substance = probes, Gene = rep_len(c("ARF1", NA), num_probes),
    row.names = probes
  )
  Biobase::ExpressionSet(
    Biobase::assayDataNew(exprs = values, pValue = values),
    Biobase::AnnotatedDataFrame(clinical),
    Biobase::AnnotatedDataFrame(features)
  )
}

skip_if_no_containers <- function() {
  skip_if_not_installed("Biobase")
  skip_if_not_installed("SummarizedExperiment")
}

clinical_of <- function(study) {
  as.data.frame(SummarizedExperiment::colData(study))
}

test_that("seventyGeneData's object of 24,481 x 295 is understood", {
  skip_if_no_containers()
  set <- fake_set(24481, 295)
  study <- fsknn:::find_study("nki295", NULL, load = function(package, name) {
    if (package == "seventyGeneData" && name == "vanDeVijver") set
  })
  expect_s4_class(study, "SummarizedExperiment")
  expect_identical(dim(study), c(24481L, 295L))
  expect_identical(
    SummarizedExperiment::assay(study, "ratio"), Biobase::exprs(set)
  )
  clinical <- clinical_of(study)
  expect_identical(names(clinical)[1:2], c("relapse_years", "metastasis"))
  expect_identical(clinical$relapse_years, seq(1, 18, length.out = 295))
  expect_identical(clinical$metastasis, rep_len(c(FALSE, TRUE), 295))
  expect_identical(clinical$SampleID, 1:295)
  features <- SummarizedExperiment::rowData(study)
  expect_identical(features$probe, paste0("NM_", 1:24481))
  expect_identical(features$symbol, rep_len(c("ARF1", ""), 24481))
  expect_true("Substance" %in% names(features))
})

test_that("breastCancerNKI comes second, and its days become years", {
  skip_if_no_containers()
  set <- fake_set(30, 12, days = TRUE)
  asked <- NULL
  study <- fsknn:::find_study("nki295", NULL, load = function(package, name) {
    asked <<- c(asked, package)
    if (package == "breastCancerNKI" && name == "nki") set
  })
  expect_identical(asked, c("seventyGeneData", "breastCancerNKI"))
  expect_equal(clinical_of(study)$relapse_years, seq(1, 18, length.out = 12))
  expect_identical(
    methods::slot(study, "metadata")$source, "breastCancerNKI::nki"
  )
})

test_that("a metastasis has a time and an event, censored at last follow-up", {
  skip_if_no_containers()
  event <- c(1, 0, 0, NA)
  set <- fake_set(5, 4)
  clinical <- data.frame(
    EVENTmeta = event, TIMErecurrence = c(2, 3, 7, 1),
    # The first patient had another recurrence before, and the second survived
    # one.
    TIMEmeta = c(4, NA, NA, NA), TIMEsurvival = c(9, 6, 7, 5),
    row.names = Biobase::sampleNames(set)
  )
  Biobase::pData(set) <- clinical
  found <- clinical_of(fsknn:::study_from_set(set, "package", "name"))
  expect_identical(found$metastasis_years, c(4, 6, 7, 1))
  expect_identical(found$metastasis, c(TRUE, FALSE, FALSE, NA))
  # These are breastCancerNKI's columns, in days; one patient's survival is
  # unknown.
  Biobase::pData(set) <- data.frame(
    e.dmfs = event, t.rfs = 365.25 * c(2, 3, 7, 1),
    t.dmfs = 365.25 * c(4, 3, 7, 1), t.os = 365.25 * c(9, 6, NA, 5),
    row.names = Biobase::sampleNames(set)
  )
  found <- clinical_of(fsknn:::study_from_set(set, "package", "name"))
  expect_equal(found$metastasis_years, c(4, 6, 7, 1))
  # Without such columns, years to a relapse or of follow-up are used.
  found <- clinical_of(fsknn:::study_from_set(fake_set(5, 4), "a", "b"))
  expect_identical(found$metastasis_years, found$relapse_years)
})

test_that("an installed package's data set is found", {
  skip_if_no_containers()
  skip_if(nzchar(system.file(package = "seventyGeneData")), "It is installed")
  skip_on_cran()
  library <- withr::local_tempdir()
  package <- file.path(withr::local_tempdir(), "seventyGeneData")
  dir.create(file.path(package, "data"), recursive = TRUE)
  writeLines(
    c("Package: seventyGeneData", "Version: 0.0.1", "Title: Fake",
      "Description: A fake.", "License: none", "Author: none",
      "Maintainer: none <none@example.org>"),
    file.path(package, "DESCRIPTION")
  )
  writeLines("", file.path(package, "NAMESPACE"))
  vanDeVijver <- fake_set(25, 11)
  save(vanDeVijver, file = file.path(package, "data", "vanDeVijver.rda"))
  utils::install.packages(
    package, lib = library, repos = NULL, type = "source", quiet = TRUE,
    INSTALL_opts = c("--no-test-load", "--no-lock")
  )
  withr::local_libpaths(library, action = "prefix")
  study <- nki_study()
  expect_identical(dim(study), c(25L, 11L))
  outcome <- add_phenotype(study, "relapse_years", "clinical metastasis")
  expect_identical(nrow(nearest_to(outcome, "clinical metastasis", 3)), 3L)
})

test_that("a folder is read, by argument or option", {
  skip_if_no_containers()
  folder <- withr::local_tempdir()
  content <- list(
    expr = matrix(1:12, 4), scale = 1000, probe = paste0("p", 1:4),
    symbol = c("A", "", "B", ""), sample = c("x", "y", "z"),
    clinical = data.frame(months = c(12, 30, 60), metastasis = c(1L, 0L, 0L))
  )
  saveRDS(content, file.path(folder, "vantveer78_876.rds"))
  study <- nki_study("vantveer78_876", folder = folder)
  expect_identical(
    SummarizedExperiment::assay(study),
    matrix(1:12 / 1000, 4, dimnames = list(content$probe, content$sample))
  )
  clinical <- clinical_of(study)
  expect_identical(clinical$relapse_years, c(1, 2.5, 5))
  expect_identical(clinical$metastasis, c(TRUE, FALSE, FALSE))
  expect_identical(clinical$metastasis_years, c(1, 2.5, 5))
  withr::local_options(fsknn.data = folder)
  expect_identical(nki_study("vantveer78_876"), study)
})

test_that("the real folder gives the studies' numbers", {
  skip_if_no_containers()
  folder <- nki295_folder()
  skip_if(is.null(folder), "The folder shared/data/nki295 is not here")
  study <- nki_study("nki295", folder = folder)
  expect_identical(dim(study), c(500L, 295L))
  clinical <- clinical_of(study)
  expect_identical(sum(clinical$metastasis), 101L)
  event <- clinical$metastasis
  expect_identical(clinical$metastasis_years[event], clinical$TIMEmeta[event])
  expect_identical(
    clinical$metastasis_years[!event], clinical$TIMEsurvival[!event]
  )
  expect_true(all(clinical$metastasis_years >= clinical$relapse_years))
  outcome <- add_phenotype(study, "relapse_years", "clinical metastasis")
  found <- nearest_to(outcome, "clinical metastasis", 3)
  expect_identical(found$name[[1]], "Contig48328_RC")
  expect_equal(round(found$correlation, 4), c(0.2600, 0.2495, 0.2474))
  study <- nki_study("vantveer78", folder = folder)
  expect_identical(dim(study), c(24481L, 78L))
  expect_identical(sum(is.na(SummarizedExperiment::assay(study))), 36458L)
})

test_that("where the data are not, an error says how to get them", {
  skip_if_no_containers()
  nowhere <- function(package, name) NULL
  withr::local_options(fsknn.data = NULL)
  local_folder()
  dir.create("empty")
  dir.create("wrong")
  saveRDS(1, file.path("wrong", "nki295_small.rds"))
  writeLines("a", file.path("wrong", "vantveer78_full.rds"))
  expect_messages({
    fsknn:::find_study("nki295", NULL, load = nowhere)
    fsknn:::find_study("vantveer78", NULL, load = nowhere)
    fsknn:::find_study("nki295", NULL, load = function(package, name) 1)
    nki_study(folder = "empty")
    nki_study(folder = "wrong")
    nki_study("vantveer78", folder = "wrong")
    nki_study(folder = "nowhere")
    nki_study("nki")
    nki_study("nki295", 1)
  })
})

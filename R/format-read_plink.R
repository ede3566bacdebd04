#' Read genotypes from PLINK files
#'
#' Opens the genotypes of PLINK 1, three files with one name: `.bed`
#' (genotypes), `.bim` (SNPs) and `.fam` (samples). The result is `x` for
#' [knn_graph()] and the other verbs. SNPs are points and samples are features,
#' so the graph joins SNPs. With `points = "columns"` it joins samples.
#'
#' Values are copies of one allele: 0, 1, 2, or `NA` if the genotype is missing.
#' * `allele = "A1"` counts the first allele of the `.bim` file, as
#'   `plink --recode A` does. This is usually the rarer one.
#' * `allele = "A2"` counts the second allele, as snpStats does: its
#'   `as(genotypes, "numeric")` after `read.plink()`.
#'
#' Correlations of two SNPs are the same with both. PLINK itself may exchange
#' the alleles of a SNP when it reads a file, unless it is called with
#' `--keep-allele-order`. This function never does.
#'
#' The square of a Pearson correlation is the value of `plink --r2`, which
#' leaves out samples with parents in the `.fam` file. A SNP without variation
#' has no correlation: see `constant` in [point_options()].
#'
#' @section Genotypes in other objects:
#' All verbs also take these. Their packages must be installed.
#' * A `SnpMatrix` of snpStats has samples in rows: use `points = "columns"` for
#'   SNPs. Values are copies of the second allele.
#' * A `VCF` of VariantAnnotation has variants in rows. Values are the numbers
#'   of alternative alleles in `GT` (0, 1, 2), whichever these are, or `NA` if
#'   an allele is not known. `assay = "DS"` takes dosages.
#'
#' @section Missing genotypes:
#' Searches stop if a genotype is missing, and say how many are. The option `na`
#' of [point_options()] says how to treat them. `na = "pairwise"` compares two
#' SNPs over the samples that both have. Correlations are then as PLINK's, and
#' `"ccc"` and `"duo"` as CoMet's. The genotypes must fit in memory.
#'
#' @section Names:
#' SNPs have the names of the `.bim` file. A SNP that is called `.`, or has the
#' name of another SNP, is called `chromosome:position:A1:A2` instead. A message
#' says how many SNPs this concerns. If these names are repeated, too, `.1`,
#' `.2` and so on are appended. Samples have the individual identifiers of the
#' `.fam` file, or `family:individual` if some individual identifiers are
#' repeated.
#'
#' @section Memory:
#' The `.bed` file stays as it is, at 2 bits a genotype, and its SNPs are read
#' when they are used. Genotypes that do not fit in memory as doubles
#' (`max_memory` in [run_options()]) are read by blocks, as vectors are: see
#' [read_points()]. The files must not change meanwhile. With
#' `points = "columns"`, a block holds some SNPs of all samples.
#'
#' @param file Path of the `.bed` file, with or without its ending.
#' @param ... Must be empty.
#' @param allele The allele that is counted: `"A1"` (default) or `"A2"`.
#' @param bim,fam Paths of the other two files. `NULL` (default) replaces the
#'   ending of `file`. They may be compressed (gzip, bzip2, xz).
#'
#' @returns An object of class `fsknn_plink`, which represents the files. It has
#'   `dim()` and `dimnames()`; `x[rows, ]` and `as.matrix()` read integers. Two
#'   elements are data frames:
#'   * `x$variants`, a row for each SNP: `name`, `chromosome`, `position`, `a1`
#'     and `a2` (alleles), `cm` (genetic distance), and `id` (the name in the
#'     `.bim` file). It is `vertices` for [as_igraph()], [write_edges()]
#'     and `as.data.frame()` of edges.
#'   * `x$samples`, a row for each sample: `name`, `sex` (`"male"`, `"female"`
#'     or `NA`), `phenotype`, `family`, `individual`, `father` and `mother`. A
#'     phenotype of -9 is `NA`, and so is 0 if all phenotypes are -9, 0, 1 or 2.
#'
#'   Their columns can be named as those of a container, such as
#'   `block = "chromosome"` in [knn_graph()] or `outcome = "phenotype"` in
#'   [nearest_to()].
#' @section Errors:
#' These are a `fsknn_file_error`, which names the file and what was found:
#' * a `.bed` file that does not begin as one of PLINK 1, or has another length
#'   than its SNPs and samples need;
#' * a `.bed` file with one sample after the other, which `plink --make-bed`
#'   converts;
#' * a line of the other files without six fields, or without a whole number as
#'   position;
#' * two samples with the same identifiers;
#' * a `.bed` file that has changed after it was opened, if its first bytes or
#'   its length show this.
#' @references
#' Purcell S, Neale B, Todd-Brown K, et al. (2007). PLINK: A Tool Set for
#' Whole-Genome Association and Population-Based Linkage Analyses. *American
#' Journal of Human Genetics* 81(3): 559-575. \doi{10.1086/519795}
#'
#' Chang CC, Chow CC, Tellier LC, Vattikuti S, Purcell SM, Lee JJ (2015).
#' Second-generation PLINK: rising to the challenge of larger and richer
#' datasets. *GigaScience* 4: 7. \doi{10.1186/s13742-015-0047-8}
#'
#' The format: <https://www.cog-genomics.org/plink/1.9/formats#bed>
#' @seealso [read_points()] for other files.
#' @export
#' @examples
#' # a small study: 20 SNPs of 40 samples, in pairs that are inherited together
#' folder <- tempfile()
#' dir.create(folder)
#' study <- file.path(folder, "study")
#' code <- matrix(sample(c(0, 2, 3), 40 * 10, replace = TRUE), nrow = 40)
#' code <- code[, rep(1:10, each = 2)]
#' code[1, 2] <- 1 # a missing genotype
#' four <- array(code, c(4, 10, 20))
#' writeBin(
#'   as.raw(c(0x6c, 0x1b, 0x01, colSums(four * 4^(0:3)))), paste0(study, ".bed")
#' )
#' writeLines(
#'   paste(rep(1:2, each = 10), paste0("rs", 1:20), 0, 100 * 1:20, "A", "G"),
#'   paste0(study, ".bim")
#' )
#' writeLines(
#'   paste0("F", 1:40, " S", 1:40, " 0 0 0 -9"), paste0(study, ".fam")
#' )
#'
#' x <- read_plink(study)
#' x
#' x[1:3, 1:8]
#'
#' # pairs in linkage disequilibrium, r^2 of at least 0.8
#' edges <- threshold_graph(
#'   x, min_similarity = sqrt(0.8), sign = "absolute", na = "pairwise"
#' )
#' head(edges)
#'
#' # with the place of each SNP
#' place <- x$variants[c("name", "chromosome", "position")]
#' head(as.data.frame(edges, vertices = place))
#' g <- as_igraph(edges, vertices = x$variants)
#' unlink(folder, recursive = TRUE)
read_plink <- function(file, ..., allele = c("A1", "A2"), bim = NULL,
                       fam = NULL) {
  check_no_more(...)
  check_supplied(file)
  call <- current_env()
  if (rlang::is_string(file) && !grepl("[.]bed$", file, ignore.case = TRUE)) {
    file <- paste0(file, ".bed")
  }
  path <- check_path_in(file)
  allele <- check_choice(allele, c("A1", "A2"), "allele")
  bytes <- check_bed_head(file, path, call)
  beside <- function(ending) sub("bed$", ending, file, ignore.case = TRUE)
  bim <- bim %||% beside("bim")
  fam <- fam %||% beside("fam")
  bim_path <- check_path_in(bim, "bim")
  fam_path <- check_path_in(fam, "fam")
  variants <- read_bim(bim, bim_path, call)
  samples <- read_fam(fam, fam_path, call)
  size <- c(nrow(variants), nrow(samples))
  check_bed_length(file, bytes, size, c(bim, fam), call)
  names <- list(variants$name, samples$name)
  new_lazy_rows(
    "fsknn_plink", size, names,
    function(rows, columns) {
      columns <- columns %||% seq_len(size[[2]])
      answer <- cpp_read_bed(enc2native(path), size, allele, rows, columns)
      values <- in_bin(answer, file, "read", call)$values
      dimnames(values) <- list(names[[1]][rows], names[[2]][columns])
      values
    },
    file = file, type = "bed", allele = allele, variants = variants,
    samples = samples
  )
}

is_plink <- function(x) {
  inherits(x, "fsknn_plink")
}

is_genotypes <- function(x) {
  inherits(x, c("fsknn_plink", "SnpMatrix", "VCF"))
}

# Returns the name of the table that describes the rows or columns of x.
plink_table <- function(x, side) {
  if ((side == "rows") == x$transposed) "samples" else "variants"
}

#' @export
`[.fsknn_plink` <- function(x, i, j, ..., drop = FALSE) {
  part <- NextMethod()
  if (is_plink(part)) {
    # Features were selected.
    side <- plink_table(part, "columns")
    kept <- match(colnames(part), part[[side]]$name)
    part[[side]] <- part[[side]][kept, , drop = FALSE]
  }
  part
}

#' @export
print.fsknn_plink <- function(x, ...) {
  what <- c("SNP", "sample")
  if (x$transposed) {
    what <- rev(what)
  }
  cat(
    tally(nrow(x), "point"), " (", what[[1]], "s) of ",
    tally(ncol(x), "feature"), " (", what[[2]], "s): copies of allele ",
    x$allele, " in \"", x$file, "\"\n", sep = ""
  )
  invisible(x)
}

# --- the three files ---------------------------------------------------------

# Checks the first bytes of the genotypes. Returns the length of their file.
check_bed_head <- function(file, path, call) {
  facts <- in_bin(cpp_bed_head(enc2native(path)), file, "read", call)
  head <- as.integer(facts$head)
  if (identical(head, c(0x6cL, 0x1bL, 0L))) {
    abort_file(
      file, NULL, "have the genotypes of one SNP after the other",
      "It has those of one sample after the other",
      "PLINK converts it: plink --bfile old --make-bed --out new", call
    )
  }
  if (!identical(head, c(0x6cL, 0x1bL, 1L))) {
    abort_file(
      file, NULL,
      "begin with the bytes 6c 1b 01, as genotypes of PLINK 1 do",
      if (length(head) == 0) {
        "It is empty"
      } else {
        paste("It begins with", paste(sprintf("%02x", head), collapse = " "))
      },
      hint_of_bed(head), call
    )
  }
  facts$bytes
}

# `others` are the files with the numbers of SNPs and samples.
check_bed_length <- function(file, bytes, size, others, call) {
  expected <- 3 + size[[1]] * ceiling(size[[2]] / 4)
  if (bytes != expected) {
    abort_file(
      file, NULL, "be as long as its SNPs and samples need",
      paste0(
        tally(size[[1]], "SNP"), " of \"", others[[1]], "\" and ",
        tally(size[[2]], "sample"), " of \"", others[[2]], "\" take ",
        tally(expected, "byte"), ", and it has ", format_count(bytes)
      ),
      call = call
    )
  }
}

hint_of_bed <- function(head) {
  if (length(head) == 3 && identical(head[1:2], c(0x6cL, 0x1bL))) {
    "PLINK 2 converts its own files: plink2 --pfile old --make-bed --out new"
  } else if (length(head) > 0 && all(head %in% c(9:13, 32:126))) {
    "It seems to be text. Genomic regions have files with this ending, too"
  }
}

read_bim <- function(file, path, call) {
  table <- read_plink_table(
    file, path, c("chromosome", "id", "cm", "position", "a1", "a2"), "SNP", call
  )
  number <- function(column, whole = FALSE) {
    values <- suppressWarnings(as.numeric(table[[column]]))
    good <- is.finite(values)
    if (whole) {
      good <- good & values == trunc(values) &
        abs(values) <= .Machine$integer.max
    }
    if (!all(good)) {
      at <- which(!good)[[1]]
      abort_file(
        file, table$line[[at]],
        paste(
          "have a", if (whole) "whole", "number as",
          if (whole) "position" else "genetic distance"
        ),
        paste("It has", quote_text(table[[column]][[at]])), call = call
      )
    }
    if (whole) as.integer(values) else values
  }
  data.frame(
    name = snp_names(table), chromosome = table$chromosome,
    position = number("position", whole = TRUE), a1 = table$a1, a2 = table$a2,
    cm = number("cm"), id = table$id
  )
}

# Names must be unique.
snp_names <- function(table) {
  names <- table$id
  unclear <- names == "." | names %in% names[duplicated(names)]
  if (!any(unclear)) {
    return(names)
  }
  names[unclear] <- paste(
    table$chromosome, table$position, table$a1, table$a2, sep = ":"
  )[unclear]
  count <- sum(unclear)
  cli::cli_inform(
    c(
      i = "{format_count(count)} SNP{cli::qty(count)}{?s} {?has/have} no unique
           name, and {?is/are} called chromosome:position:A1:A2."
    ),
    class = "fsknn_names_message"
  )
  make.unique(names)
}

read_fam <- function(file, path, call) {
  table <- read_plink_table(
    file, path,
    c("family", "individual", "father", "mother", "sex", "phenotype"),
    "sample", call
  )
  name <- table$individual
  if (anyDuplicated(name) > 0) {
    name <- paste(table$family, table$individual, sep = ":")
  }
  if (anyDuplicated(name) > 0) {
    twice <- which(name == name[duplicated(name)][[1]])
    abort_file(
      file, table$line[[twice[[2]]]],
      "have identifiers that no other line has",
      paste0(
        "Family \"", table$family[[twice[[1]]]], "\" and individual \"",
        table$individual[[twice[[1]]]], "\" are those of line ",
        table$line[[twice[[1]]]]
      ),
      call = call
    )
  }
  data.frame(
    name = name, sex = c("male", "female")[match(table$sex, c("1", "2"))],
    phenotype = plink_phenotype(table$phenotype), family = table$family,
    individual = table$individual, father = table$father, mother = table$mother
  )
}

# By PLINK's rule, 0 is missing only if the phenotype is cases and controls.
plink_phenotype <- function(text) {
  values <- suppressWarnings(as.numeric(text))
  if (any(is.na(values) & !tolower(text) %in% c("na", "nan"))) {
    return(text)
  }
  values[values == -9] <- NA
  if (all(values %in% c(0, 1, 2, NA))) {
    values[values == 0] <- NA
  }
  values
}

# Returns the fields of each line that is not blank, and the number of the line.
read_plink_table <- function(file, path, columns, what, call) {
  lines <- read_text_lines(file, path, call)
  line <- which(grepl("[^ \t]", lines))
  if (length(line) == 0) {
    abort_file(
      file, NULL, paste0("have a line for each ", what), "It is empty",
      call = call
    )
  }
  fields <- split_fields(lines[line])
  wrong <- which(lengths(fields) != length(columns))
  if (length(wrong) > 0) {
    abort_file(
      file, line[[wrong[[1]]]],
      paste(
        "have six fields:",
        paste(columns[-6], collapse = ", "), "and", columns[[6]]
      ),
      paste("It has", number_of(length(fields[[wrong[[1]]]]), "field")),
      call = call
    )
  }
  table <- matrix(unlist(fields, use.names = FALSE), nrow = length(columns))
  table <- stats::setNames(
    lapply(seq_along(columns), function(at) table[at, ]), columns
  )
  c(table, list(line = line))
}

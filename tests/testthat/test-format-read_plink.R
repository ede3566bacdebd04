# Genotypes in files of PLINK 1.

# Writes three files. `codes` has a row for each SNP and a column for each
# sample: 0 and 3 are homozygous for the first and second allele, 2 is
# heterozygous, and 1 is missing.
put_plink <- function(codes, name = "study",
                      ids = paste0("rs", seq_len(nrow(codes))),
                      samples = paste0("S", seq_len(ncol(codes))),
                      chromosome = rep(1:2, length.out = nrow(codes))) {
  padded <- cbind(codes, matrix(0, nrow(codes), -ncol(codes) %% 4))
  four <- array(t(padded), c(4, ncol(padded) / 4, nrow(codes)))
  writeBin(
    as.raw(c(0x6c, 0x1b, 0x01, colSums(four * 4^(0:3)))), paste0(name, ".bed")
  )
  writeLines(
    paste(chromosome, ids, 0, 100 * seq_len(nrow(codes)), "A", "G", sep = "\t"),
    paste0(name, ".bim")
  )
  writeLines(paste0("F ", samples, " 0 0 0 -9"), paste0(name, ".fam"))
  invisible(name)
}

# Returns the copies of the first allele.
copies_of <- function(codes) {
  array(c(2L, NA, 1L, 0L)[codes + 1], dim(codes))
}

random_codes <- function(num_snps, num_samples, seed = 1, codes = 0:3) {
  at <- floor(uniform_numbers(num_snps * num_samples, seed) * length(codes))
  matrix(codes[at + 1], num_snps)
}

change_file <- function(file, change) {
  writeLines(change(readLines(file)), file)
}

test_that("bytes are genotypes, by the published format", {
  local_folder()
  # SNP 1 of 6 samples: 00 01 10 11 | 11 00, the first in the lowest bits.
  writeBin(
    as.raw(c(0x6c, 0x1b, 0x01, 0xe4, 0x03, 0x1b, 0xf9)), "tiny.bed"
  )
  writeLines(
    c("1\trs1\t0\t752566\tA\tG", "X\trs2\t0.51\t1\tT\tTA"), "tiny.bim"
  )
  writeLines(
    c(
      "F1 a 0 0 1 1", "F1 b 0 0 2 2", "F1 c a b 0 1", "F2 d 0 0 1 0",
      "F2 e 0 0 2 2", "F3 f 0 0 other -9"
    ),
    "tiny.fam"
  )
  first <- rbind(
    rs1 = c(a = 2L, b = NA, c = 1L, d = 0L, e = 0L, f = 2L),
    rs2 = c(0L, 1L, NA, 2L, NA, 1L)
  )
  x <- read_plink("tiny")
  expect_identical(dim(x), c(2L, 6L))
  expect_identical(dimnames(x), dimnames(first))
  expect_identical(as.matrix(x), first)
  expect_identical(as.matrix(read_plink("tiny.bed", allele = "A2")), 2L - first)
  expect_identical(x$variants, data.frame(
    name = c("rs1", "rs2"), chromosome = c("1", "X"),
    position = c(752566L, 1L), a1 = c("A", "T"), a2 = c("G", "TA"),
    cm = c(0, 0.51), id = c("rs1", "rs2")
  ))
  expect_identical(x$samples, data.frame(
    name = letters[1:6], sex = c("male", "female", NA, "male", "female", NA),
    phenotype = c(1, 2, 1, NA, 2, NA),
    family = c("F1", "F1", "F1", "F2", "F2", "F3"), individual = letters[1:6],
    father = c("0", "0", "a", "0", "0", "0"),
    mother = c("0", "0", "b", "0", "0", "0")
  ))
  expect_snapshot(x)
  expect_snapshot(t(x))
})

test_that("any rows and columns are read", {
  local_folder()
  codes <- random_codes(300, 13)
  x <- read_plink(put_plink(codes))
  all <- copies_of(codes)
  dimnames(all) <- dimnames(x)
  expect_identical(as.matrix(x), all)
  expect_identical(x[c(300, 2:4, 1), ], all[c(300, 2:4, 1), ])
  expect_identical(x[-(1:298), 5:2], all[299:300, 5:2])
  expect_identical(x[integer(), ], all[integer(), ])
  expect_identical(as.matrix(x[, c(7, 1)]), all[, c(7, 1)])
  expect_identical(x[, c(7, 1)]$samples$name, c("S7", "S1"))
  expect_identical(x[, c(7, 1)]$variants, x$variants)
  expect_identical(as.matrix(t(x)), t(all))
  expect_identical(t(x)[3:4, 300:299], t(all)[3:4, 300:299])
  expect_identical(t(x)[, 2:3]$variants$name, c("rs2", "rs3"))
  expect_wrong(x["rs1", ], "numbers of rows")
})

test_that("genotypes are searched as their matrix is, in memory and not", {
  local_folder()
  x <- read_plink(put_plink(random_codes(150, 21, codes = c(0, 2, 3))))
  all <- as.matrix(x)
  other <- read_plink(
    put_plink(random_codes(20, 21, seed = 2, codes = c(0, 2, 3)), "other")
  )
  search <- function(x, query, max_memory, ...) {
    list(
      knn_search(x, 4, "euclidean", max_memory = max_memory),
      knn_search(x, 4, max_memory = max_memory, subset = 7:9),
      knn_query(x, query, 3, "manhattan", max_memory = max_memory),
      within_search(x, distance = 0.3, max_memory = max_memory),
      knn_graph(x, 3, points = "columns", max_memory = max_memory),
      knn_graph(x, 3, "euclidean", max_memory = max_memory,
                block = rep(1:3, 50))
    )
  }
  expected <- search(all, as.matrix(other), 1e9)
  for (max_memory in c(1e9, 1e3)) {
    expect_identical(search(x, other, max_memory), expected)
  }
  withr::local_options(fsknn.temporary_folder = "none")
  expect_wrong(knn_search(x, 4, max_memory = 1e3), "must be a folder")
  expect_identical(
    knn_search(x, 4, "euclidean", max_memory = 1e3), expected[[1]]
  )
  expect_identical(
    knn_search(
      read_plink("study", allele = "A2"), 4, "euclidean", max_memory = 1e3
    ),
    expected[[1]]
  )
  expect_equal(knn_plan(x, 3)$num_points, 150)
})

test_that("missing genotypes are counted, or left out of each pair", {
  local_folder()
  codes <- random_codes(60, 30)
  x <- read_plink(put_plink(codes))
  missing <- format(sum(codes == 1))
  for (max_memory in c(1e9, 1e3)) {
    expect_error(
      knn_search(x, 3, "euclidean", max_memory = max_memory),
      paste(missing, "values are not: NA at row"), class = "fsknn_finite_error"
    )
    expect_identical(
      knn_search(x, 3, na = "mean", max_memory = max_memory),
      knn_search(as.matrix(x), 3, na = "mean")
    )
  }
  edges <- threshold_graph(
    x, min_similarity = 0.3, sign = "absolute", na = "pairwise"
  )
  r <- stats::cor(t(as.matrix(x)), use = "pairwise.complete.obs")
  near <- which(abs(r) >= 0.3 & upper.tri(r), arr.ind = TRUE)
  expect_identical(nrow(edges), nrow(near))
  expect_equal(edges$correlation, r[cbind(edges$from, edges$to)])
})

test_that("tables of SNPs and samples are known by name, and to graphs", {
  local_folder()
  codes <- random_codes(40, 24, codes = c(0, 2, 3))
  put_plink(codes)
  change_file("study.fam", function(lines) sub("-9$", "", lines))
  change_file("study.fam", function(lines) paste0(lines, seq(5.5, 17, 0.5)))
  x <- read_plink("study")
  all <- as.matrix(x)
  edges <- knn_graph(x, 2, block = "chromosome")
  expect_identical(
    values_of(edges), values_of(knn_graph(all, 2, block = rep(1:2, 20)))
  )
  expect_identical(
    values_of(nearest_to(x, outcome = "phenotype", k = 3)),
    values_of(nearest_to(all, outcome = seq(5.5, 17, 0.5), k = 3))
  )
  expect_identical(
    values_of(knn_graph(t(x), 2, adjust = ~phenotype, points = "columns")),
    values_of(knn_graph(all, 2, adjust = seq(5.5, 17, 0.5)))
  )
  expect_wrong(knn_graph(x, 2, block = "chromosom"), "Did you mean")
  skip_if_not_installed("igraph")
  g <- as_igraph(edges, vertices = x$variants)
  expect_identical(igraph::V(g)$position, x$variants$position)
  expect_identical(igraph::V(g)$name, rownames(x))
})

test_that("each SNP and sample gets a name of its own", {
  local_folder()
  codes <- random_codes(6, 5)
  put_plink(codes, ids = c("rs1", ".", "rs1", ".", "rs2", "rs3"))
  change_file("study.bim", function(lines) {
    lines[[4]] <- lines[[2]]
    lines
  })
  expect_messages(x <- read_plink("study"))
  expect_identical(
    rownames(x),
    c("1:100:A:G", "2:200:A:G", "1:300:A:G", "2:200:A:G.1", "rs2", "rs3")
  )
  expect_identical(x$variants$id[1:2], c("rs1", "."))
  put_plink(codes, ids = c(".", letters[1:5]))
  expect_messages(x <- read_plink("study"))
  put_plink(codes, samples = c("a", "b", "c", "d", "a"))
  change_file("study.fam", function(lines) sub("F", "G", lines))
  expect_error(read_plink("study"), class = "fsknn_file_error")
  change_file("study.fam", function(lines) {
    c(sub("G", "F", lines[[1]]), lines[-1])
  })
  expect_identical(
    colnames(read_plink("study")), c("F:a", "G:b", "G:c", "G:d", "G:a")
  )
})

test_that("phenotypes are missing by PLINK's rules", {
  expect_identical(plink_phenotype(c("1", "2", "0", "-9")), c(1, 2, NA, NA))
  expect_identical(plink_phenotype(c("1", "2.5", "0", "-9")), c(1, 2.5, 0, NA))
  expect_identical(plink_phenotype(c("1", "NA", "nan")), c(1, NA, NaN))
  expect_identical(plink_phenotype(c("case", "-9")), c("case", "-9"))
})

test_that("files from other systems are read, by any path", {
  local_folder()
  codes <- random_codes(5, 6)
  expected <- as.matrix(read_plink(put_plink(codes)))
  for (ending in c("bim", "fam")) {
    file <- paste0("study.", ending)
    lines <- readLines(file)
    writeBin(
      charToRaw(paste0("\ufeff", paste0(lines, "\r\n", collapse = ""), "\r\n")),
      file
    )
    packed <- gzfile(paste0(file, ".gz"), "w")
    writeLines(lines, packed)
    close(packed)
  }
  expect_identical(as.matrix(read_plink("study")), expected)
  change_file("study.bim", function(lines) paste0(" ", gsub("\t", "  ", lines)))
  expect_identical(as.matrix(read_plink("study")), expected)
  file.rename("study.bed", "study.BED")
  expect_identical(as.matrix(read_plink("study.BED")), expected)
  dir.create("a folder")
  home <- getwd()
  local_variable("HOME", home)
  file.rename("study.BED", "a folder/genotypes 1.BED")
  expect_identical(
    as.matrix(read_plink(
      "~/a folder/genotypes 1.BED", bim = "study.bim.gz", fam = "study.fam.gz"
    )),
    expected
  )
})

test_that("files that are not of this format are refused in words", {
  local_folder()
  put_plink(random_codes(3, 5))
  bytes <- readBin("study.bed", "raw", 100)
  expect_length(bytes, 9)
  put <- function(bytes) writeBin(as.raw(bytes), "study.bed")
  change <- function(line, from, to, file = "study.bim") {
    change_file(file, function(lines) {
      lines[[line]] <- sub(from, to, lines[[line]])
      lines
    })
  }
  expect_messages({
    put(c(0x6c, 0x1b, 0x00, 1:6))
    read_plink("study")
    put(c(0x6c, 0x1b, 0x10, 1:6))
    read_plink("study")
    put(charToRaw("chr1 100 200"))
    read_plink("study")
    put(c(0xdc, 0x1b, 0x01, 1:6))
    read_plink("study")
    put(raw())
    read_plink("study")
    put(c(0x6c, 0x1b))
    read_plink("study")
    put(bytes[1:8])
    read_plink("study")
    put(c(bytes, 0))
    read_plink("study")
    put(bytes)
    change(2, "200", "2e2.5")
    read_plink("study")
    change(2, "2e2.5", "200.5")
    read_plink("study")
    change(2, "200.5", "3e9")
    read_plink("study")
    change(2, "3e9", "2e2")
    change(3, "\t0\t", "\tzero\t")
    read_plink("study")
    change(3, "\tzero\t", "\t")
    read_plink("study")
    writeLines(character(), "study.bim")
    read_plink("study")
    put_plink(random_codes(3, 5))
    change(4, " 0 0", "", "study.fam")
    read_plink("study")
    put_plink(random_codes(3, 5), samples = c("a", "b", "c", "b", "a"))
    read_plink("study")
    unlink("study.fam")
    read_plink("study")
    read_plink("none")
    read_plink(5)
    read_plink("study", fam = 7)
    read_plink("study", "A2")
    read_plink("study", allele = "a1")
    read_points("study.bed")
    knn_search("study.bed", 2)
  })
  put_plink(random_codes(3, 5))
  bytes <- readBin("study.bed", "raw", 100)
  for (length in 0:8) {
    put(bytes[seq_len(length)])
    expect_error(
      read_plink("study"), class = "fsknn_file_error", label = length
    )
  }
})

test_that("a search notices that the genotypes have changed", {
  local_folder()
  codes <- random_codes(500, 7, codes = c(0, 2, 3))
  x <- read_plink(put_plink(codes))
  expected <- knn_search(as.matrix(x), 5, "euclidean")
  bytes <- readBin("study.bed", "raw", 1e4)
  expect_noticed <- function(words) {
    for (max_memory in c(1e9, 2e3)) {
      expect_error(
        knn_search(x, 5, "euclidean", max_memory = max_memory), words,
        class = "fsknn_file_error"
      )
    }
  }
  for (other in list(bytes[1:1000], c(bytes, bytes), as.raw(1:100))) {
    writeBin(other, "study.bed")
    expect_noticed("another head or length")
  }
  writeBin(bytes[1:2], "study.bed")
  expect_noticed("shorter")
  unlink("study.bed")
  expect_noticed("No such file")
  writeBin(bytes, "study.bed")
  expect_identical(
    knn_search(x, 5, "euclidean", max_memory = 2e3), expected
  )
})

# --- other programs ----------------------------------------------------------

plink_program <- function() {
  found <- Sys.which(c("plink1.9", "plink"))
  found <- found[nzchar(found)]
  testthat::skip_if(length(found) == 0, "PLINK is not installed")
  found[[1]]
}

run_plink <- function(...) {
  status <- system2(plink_program(), c(...), stdout = FALSE, stderr = FALSE)
  expect_identical(status, 0L)
}

test_that("PLINK has the same genotypes and r^2", {
  plink_program()
  local_folder()
  # 29 samples do not fill the last byte.
  run_plink("--dummy", 29, 50, 0.1, "--seed", 7, "--out", "dummy")
  # PLINK's own random alleles are independent: half of them are copied.
  x <- as.matrix(read_plink("dummy"))
  codes <- array(c(`0` = 3, `1` = 2, `2` = 0)[as.character(x)], dim(x))
  codes[is.na(codes)] <- 1
  codes <- rbind(codes, codes)
  codes[cbind(51:100, rep_len(1:29, 50))] <- 2
  # PLINK sorts SNPs by chromosome.
  x <- read_plink(put_plink(codes, chromosome = 1))
  run_plink(
    "--bfile", "study", "--recode", "A", "--keep-allele-order", "--out", "copies"
  )
  copies <- utils::read.table("copies.raw", header = TRUE, check.names = FALSE)
  expect_identical(copies$IID, colnames(x))
  copies <- t(as.matrix(copies[, -(1:6)]))
  expect_identical(sub("_A$", "", rownames(copies)), rownames(x))
  expect_identical(unname(copies), unname(as.matrix(x)))

  run_plink(
    "--bfile", "study", "--r2", "--ld-window-r2", 0.2, "--ld-window", 1000,
    "--ld-window-kb", 1000, "--allow-no-sex", "--out", "pairs"
  )
  pairs <- utils::read.table("pairs.ld", header = TRUE)
  expect_gt(nrow(pairs), 50)
  edges <- threshold_graph(
    x, min_similarity = sqrt(0.2), sign = "absolute", na = "pairwise"
  )
  place <- function(names) match(names, rownames(x))
  key <- function(a, b) paste(pmin(place(a), place(b)), pmax(place(a), place(b)))
  at <- match(key(pairs$SNP_A, pairs$SNP_B), key(edges$from, edges$to))
  expect_identical(sort(at), seq_len(nrow(edges)))
  # PLINK prints six digits.
  expect_lt(max(abs(edges$correlation[at]^2 / pairs$R2 - 1)), 5.1e-6)
})

test_that("PLINK's own .bed files are read, and those of samples refused", {
  plink_program()
  local_folder()
  codes <- random_codes(21, 10)
  x <- as.matrix(read_plink(put_plink(codes, chromosome = 1)))
  run_plink(
    "--bfile", "study", "--make-bed", "--keep-allele-order", "--out", "again"
  )
  expect_identical(as.matrix(read_plink("again")), x)
  expect_identical(
    readBin("again.bed", "raw", 100), readBin("study.bed", "raw", 100)
  )
  # PLINK converts a file in the order of samples.
  put_plink(t(codes), "turned")
  bytes <- readBin("turned.bed", "raw", 1e3)
  bytes[[3]] <- as.raw(0)
  writeBin(bytes, "old.bed")
  file.copy(c("study.bim", "study.fam"), c("old.bim", "old.fam"))
  expect_error(
    read_plink("old"), "one sample after the other", class = "fsknn_file_error"
  )
  run_plink(
    "--bfile", "old", "--make-bed", "--keep-allele-order", "--out", "new"
  )
  expect_identical(as.matrix(read_plink("new")), x)
})

test_that("snpStats has the same genotypes of the second allele", {
  skip_if_not_installed("snpStats")
  local_folder()
  x <- read_plink(put_plink(random_codes(30, 11)), allele = "A2")
  genotypes <- snpStats::read.plink("study")$genotypes
  expect_identical(
    array(as.integer(methods::as(genotypes, "numeric")), dim(genotypes)),
    unname(t(as.matrix(x)))
  )
  # Its samples are rows, and snps columns.
  for (points in c("rows", "columns")) {
    expect_identical(
      bare(knn_search(
        genotypes, 3, "euclidean", points = points, na = "pairwise"
      )),
      bare(knn_search(t(x), 3, "euclidean", points = points, na = "pairwise"))
    )
  }
})

test_that("genotypes are never taken for raw counts", {
  skip_if_not_installed("snpStats")
  local_folder()
  # Some SNPs have many more copies than the others.
  codes <- random_codes(60, 80, codes = c(0, 2, 3))
  codes[1:30, ][codes[1:30, ] == 0] <- 3
  put_plink(codes)
  genotypes <- snpStats::read.plink("study")$genotypes
  expect_message(
    knn_graph(methods::as(genotypes, "numeric"), 3),
    class = "fsknn_counts_message"
  )
  # In testthat 3.1.6, expect_no_message() accepts any message.
  expect_message(knn_graph(genotypes, 3), NA)
  expect_message(knn_graph(read_plink("study", allele = "A2"), 3), NA)
})

test_that("calls of VariantAnnotation are copies of alternative alleles", {
  calls <- rbind(a = c(x = "0/0", y = "0|1", z = "1/2"), b = c("1", ".", "./."))
  expect_identical(
    copies_of_calls(calls),
    rbind(a = c(x = 0L, y = 1L, z = 2L), b = c(1L, NA, NA))
  )
  expect_identical(
    copies_of_calls(rbind(c("0|.", NA, "0", "10/0"))), rbind(c(NA, NA, 0L, 1L))
  )
  # Loading it takes most of the time of all tests of this file.
  skip_unless_long()
  skip_if_not_installed("VariantAnnotation")
  local_folder()
  calls <- matrix(
    c("0/0", "0/1", "1|1", "./.")[random_codes(30, 9) + 1], 30,
    dimnames = list(paste0("v", 1:30), paste0("s", 1:9))
  )
  dosage <- matrix(round(2 * uniform_numbers(270), 3), 30)
  dimnames(dosage) <- dimnames(calls)
  fields <- cbind(
    1, 1:30, rownames(calls), "A", "G", ".", ".", ".", "GT:DS",
    array(paste(calls, dosage, sep = ":"), dim(calls))
  )
  head <- "##FORMAT=<ID=%s,Number=1,Type=%s,Description=\"%s\">"
  writeLines(
    c(
      "##fileformat=VCFv4.2", "##contig=<ID=1>",
      sprintf(head, c("GT", "DS"), c("String", "Float"), c("calls", "dosage")),
      paste(
        c("#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO",
          "FORMAT", colnames(calls)),
        collapse = "\t"
      ),
      apply(fields, 1, paste, collapse = "\t")
    ),
    "study.vcf"
  )
  vcf <- VariantAnnotation::readVcf("study.vcf")
  copies <- copies_of_calls(calls)
  expect_message(found <- knn_search(vcf, 3, na = "pairwise"), NA)
  expect_identical(values_of(found), knn_search(copies, 3, na = "pairwise"))
  expect_identical(
    values_of(knn_query(vcf[1:20, ], vcf[21:30, ], 3, na = "mean")),
    knn_query(copies[1:20, ], copies[21:30, ], 3, na = "mean")
  )
  expect_identical(
    values_of(knn_search(vcf, 3, assay = "DS", points = "columns")),
    knn_search(dosage, 3, points = "columns")
  )
})

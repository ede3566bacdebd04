# This is the sample of File S1 (Arefin 2012), with the mixture of tabs and
# spaces printed there.
sample_lines <- c(
  "<MicroarrayData>",
  "10\t6",
  "F_1\t1\t4.5\t2\t 7.3  8.21\t5.71",
  "F_2\t1\t3\t8\t 6.66 7.19\t1.06",
  "F_3\t3\t3\t9\t 5\t  6.67\t7.73",
  "F_4\t4\t4\t1\t 4\t  3.64\t2.92",
  "F_5\t8\t7\t1.5\t 4\t  4.91\t6.15",
  "F_6\t8\t6\t3\t 2.4  7.36\t4.76",
  "F_7\t3\t8\t3\t 3.2  5.31\t5.49",
  "F_8\t2\t1\t4.02 5.8  3.08\t7.15",
  "F_9\t4\t1\t3.7\t 2.2  1.31\t1.48",
  "F_10\t-3\t0\t3\t 1\t  3.82\t2.7",
  "<SamplesNames>",
  "\tC1\tC2\tC3\tC4\tC5\tC6",
  "<SamplesClasses>",
  "\t1\t1\t1\t0\t0\t0",
  "<EndOfFile>"
)

sample_matrix <- matrix(
  c(
    1, 4.5, 2, 7.3, 8.21, 5.71,
    1, 3, 8, 6.66, 7.19, 1.06,
    3, 3, 9, 5, 6.67, 7.73,
    4, 4, 1, 4, 3.64, 2.92,
    8, 7, 1.5, 4, 4.91, 6.15,
    8, 6, 3, 2.4, 7.36, 4.76,
    3, 8, 3, 3.2, 5.31, 5.49,
    2, 1, 4.02, 5.8, 3.08, 7.15,
    4, 1, 3.7, 2.2, 1.31, 1.48,
    -3, 0, 3, 1, 3.82, 2.7
  ),
  nrow = 10, byrow = TRUE,
  dimnames = list(paste0("F_", 1:10), paste0("C", 1:6))
)

small_lines <- c(
  "<MicroarrayData>", "2 3", "a 1 2 3", "b 4 5 6",
  "<SamplesNames>", "x y z", "<SamplesClasses>", "1 1 0", "<EndOfFile>"
)

small_matrix <- structure(
  rbind(a = c(x = 1, y = 2, z = 3), b = c(4, 5, 6)),
  classes = c(1L, 1L, 0L)
)

read_lines <- function(lines, sep = "\n") {
  local_folder()
  writeBin(charToRaw(paste0(paste(lines, collapse = sep), sep)), "file.txt")
  read_points("file.txt", "cibm")
}

with_line <- function(line, text, lines = small_lines) {
  lines[[line]] <- text
  lines
}

test_that("File S1's sample is read", {
  x <- read_lines(sample_lines)
  expect_identical(attr(x, "classes"), c(1L, 1L, 1L, 0L, 0L, 0L))
  attr(x, "classes") <- NULL
  expect_identical(x, sample_matrix)
})

test_that("File S1's sample gives its printed neighbours", {
  x <- read_lines(sample_lines)
  edges <- knn_graph(x, k = 3, sign = "negative", backend = "cpu")
  to <- rbind(
    c(8, 5, 4), c(4, 5, 3), c(3, 4, 5), c(2, 9, 1), c(1, 2, 9),
    c(7, 2, 1), c(8, 7, 1), c(5, 4, 6), c(6, 0, 9), c(4, 3, 8)
  )
  r <- rbind(
    c(-0.782624, -0.145362, -0.117918), c(-0.866238, -0.480781, -0.415669),
    c(-0.833721, -0.763127, -0.486956), c(-0.833721, -0.520289, -0.415669),
    c(-0.866238, -0.763127, -0.673579), c(-0.620824, -0.486956, -0.480781),
    c(-0.834691, -0.317340, -0.292388), c(-0.620824, -0.367099, -0.317340),
    c(-0.834691, -0.782624, -0.426985), c(-0.673579, -0.520289, -0.426985)
  )
  expect_identical(edges$from, rep(paste0("F_", 1:10), each = 3))
  expect_identical(edges$to, paste0("F_", as.vector(t(to)) + 1))
  # File S1 sums in float32 in one pass, so its printed values are off by up to
  # 1.4e-6.
  expect_lt(max(abs(edges$correlation - as.vector(t(r)))), 5e-6)
})

test_that("spaces, Windows line ends, blank lines and a byte-order mark do no harm", {
  expect_identical(read_lines(small_lines), small_matrix)
  expect_identical(read_lines(small_lines, sep = "\r\n"), small_matrix)
  expect_identical(read_lines(small_lines, sep = "\n\n \t\n"), small_matrix)
  expect_identical(
    read_lines(with_line(1, "\ufeff<MicroarrayData>")), small_matrix
  )
  expect_identical(read_lines(paste0("  ", small_lines, "\t ")), small_matrix)
})

test_that("a missing end of the last line does no harm", {
  local_folder()
  cat(paste(small_lines, collapse = "\n"), file = "file.txt")
  expect_identical(read_points("file.txt", "cibm"), small_matrix)
})

test_that("names may hold spaces where tabs part the fields", {
  lines <- with_line(3, "my gene\t1\t2\t3")
  lines <- with_line(6, "patient 1\tpatient 2\tpatient 3", lines)
  lines <- with_line(8, "no relapse\tno relapse\trelapse", lines)
  x <- read_lines(lines)
  expect_identical(rownames(x), c("my gene", "b"))
  expect_identical(colnames(x), paste("patient", 1:3))
  expect_identical(attr(x, "classes"), c("no relapse", "no relapse", "relapse"))
  expect_identical(as.vector(x), as.vector(small_matrix))
})

test_that("names in Latin-1 are read as the letters they are", {
  local_folder()
  bytes <- charToRaw(paste0(
    paste(with_line(6, "x y caf@"), collapse = "\n"), "\n"
  ))
  bytes[bytes == charToRaw("@")] <- as.raw(0xe9)
  writeBin(bytes, "file.txt")
  expect_identical(
    colnames(read_points("file.txt", "cibm")), c("x", "y", "caf\u00e9")
  )
})

test_that("classes that are written are read back as they were", {
  withr::local_dir(withr::local_tempdir())
  x <- matrix(1:4 + 0, 2, dimnames = list(c("a", "b"), c("s", "t")))
  for (classes in list(
    c("007", "001"), c("+1", "-0"), c("7", "007"), c("a", "1"), c(7L, 0L),
    c(-12L, 1000000L)
  )) {
    write_points(x, "file", "cibm", class = classes)
    expect_identical(attr(read_points("file", "cibm"), "classes"), classes)
  }
})

test_that("classes that are not all whole numbers are text", {
  x <- read_lines(with_line(8, "1 0.5 relapse"))
  expect_identical(attr(x, "classes"), c("1", "0.5", "relapse"))
  x <- read_lines(with_line(8, "12345678901 1 1"))
  expect_identical(attr(x, "classes"), c("12345678901", "1", "1"))
})

test_that("one point with one feature is read as a matrix", {
  x <- read_lines(c(
    "<MicroarrayData>", "1 1", "a 1e-3", "<SamplesNames>", "s",
    "<SamplesClasses>", "0", "<EndOfFile>"
  ))
  expect_identical(
    x, structure(matrix(1e-3, 1, 1, dimnames = list("a", "s")), classes = 0L)
  )
})

test_that("every double comes back as it was", {
  local_folder()
  values <- c(
    1 / 3, pi * 1e-300, pi * 1e300, 0.1 + 0.2, 5e-324, 1e-310, 0, -1 / 3, 1e15,
    123456789, .Machine$double.xmax, .Machine$double.xmin, 1 + 2^-52, 2^53 - 1
  )
  x <- matrix(values, nrow = 7, dimnames = list(letters[1:7], c("s 1", "s 2")))
  attr(x, "classes") <- c("ill", "well")
  write_points(x, "file.txt", "cibm")
  expect_identical(read_points("file.txt", "cibm"), x)
})

test_that("matrices of more than a block of rows come back as they were", {
  local_folder()
  # A block has 5e5 values.
  x <- matrix(
    (seq_len(300 * 1700) * 7919) %% 10007 %% 10, ncol = 300,
    dimnames = list(paste0("p", 1:1700), paste0("s", 1:300))
  )
  write_points(x, "file.txt.gz", "cibm", class = 1:300)
  attr(x, "classes") <- 1:300
  expect_identical(read_points("file.txt.gz", "cibm"), x)
})

test_that("a path that ends in .gz is compressed", {
  local_folder()
  write_points(small_matrix, "file.txt.gz", "cibm")
  write_points(small_matrix, "file.txt", "cibm")
  expect_identical(readBin("file.txt.gz", "raw", 2), as.raw(c(0x1f, 0x8b)))
  expect_identical(read_points("file.txt.gz", "cibm"), small_matrix)
  expect_identical(readLines("file.txt.gz"), readLines("file.txt"))
})

test_that("the file has the form that GPU-FS-kNN reads", {
  local_folder()
  expect_identical(
    expect_invisible(write_points(small_matrix, "file.txt", "cibm")), "file.txt"
  )
  expect_identical(readLines("file.txt"), gsub(" ", "\t", small_lines))
})

test_that("names and classes that are not there are made", {
  local_folder()
  write_points(matrix(1:4, 2), "file.txt", "cibm")
  expect_identical(
    read_points("file.txt", "cibm"),
    structure(
      matrix(c(1, 2, 3, 4), 2, dimnames = list(c("F_1", "F_2"), c("C1", "C2"))),
      classes = c(0L, 0L)
    )
  )
})

test_that("a bad file is an error that names file, line and what was expected", {
  local_folder()
  file.create("empty.txt")
  expect_messages(read_points("empty.txt", "cibm"))
  bad <- function(line, text) read_lines(with_line(line, text))
  expect_messages({
    bad(1, "<DistanceData>")
    read_lines(small_lines[-1])
    read_lines(small_lines[1])
    bad(2, "2")
    bad(2, "2 3.5")
    bad(2, "0 3")
    bad(2, "two three")
    bad(2, "3 3")
    bad(2, "1 3")
    bad(2, "2 4")
    bad(2, "2147483000 3")
    bad(3, "a 1 2")
    bad(4, "b 4 5 6 7")
    bad(4, "b 4 5 6 b 7 8 9")
    bad(4, "my gene\t4\t5")
    bad(4, "b 4 five 6")
    bad(4, "b 4 NA 6")
    bad(4, "b 4 5,5 6")
    bad(4, "b 4 5 1e999")
    bad(4, "b 4 5 Inf")
    bad(4, "a 4 5 6")
    read_lines(small_lines[1:3])
    read_lines(small_lines[1:4])
    read_lines(small_lines[-5])
    read_lines(small_lines[1:5])
    bad(6, "x y")
    bad(6, "x y z zz")
    bad(6, "x y x")
    read_lines(small_lines[-6])
    read_lines(small_lines[-7])
    read_lines(small_lines[1:7])
    bad(8, "1 1")
    read_lines(small_lines[-8])
    read_lines(small_lines[-9])
    read_lines(c(small_lines, "", "c 7 8 9"))
  })
})

test_that("lines are counted with the blank ones", {
  lines <- c("", small_lines[1:2], "", with_line(3, "a 1 2")[-(1:2)])
  expect_messages(read_lines(lines))
})

test_that("a file that can't be read is an error", {
  local_folder()
  expect_messages({
    read_points("absent.txt", "cibm")
    read_points(".", "cibm")
    read_points(c("a.txt", "b.txt"), "cibm")
    read_points(3, "cibm")
  })
})

test_that("what can't be written is an error, and no file is made", {
  local_folder()
  write <- function(x = small_matrix, ...) {
    write_points(x, "file.txt", "cibm", ...)
  }
  named <- function(rows = c("a", "b"), columns = c("x", "y", "z")) {
    matrix(1:6, 2, dimnames = list(rows, columns))
  }
  expect_messages({
    write(data.frame(a = 1))
    write(matrix("a"))
    write(matrix(0, 0, 3))
    write(rbind(c(1, NA), c(Inf, 1)))
    write(named(rows = c("a", "a")))
    write(named(rows = c("a", "b\t")))
    write(named(columns = c("x", "", "z")))
    write(named(columns = c("x", "<EndOfFile>", "z")))
    write(named(columns = c("x", "y", "y")))
    write(class = 1:2)
    write(class = c(1, NA, 0))
    write(class = c("a", " b", "c"))
  })
  expect_false(file.exists("file.txt"))
  expect_messages({
    write_points(small_matrix, "absent/file.txt", "cibm")
    write_points(small_matrix, ".", "cibm")
  })
})

test_that("where a row has tabs, its name ends at the first", {
  lines <- with_line(3, "gene 4\t1.5\t2\t-0.4")
  expect_identical(rownames(read_lines(lines)), c("gene 4", "b"))
  # Spaces may also separate values, as in File S1.
  lines <- with_line(3, "gene 4 x \t1.5 2\t-0.4\t ")
  x <- read_lines(lines)
  expect_identical(rownames(x), c("gene 4 x", "b"))
  expect_identical(unname(x[1, ]), c(1.5, 2, -0.4))
})

test_that("an empty cell is an error", {
  bad <- function(line, text) read_lines(with_line(line, text))
  expect_messages({
    bad(3, "gene 4\t1.5\t\t-0.4")
    bad(3, "gene\t\t1\t2\t3")
    bad(3, "gene\t1\t \t2")
    bad(3, "\t1\t2\t3\t4")
    bad(3, "gene\t1\t2\t")
    bad(6, "x\t\ty\tz")
    bad(8, "1\t\t0")
  })
})

test_that("a row of many fields, or of a long run of blanks, is refused at once", {
  # The time must not grow with the square of the fields or blanks.
  long <- list(
    paste("b", strrep("1.5 ", 1e5)), paste("\u00df", strrep("1.5 ", 1e5)),
    paste0("b", strrep(" ", 5e4), "4\t5 6 7 8"), strrep(" ", 5e4),
    paste0("b\t", strrep("\t", 5e4), "4")
  )
  # Line 4 is a row; the others have counts, names and classes.
  for (at in seq_along(long)) {
    for (line in if (at == 3 || is_long()) c(2, 4, 6, 8) else 4) {
      seconds <- cpu_seconds(expect_error(
        read_lines(with_line(line, long[[at]])), class = "fsknn_file_error"
      ))
      expect_lt(seconds, 1)
    }
  }
})

test_that("names of blanks that are no spaces are read back", {
  local_folder()
  x <- matrix(1, 1, 1, dimnames = list("\u2003", "\u2003"))
  write_points(x, "file.txt", "cibm", class = "\u2003")
  back <- read_points("file.txt", "cibm")
  expect_identical(attr(back, "classes"), "\u2003")
  expect_identical(dimnames(back), dimnames(x))
})

test_that("an exponent without digits is no number", {
  for (value in c("1e", "1e+", "-.5E-")) {
    expect_error(
      read_lines(with_line(4, paste("b 4", value, "6"))), "Value 2",
      class = "fsknn_file_error"
    )
  }
})

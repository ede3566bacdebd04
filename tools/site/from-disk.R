# Rscript tools/site/from-disk.R FOLDER: makes the pages that pkgdown has written
# into FOLDER complete. As they come they fetch scripts and letters from other
# places, without which there are no formulas, no table of contents and no
# search, and read the search index in a way that browsers forbid to pages on
# disk. Ends in an error where something would still be fetched.

folder <- commandArgs(TRUE)[[1]]
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)))
pages <- list.files(folder, "[.]html$", recursive = TRUE)

read_text <- function(file) {
  text <- readChar(file, file.size(file), useBytes = TRUE)
  Encoding(text) <- "UTF-8"
  text
}
write_text <- function(text, file) {
  writeBin(charToRaw(enc2utf8(text)), file)
}

# --- what is fetched from elsewhere -------------------------------------------

remote <- "(https?:|file:|)//"
fetching <- c(
  sprintf("<script\\b[^>]*\\bsrc=\"%s[^\"]*\"[^>]*>\\s*</script>", remote),
  sprintf("<link\\b(?=[^>]*stylesheet)[^>]*\\bhref=\"%s[^\"]*\"[^>]*>", remote)
)

without_remote <- function(text) {
  # Of what they would fetch only browsers without all else know.
  text <- gsub("(?s)<!--\\[if.*?endif\\]-->\\s*", "", text, perl = TRUE)
  for (pattern in fetching) {
    text <- gsub(paste0("(?s)", pattern, "\\s*"), "", text, perl = TRUE)
  }
  text
}

# --- formulas as MathML, which browsers draw by themselves ---------------------

# In vignettes they are marked; in help pages, outside of code, they are not.
formula_patterns <- c(
  "<span class=\"math [a-z]*\">.*?</span>",
  "<pre\\b.*?</pre>", "<code\\b.*?</code>",
  "\\\\\\([^<]*?\\\\\\)", "\\$\\$[^<]*?\\$\\$"
)

# Where they are in the text, as gregexpr() says.
find_formulas <- function(text) {
  found <- gregexpr(
    paste0("(?s)", paste(formula_patterns, collapse = "|")), text, perl = TRUE
  )[[1]]
  words <- regmatches(text, list(found))[[1]]
  kept <- !grepl("^<(pre|code)", words)
  structure(found[kept], match.length = attr(found, "match.length")[kept])
}

# TeX as pandoc reads it.
as_pandoc <- function(words) {
  display <- grepl("^<span class=\"math display|^\\$\\$", words)
  tex <- gsub("<[^>]*>", "", words)
  tex <- gsub("^(\\\\[([]|\\$\\$)|(\\\\[])]|\\$\\$)$", "", trimws(tex))
  entities <- c("&lt;" = "<", "&gt;" = ">", "&quot;" = "\"", "&amp;" = "&")
  for (entity in names(entities)) {
    tex <- gsub(entity, entities[[entity]], tex, fixed = TRUE)
  }
  mark <- ifelse(display, "$$", "$")
  paste0(mark, trimws(tex), mark)
}

to_mathml <- function(formulas) {
  source <- tempfile(fileext = ".md")
  result <- tempfile(fileext = ".html")
  writeLines(paste(formulas, collapse = "\n\n"), source, useBytes = TRUE)
  status <- system2("pandoc", c("--mathml", "-o", result, source))
  stopifnot(status == 0)
  text <- read_text(result)
  maths <- regmatches(
    text, gregexpr("(?s)<math\\b.*?</math>", text, perl = TRUE)
  )[[1]]
  if (length(maths) != length(formulas)) {
    stop("pandoc knows ", length(maths), " of ", length(formulas), " formulas.")
  }
  maths
}

with_formulas <- function(text) {
  places <- find_formulas(text)
  if (length(places) == 0) {
    return(text)
  }
  maths <- to_mathml(as_pandoc(regmatches(text, list(places))[[1]]))
  regmatches(text, list(places)) <- list(maths)
  text
}

# --- tables of contents --------------------------------------------------------

escape <- function(words) {
  for (pair in list(c("&", "&amp;"), c("<", "&lt;"), c(">", "&gt;"))) {
    words <- gsub(pair[[1]], pair[[2]], words, fixed = TRUE)
  }
  words
}

# Two levels, with the classes that pkgdown's style sheet knows.
contents_list <- function(text) {
  headings <- xml2::xml_find_all(
    xml2::read_html(text, encoding = "UTF-8"),
    ".//main//*[self::h2 or self::h3][@id][not(@data-toc-skip)]"
  )
  if (length(headings) == 0) {
    return("")
  }
  link <- sprintf(
    "<a class=\"nav-link\" href=\"#%s\">%s</a>", xml2::xml_attr(headings, "id"),
    escape(trimws(xml2::xml_text(headings)))
  )
  top <- xml2::xml_name(headings) == "h2"
  group <- cumsum(top | seq_along(top) == 1)
  items <- vapply(split(seq_along(link), group), function(rows) {
    inner <- if (length(rows) > 1) {
      sprintf(
        "<ul class=\"nav navbar-nav\">%s</ul>",
        paste0("<li>", link[rows[-1]], "</li>", collapse = "")
      )
    }
    paste0("<li>", link[[rows[[1]]]], inner, "</li>")
  }, "")
  paste0("<ul class=\"nav navbar-nav\">", paste(items, collapse = "\n"), "</ul>")
}

with_contents <- function(text) {
  place <- regexpr("(?s)<nav id=\"toc\">.*?</h2>\\s*", text, perl = TRUE)
  if (place < 0) {
    return(text)
  }
  regmatches(text, place) <- paste0(
    regmatches(text, place), contents_list(text), "\n"
  )
  text
}

# --- all pages ------------------------------------------------------------------

for (page in pages) {
  file <- file.path(folder, page)
  text <- with_contents(with_formulas(without_remote(read_text(file))))
  write_text(text, file)
}

# A script may be read from disk, data may not. Paths are from the site's root.
index <- read_text(file.path(folder, "search.json"))
index <- gsub("\"path\":\"/", "\"path\":\"", index, fixed = TRUE)
write_text(
  paste0("window.searchIndex = ", index, ";\n"),
  file.path(folder, "search-index.js")
)
invisible(file.copy(file.path(here, "pkgdown.js"), folder, overwrite = TRUE))

# --- is that all? ---------------------------------------------------------------

found <- character()
for (page in list.files(folder, "[.](html|css)$", recursive = TRUE)) {
  text <- read_text(file.path(folder, page))
  for (pattern in c(
    fetching, sprintf("<(img|iframe|source)\\b[^>]*\\bsrc=\"%s[^\"]*\"", remote),
    sprintf("@import +(url[(])?[\"']?%s[^;]*", remote),
    sprintf("url[(][\"']?%s[^)]*", remote)
  )) {
    places <- regmatches(text, gregexpr(pattern, text, perl = TRUE))[[1]]
    found <- c(found, sprintf("%s: %s", page, substr(places, 1, 100)))
  }
  if (grepl("html$", page) && length(find_formulas(text)) > 0) {
    found <- c(found, paste0(page, ": a formula is still TeX"))
  }
}
if (length(found) > 0) {
  writeLines(found)
  stop("The pages above are not complete without a network.")
}

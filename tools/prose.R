# Rscript tools/prose.R [--count] [FILE ...]
#
# Lists sentences of more than 25 words and paragraphs of more than 6 lines,
# with FILE:LINE, in README.md, NEWS.md, CONTRIBUTING.md, the vignettes, the
# articles and the help (its source, the roxygen comments in R). With --count it
# prints only their numbers for each file. It needs commonmark and xml2.
#
# A piece of inline code counts as one word. Code blocks, headings and lists of
# references are left out, and so are captions that code makes. A paragraph's
# lines are those of 90 characters, however its source is broken.

max_words <- 25
max_lines <- 6
line_width <- 90

# A Markdown file as lines of prose. Other lines become empty, so that the line
# numbers stay.
prose_of_markdown <- function(lines) {
  # The header of a vignette has prose in its abstract alone.
  fences <- which(lines == "---")
  if (length(fences) > 1 && fences[[1]] == 1) {
    header <- seq_len(fences[[2]])
    key <- grepl("^[a-z_]+:", lines[header])
    of_abstract <- startsWith(lines[header][key], "abstract:")[cumsum(key)[-1]]
    of_abstract <- c(FALSE, of_abstract %in% TRUE) & !key
    lines[header] <- ifelse(of_abstract, trimws(lines[header]), "")
  }
  # A chunk of knitr's engine "asis" is prose; all other code blocks stay code.
  opened <- grep("^```\\{asis", lines)
  closed <- vapply(opened, function(at) {
    at + which(lines[-seq_len(at)] == "```")[[1]]
  }, 1)
  lines[c(opened, closed)] <- ""
  # A list of references or of packages is no prose.
  heading <- grepl("^#+ ", lines)
  section <- cumsum(heading)
  left_out <- grepl("^#+ (References|Sources|Session)", lines[heading])
  lines[c(FALSE, left_out)[section + 1]] <- ""
  lines
}

# The sections of a file's roxygen comments that are prose: lists of the first
# line's number and the lines.
prose_of_roxygen <- function(lines) {
  is_help <- startsWith(lines, "#'")
  text <- sub("^#' ?", "", lines)
  tag <- ifelse(
    is_help & startsWith(text, "@"), sub("^@([A-Za-z]+).*", "\\1", text), NA
  )
  begins <- is_help & (!is.na(tag) | !c(FALSE, is_help[-length(lines)]))
  section <- cumsum(begins)
  without <- c(
    "examples", "examplesIf", "usage", "export", "importFrom", "useDynLib",
    "inheritParams", "rdname", "name", "aliases", "keywords", "references",
    "noRd", "docType", "method", "exportS3Method", "import", "concept", "family"
  )
  found <- lapply(split(which(is_help), section[is_help]), function(at) {
    if (tag[[at[[1]]]] %in% without) {
      return(NULL)
    }
    body <- text[at]
    body[[1]] <- sub("^@param +[^ ]+ *", "", body[[1]])
    body[[1]] <- sub("^@[A-Za-z]+ *", "", body[[1]])
    # A formula of Rd counts as a word, and keeps its line breaks.
    body <- paste0(body, collapse = "\n")
    formula <- "\\\\(doi|eqn|deqn)(\\{(?:[^{}]|(?2))*\\}){1,2}"
    found <- gregexpr(formula, body, perl = TRUE)
    regmatches(body, found) <- lapply(regmatches(body, found), function(one) {
      paste0("x", gsub("[^\n]", "", one))
    })
    list(first = at[[1]], lines = strsplit(body, "\n", fixed = TRUE)[[1]])
  })
  Filter(Negate(is.null), found)
}

# The text of a paragraph, with its line breaks.
inline_text <- function(node) {
  switch(
    xml2::xml_name(node),
    softbreak = , linebreak = "\n",
    html_inline = "",
    code = paste0("`", gsub("[[:space:]]+", "_", xml2::xml_text(node)), "`"),
    image = "",
    if (length(xml2::xml_children(node)) == 0) {
      xml2::xml_text(node)
    } else {
      parts <- xml2::xml_children(node)
      paste0(vapply(parts, inline_text, ""), collapse = "")
    }
  )
}

# Sentences of a paragraph, each with the number of lines before it.
sentences_of <- function(text) {
  short <- "(et\\s+al|e\\.g|i\\.e|cf|vs|Fig|Figs|Eq|Sec|No|approx)\\.$"
  # A sentence begins with a capital, with code, or with the name of a package or
  # of a variable.
  begin <- "(?=[[:space:]]+([^a-z[:space:]]|fsknn|limma|[a-z]\\b))"
  ends <- gregexpr(paste0("[.!?][)\"'\u201d]*", begin), text, perl = TRUE)[[1]]
  if (ends[[1]] == -1) {
    return(data.frame(text = text, before = 0))
  }
  ends <- ends + attr(ends, "match.length") - 1
  before_end <- vapply(ends, function(end) substr(text, 1, end), "")
  ends <- ends[!grepl(paste0("(^|[^A-Za-z])", short), before_end)]
  from <- c(1, ends + 1)
  found <- substring(text, from, c(ends, nchar(text)))
  leading <- regmatches(found, regexpr("^[[:space:]]*", found))
  earlier <- paste0(substring(text, 1, from - 1), leading)
  before <- vapply(earlier, function(part) {
    nchar(gsub("[^\n]", "", part))
  }, 1L)
  data.frame(text = trimws(found), before = unname(before))
}

count_words <- function(text) {
  words <- strsplit(trimws(text), "[[:space:]]+")[[1]]
  sum(grepl("[[:alnum:]]", words))
}

# What is too long in some lines of Markdown, the first being line `first`.
too_long <- function(file, lines, first = 1) {
  xml <- xml2::read_xml(commonmark::markdown_xml(
    lines, sourcepos = TRUE, extensions = "table"
  ))
  xml2::xml_ns_strip(xml)
  nodes <- xml2::xml_find_all(xml, "//paragraph | //table_cell")
  found <- lapply(nodes, function(node) {
    at <- as.integer(sub(":.*", "", xml2::xml_attr(node, "sourcepos")))
    text <- paste0(
      vapply(xml2::xml_children(node), inline_text, ""), collapse = ""
    )
    # pandoc's formulas count as one word each. They may begin a sentence, and
    # a displayed one may end it.
    text <- gsub("\\$\\$[^$]*[.][[:space:]]*\\$\\$", "0.", text)
    text <- gsub("\\$\\$?[^$]*\\$\\$?", "0", text)
    sentences <- sentences_of(text)
    words <- vapply(sentences$text, count_words, 1L)
    long <- which(words > max_words)
    out <- data.frame(
      file = rep(file, length(long)),
      line = first - 1 + at + sentences$before[long],
      kind = rep("sentence", length(long)), size = unname(words[long]),
      text = sentences$text[long]
    )
    height <- length(strwrap(text, line_width))
    if (height > max_lines) {
      out <- rbind(out, data.frame(
        file = file, line = first - 1 + at, kind = "paragraph", size = height,
        text = text
      ))
    }
    out
  })
  do.call(rbind, found)
}

in_file <- function(file) {
  lines <- readLines(file, encoding = "UTF-8", warn = FALSE)
  if (!endsWith(file, ".R")) {
    return(too_long(file, prose_of_markdown(lines)))
  }
  do.call(rbind, lapply(prose_of_roxygen(lines), function(section) {
    too_long(file, section$lines, section$first)
  }))
}

given <- commandArgs(TRUE)
only_count <- "--count" %in% given
files <- setdiff(given, "--count")
if (length(files) == 0) {
  files <- c(
    "README.md", "NEWS.md", "CONTRIBUTING.md",
    list.files("vignettes", "[.]Rmd$", full.names = TRUE, recursive = TRUE),
    list.files("R", "[.]R$", full.names = TRUE)
  )
}
found <- do.call(rbind, lapply(files, in_file))
if (!only_count && NROW(found) > 0) {
  unit <- ifelse(found$kind == "sentence", "words", "lines")
  text <- gsub("[[:space:]]+", " ", found$text)
  cat(sprintf(
    "%s:%d: %s of %d %s: %s\n", found$file, found$line, found$kind, found$size,
    unit, ifelse(nchar(text) > 70, paste0(substr(text, 1, 67), "..."), text)
  ), sep = "")
}
counted <- function(kind) tapply(found$kind == kind, found$file, sum)
if (only_count && NROW(found) > 0) {
  group <- ifelse(startsWith(found$file, "R/"), "R/ (help)", found$file)
  print(table(group, found$kind))
}
cat(
  sum(found$kind == "sentence"), "sentences of more than", max_words, "words,",
  sum(found$kind == "paragraph"), "paragraphs of more than", max_lines,
  "lines\n"
)

# Waiting of processes that work in a folder.

# Returns all functions of the package from its namespace.
package_functions <- function() {
  namespace <- asNamespace("fsknn")
  Filter(is.function, mget(ls(namespace, all.names = TRUE), envir = namespace))
}

# Builds a library for LD_PRELOAD that makes the time of day run backwards at
# the normal speed. Returns "" without a compiler.
backward_clock <- function(env = parent.frame()) {
  folder <- withr::local_tempdir(.local_envir = env)
  withr::local_dir(folder)
  writeLines(c(
    "#define _GNU_SOURCE",
    "#include <sys/syscall.h>",
    "#include <time.h>",
    "#include <unistd.h>",
    "static long long told(int id) {",
    "  struct timespec t;",
    "  syscall(SYS_clock_gettime, id, &t);",
    "  return t.tv_sec * 1000000000LL + t.tv_nsec;",
    "}",
    "static long long turned(int id) {",
    "  if (id != CLOCK_REALTIME) return told(id);",
    "  static long long first;",
    "  if (first == 0) first = 2 * told(id);",
    "  return first - told(id);",
    "}",
    "static int put(int id, struct timespec* t) {",
    "  const long long now = turned(id);",
    "  t->tv_sec = now / 1000000000;",
    "  t->tv_nsec = now % 1000000000;",
    "  return 0;",
    "}",
    "int clock_gettime(clockid_t id, struct timespec* t) {",
    "  return put(id, t);",
    "}",
    "int timespec_get(struct timespec* t, int base) {",
    "  put(CLOCK_REALTIME, t);",
    "  return base;",
    "}"
  ), "backward.c")
  made <- suppressWarnings(system2(
    file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "backward.c"),
    stdout = FALSE, stderr = FALSE
  ))
  if (made != 0) "" else file.path(normalizePath(folder), "backward.so")
}

test_that("a wait lasts as long as it should, and is no longer than that", {
  steady <- fsknn:::cpp_steady_seconds
  for (seconds in c(0, 0.01, 0.2)) {
    began <- steady()
    expect_silent(fsknn:::cpp_wait(seconds))
    expect_gte(steady() - began, seconds)
  }
  began <- steady()
  for (seconds in c(-1, -Inf, NaN)) {
    fsknn:::cpp_wait(seconds)
  }
  expect_lt(steady() - began, 60)
})

test_that("a clock that is set back makes no wait longer", {
  skip_if_not(Sys.info()[["sysname"]] == "Linux", "LD_PRELOAD is Linux's")
  library <- backward_clock()
  skip_if(library == "", "there is no compiler of C")
  withr::local_envvar(
    LD_PRELOAD = trimws(paste(Sys.getenv("LD_PRELOAD"), library))
  )
  child <- start_child(c(
    "began <- Sys.time()",
    "fsknn:::cpp_wait(0.3)",
    "say(if (Sys.time() < began) 'backwards' else 'onwards')"
  ))
  withr::local_envvar(LD_PRELOAD = NA)
  expect_identical(said_by(child, patience), "backwards")
})

test_that("all waits of the package are of that kind", {
  waits <- vapply(
    package_functions(), function(f) "Sys.sleep" %in% all.names(body(f)), NA
  )
  expect_identical(names(waits)[waits], character())
})

test_that("Ctrl-C ends a wait", {
  expect_interrupted(character(), "fsknn:::cpp_wait(600)", delay = 0)
})

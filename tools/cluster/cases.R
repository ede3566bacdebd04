# The cases: each a function that stops where something is not as it must be.

# --- what is searched --------------------------------------------------------

# Small whole numbers, so that many distances tie; a metric that no filter helps,
# so that tasks take a while and kills find them at work.
study <- function(rows = 3200, columns = 600) {
  x <- outer(seq_len(rows), seq_len(columns), function(i, j) {
    wave <- sin(i * 12.9898 + j * 78.233) * 43758.5453
    floor(5 * (wave - floor(wave)))
  })
  # Some twice, so that some distances are 0.
  x[rows - 0:9, ] <- x[1:10, ]
  x
}

# What the processes of a place run first: each task waits before it is done.
# (By a program: R's own sleep() waits for ever where a clock is set back.)
# Without `gate`, up to a second. Else as long as no fewer tasks are done than the
# file of that name allows: so all processes there are hold a task, however long
# they took to start.
slow_code <- function(place) {
  sprintf(
    "invisible(suppressMessages(trace(
       \"search_task\", where = asNamespace(\"fsknn\"), print = FALSE,
       tracer = quote({
         system(paste(\"sleep\", format(proc.time()[[3]] %%%% 1)))
         while (file.exists(%s) &&
                  length(list.files(%s, \"^fsknn-task-\")) >=
                    as.integer(readLines(%s))) {
           system(\"sleep 0.1\")
         }
       })
     )))",
    deparse(file.path(place, "gate")), deparse(file.path(place, "job")),
    deparse(file.path(place, "gate"))
  )
}

allow <- function(place, tasks) {
  new <- file.path(place, "gate-new")
  writeLines(as.character(tasks), new)
  file.rename(new, file.path(place, "gate"))
}

search_code <- function(folder = NULL, bpparam = NULL, lease = 10) {
  c(
    # Nine blocks, of which there are 45 pairs.
    sprintf(
      "options(fsknn.lease_seconds = %s, fsknn.split_size = 400L)", lease
    ),
    sprintf("x <- readRDS(%s)", deparse(file.path(work, "x.rds"))),
    bpparam,
    sprintf(
      "fsknn::knn_search(x, 10, \"canberra\", backend = \"cpu\",
       num_threads = 1, progress = FALSE%s%s)",
      if (is.null(folder)) "" else paste0(", checkpoint = ", deparse(folder)),
      if (is.null(bpparam)) "" else ", BPPARAM = param"
    )
  )
}

prepare <- function() {
  saveRDS(study(), file.path(work, "x.rds"))
  place <- new_place("whole")
  start_r(search_code(), place) |> result_of() |>
    saveRDS(file.path(work, "whole.rds"))
}

expect_whole <- function(answer) {
  stopifnot(
    "the answer is that of one process" =
      identical(answer, readRDS(file.path(work, "whole.rds")))
  )
}

# --- folders -----------------------------------------------------------------

start_call <- function(folder, place, name = "call", before = NULL, ...) {
  start_r(c(before, search_code(folder, ...)), place, name)
}

# Until others can join in.
wait_for_folder <- function(folder, process) {
  wait_for("a folder to work in", function() {
    if (ended(process) && !file.exists(file.path(folder, "fsknn-work"))) {
      stop("the call ended: ", paste(readLines(process$log), collapse = "\n"))
    }
    file.exists(file.path(folder, "fsknn-work"))
  })
}

tasks_done <- function(folder) {
  length(list.files(folder, "^fsknn-task-[0-9]+$"))
}

collect <- function(folder, place) {
  start_r(sprintf("fsknn::knn_collect(%s)", deparse(folder)), place, "collect")
}

# Claims of a folder that were seen, by their names, which hold the number of the
# trial; looked for while anything is waited for.
watched <- new.env()

watch <- function(folder) {
  assign("folder", folder, watched)
  assign("claims", character(), watched)
}

look <- function() {
  folder <- watched$folder
  if (is.null(folder)) {
    return(invisible())
  }
  new <- setdiff(list.files(folder, "^fsknn-claim-"), watched$claims)
  # One of a task that is done is given back at once, and no work.
  task <- sub("^fsknn-claim-([0-9]+)-.*", "fsknn-task-\\1", new)
  new <- new[!file.exists(file.path(folder, task))]
  assign("claims", c(watched$claims, new), watched)
}

begun_again <- function() {
  look()
  sum(!grepl("-001$", watched$claims))
}

# --- each way to work --------------------------------------------------------

case_array <- function() {
  place <- new_place("array")
  folder <- file.path(place, "job")
  watch(folder)
  call <- start_call(folder, place)
  wait_for_folder(folder, call)
  start_workers(folder, place)
  expect_whole(result_of(call))
  expect_whole(result_of(collect(folder, place)))
  stopifnot("no task was begun twice" = begun_again() == 0)
  wait_for("the end of all workers", function() length(jobs_left()) == 0)
}

batchtools_code <- function(place, resources) {
  c(
    sprintf(
      "param <- BiocParallel::BatchtoolsParam(
         3, cluster = \"slurm\", resources = %s,
         template = system.file(\"templates\", \"slurm.tmpl\",
                                package = \"fsknn\"),
         registryargs = BiocParallel::batchtoolsRegistryargs(
           file.dir = %s, work.dir = %s
         )
       )",
      resources, deparse(file.path(place, "registry")), deparse(place)
    )
  )
}

case_batchtools <- function() {
  place <- new_place("batchtools")
  for (resources in c(
    "list()", "list(walltime = 90, memory = 100, ncpus = 1, partition = \"all\")"
  )) {
    folder <- file.path(place, paste0("job-", nchar(resources)))
    registry <- new_place("registry")
    code <- batchtools_code(registry, resources)
    call <- start_call(
      folder, place, paste0("call-", nchar(resources)), bpparam = code
    )
    limits <- character()
    wait_for("the end of the call", function() {
      limits <<- union(limits, slurm("squeue", "-h", "-o", "%l"))
      ended(call)
    })
    expect_whole(result_of(call))
    expected <- if (resources == "list()") "UNLIMITED" else "2:00"
    stopifnot("jobs have the limit that was asked for" =
                identical(limits, expected))
  }
}

case_batchtools_kill <- function() {
  place <- new_place("batchtools-kill")
  folder <- file.path(place, "job")
  call <- start_call(
    folder, place, bpparam = batchtools_code(new_place("registry"), "list()")
  )
  wait_for("workers", function() nrow(worker_processes()) > 0 || ended(call))
  kill_process(utils::head(worker_processes()$pid, 1))
  expect_whole(result_of(call))
}

case_mpi <- function() {
  if (system2("ip", c("link", "show", "fsknn0"), stdout = FALSE,
              stderr = FALSE) != 0) {
    return("skipped: there is no network interface for Open MPI")
  }
  place <- new_place("mpi")
  code <- "param <- BiocParallel::SnowParam(2, type = \"MPI\")"
  start <- function(folder, name) {
    start_r(
      search_code(folder, code), place, name,
      # As root, on two cores or fewer, beside much else.
      before = c(
        "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        "OMPI_MCA_rmaps_base_oversubscribe=1", "OMPI_MCA_btl=self,vader,tcp",
        "OMPI_MCA_btl_base_warn_component_unused=0",
        "mpirun -np 1 --oversubscribe"
      )
    )
  }
  words <- failure_of(start(NULL, "no-folder"))
  stopifnot("a folder is asked for, of a file system that all ranks share" =
              grepl("checkpoint", words))
  expect_whole(result_of(start(file.path(place, "job"), "call")))
}

# --- kills -------------------------------------------------------------------

kinds <- c("worker", "slurmd", "call", "node", "all")

# Kills what is there of a kind; gives how many processes of R that were.
kill_one <- function(kind, call) {
  one <- function(all) all[sample.int(length(all), min(1, length(all)))]
  node <- sample.int(3, 1)
  switch(
    kind,
    worker = {
      victim <- one(worker_processes()$pid)
      kill_process(victim)
      length(victim)
    },
    slurmd = {
      tool("slurmd", node)
      0
    },
    call = {
      victim <- call_processes(call)$pid
      kill_process(victim)
      length(victim)
    },
    node = {
      on_node <- worker_processes()
      count <- sum(on_node$node == paste0("node", node))
      tool("kill", node)
      Sys.sleep(0.5)
      tool("start", node)
      count
    },
    all = {
      workers <- worker_processes()$pid
      calls <- call_processes(call)$pid
      kill_process(c(workers, calls))
      for (node in 1:3) tool("kill", node)
      Sys.sleep(0.5)
      for (node in 1:3) tool("start", node)
      length(workers) + length(calls)
    }
  )
}

# Claims that somebody counted up in just now: each process has one at most.
num_claims <- function(folder) {
  files <- list.files(folder, "^fsknn-lease-", full.names = TRUE)
  sum(Sys.time() - file.mtime(files) < 6, na.rm = TRUE)
}

# Work that something is killed at: while all are at work, at a random moment of
# some seconds, or (`early`) from the start of the call on, when folders are made
# and workers start. Then gone on with.
killed_work <- function(kind, early = stats::runif(1) < 0.25,
                        after = stats::runif(1, 0, 8)) {
  place <- new_place(paste0("kill-", kind))
  folder <- file.path(place, "job")
  slow <- slow_code(place)
  watch(folder)
  if (!early) allow(place, 0)
  call <- start_call(folder, place, before = slow)
  if (!early || kind != "call" && kind != "all") {
    wait_for_folder(folder, call)
    start_workers(folder, place, 3, code = slow)
  }
  if (early) {
    Sys.sleep(after)
  }
  if (!early) {
    wait_for("all at work", function() num_claims(folder) >= 4)
    unlink(file.path(place, "gate"))
    Sys.sleep(after)
  }
  stamps <- task_stamps(folder)
  killed <- kill_one(kind, call)
  if (kind %in% c("call", "all")) {
    wait_for("the call's end", function() ended(call))
    call <- start_call(folder, place, "call-again", before = slow)
    wait_for_folder(folder, call)
    start_workers(folder, place, 2, code = slow)
  }
  expect_whole(result_of(call))
  expect_whole(result_of(collect(folder, place)))
  again <- begun_again()
  total <- tasks_done(folder)
  stopifnot(
    "all tasks are done" = total == 45,
    "no task that was done is done again" =
      unchanged(folder, stamps),
    "no more tasks are begun again than processes were killed" =
      again <= killed
  )
  cancel_all()
  wait_for("all nodes", function() nodes_up() == 3)
  unlink(place, recursive = TRUE)
  sprintf(
    "%s%.1f s, %d of %d tasks done, %d killed, %d begun again",
    if (early) "early, " else "", after, length(stamps), total, killed, again
  )
}

# Whether what was done is as it was.
unchanged <- function(folder, stamps) {
  now <- task_stamps(folder)
  all(names(stamps) %in% names(now)) && all(now[names(stamps)] == stamps)
}

# Names and times of what is done.
task_stamps <- function(folder) {
  files <- list.files(folder, "^fsknn-task-[0-9]+$", full.names = TRUE)
  stats::setNames(as.double(file.mtime(files)), basename(files))
}

# One kill of each kind, one after the other, at one search.
case_each_kill <- function() {
  place <- new_place("kills")
  folder <- file.path(place, "job")
  slow <- slow_code(place)
  watch(folder)
  allow(place, 0)
  call <- start_call(folder, place, before = slow)
  wait_for_folder(folder, call)
  killed <- 0
  stamps <- numeric()
  for (kind in kinds) {
    # Four at work, and five tasks more are done than before. What was
    # killed is started again.
    wait_for("all at work", function() {
      missing <- 3 - length(jobs_to_run())
      if (missing > 0) start_workers(folder, place, missing, code = slow)
      nrow(worker_processes()) == 3 && nrow(call_processes(call)) == 1 &&
        num_claims(folder) >= 4
    })
    allow(place, tasks_done(folder) + 5)
    wanted <- tasks_done(folder) + 5
    wait_for("tasks to be done", function() tasks_done(folder) >= wanted)
    stopifnot(
      "no task that was done is done again" =
        unchanged(folder, stamps)
    )
    stamps <- task_stamps(folder)
    now <- kill_one(kind, call)
    killed <- killed + now
    say("  %s: %d processes killed after %d tasks", kind, now, length(stamps))
    stopifnot("something was there to be killed" = now > 0 || kind == "slurmd")
    if (kind %in% c("call", "all")) {
      wait_for("the call's end", function() ended(call))
      call <- start_call(folder, place, paste0("call-", kind), before = slow)
    }
  }
  unlink(file.path(place, "gate"))
  expect_whole(result_of(call))
  expect_whole(result_of(collect(folder, place)))
  again <- begun_again()
  say("  %d processes killed, %d tasks begun again", killed, again)
  stopifnot(
    "all tasks are done" = tasks_done(folder) == 45,
    "no task that was done is done again" =
      unchanged(folder, stamps),
    "no more tasks are begun again than processes were killed" =
      again <= killed
  )
}

# --- what else may happen ----------------------------------------------------

# A worker that stood still for longer than its claim lives.
case_slow <- function() {
  place <- new_place("slow")
  folder <- file.path(place, "job")
  slow <- slow_code(place)
  watch(folder)
  allow(place, 0)
  call <- start_call(folder, place, before = slow)
  wait_for_folder(folder, call)
  start_workers(folder, place, 3, code = slow)
  wait_for("all at work", function() num_claims(folder) >= 4)
  victim <- worker_processes()$pid[[1]]
  kill_process(victim, 19)
  unlink(file.path(place, "gate"))
  expect_whole(result_of(call))
  kill_process(victim, 18)
  wait_for("the end of all workers", function() length(jobs_left()) == 0)
  expect_whole(result_of(collect(folder, place)))
  stopifnot("its task, and no other, was begun again" = begun_again() == 1)
}

# Two calls make one folder at once, and both wait for it.
case_two_calls <- function() {
  place <- new_place("two")
  folder <- file.path(place, "job")
  watch(folder)
  calls <- lapply(c("one", "two", "three"), function(name) {
    start_call(folder, place, name)
  })
  for (call in calls) expect_whole(result_of(call))
  stopifnot("no task was begun twice" = begun_again() == 0)
}

# Clocks that are far off, and one that jumps, as where a clock is set right.
case_clocks <- function() {
  library <- Sys.glob("/usr/lib/*/faketime/libfaketime.so.1")
  if (length(library) == 0) {
    return("skipped: there is no libfaketime")
  }
  place <- new_place("clocks")
  folder <- file.path(place, "job")
  watch(folder)
  stamp <- file.path(place, "offset")
  writeLines("+0", stamp)
  variables <- paste0(
    "env LD_PRELOAD=", library[[1]], " FAKETIME_TIMESTAMP_FILE=", stamp,
    " FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1",
    " DONT_FAKE_MONOTONIC=1 FAKETIME_DONT_RESET=1"
  )
  call <- start_call(folder, place, before = slow_code(place))
  wait_for_folder(folder, call)
  start_workers(folder, place, 2, variables, slow_code(place))
  start_workers(folder, place, 1, code = slow_code(place))
  for (offset in c("+400d", "-400d", "+3600", "+0")) {
    before <- tasks_done(folder)
    writeLines(offset, stamp)
    wait_for("work to go on", function() {
      tasks_done(folder) >= before + 4 || ended(call)
    })
  }
  expect_whole(result_of(call))
  wait_for("the end of all workers", function() length(jobs_left()) == 0)
  stopifnot("no task was begun twice" = begun_again() == 0)
}

# A disk of its own, which nodes see, too.
mount_disk <- function(place, size) {
  disk <- file.path(place, "disk")
  dir.create(disk)
  mount("-t", "tmpfs", "-o", paste0("size=", size), "none", disk)
  disk
}

mount <- function(...) {
  if (system2("mount", c(...)) != 0) stop("mount ", paste(...), " failed")
}

# How a disk is filled: points and some tasks have room.
case_full_disk <- function() {
  place <- new_place("full")
  disk <- mount_disk(place, "40m")
  folder <- file.path(disk, "job")
  slow <- slow_code(place)
  call <- start_call(folder, place, before = slow)
  wait_for_folder(folder, call)
  start_workers(folder, place, 3, code = slow)
  wait_for("a task", function() tasks_done(folder) >= 3 || ended(call))
  # What is left of it.
  suppressWarnings(system2("dd", c(
    "if=/dev/zero", paste0("of=", file.path(disk, "filler")), "bs=4096"
  ), stdout = FALSE, stderr = FALSE))
  words <- failure_of(call)
  say("  %s", gsub("\n", " ", words))
  stopifnot("the disk is named" = grepl("No space left", words))
  wait_for("the end of all workers", function() length(jobs_left()) == 0)
  before <- task_stamps(folder)
  unlink(file.path(disk, "filler"))
  call <- start_call(folder, place, "call-again")
  start_workers(folder, place)
  expect_whole(result_of(call))
  stopifnot(
    "what was kept is not done again" =
      unchanged(folder, before)
  )
  cancel_all()
  system2("umount", c("-l", disk))
}

# Work stops and goes on; nothing is lost.
case_read_only <- function() {
  place <- new_place("read-only")
  disk <- mount_disk(place, "100m")
  folder <- file.path(disk, "job")
  call <- start_call(folder, place, before = slow_code(place))
  wait_for("some tasks", function() tasks_done(folder) >= 3 || ended(call))
  kill_process(call_processes(call)$pid)
  wait_for("its end", function() ended(call))
  before <- task_stamps(folder)
  stopifnot("there is something left to do" = length(before) < 45)
  mount("-o", "remount,ro", disk)
  words <- failure_of(start_call(folder, place, "call-read-only"))
  say("  %s", gsub("\n", " ", words))
  stopifnot("the reason is named" = grepl("Read-only file system", words))
  job <- start_workers(folder, place, 1)
  wait_for("the end of the worker", function() length(jobs_left()) == 0)
  log <- paste(readLines(file.path(place, sprintf("worker-%s-1.log", job))),
               collapse = "
")
  say("  %s", gsub("\n", " ", log))
  stopifnot("the worker says so, too" = grepl("Read-only file system", log))
  mount("-o", "remount,rw", disk)
  expect_whole(result_of(start_call(folder, place, "call-again")))
  stopifnot(
    "what was kept is not done again" =
      unchanged(folder, before)
  )
  # All is done: it can be read, too, where nothing can be written.
  mount("-o", "remount,ro", disk)
  expect_whole(result_of(collect(folder, place)))
  system2("umount", c("-l", disk))
}

# A copy of the installed package that says it is another version.
case_version <- function() {
  place <- new_place("version")
  folder <- file.path(place, "job")
  library <- file.path(place, "library")
  dir.create(library)
  file.copy(find.package("fsknn"), library, recursive = TRUE)
  path <- file.path(library, "fsknn", "Meta", "package.rds")
  meta <- readRDS(path)
  meta$DESCRIPTION[["Version"]] <- "0.0.1"
  saveRDS(meta, path)
  path <- file.path(library, "fsknn", "DESCRIPTION")
  writeLines(sub("^Version:.*", "Version: 0.0.1", readLines(path)), path)
  call <- start_call(folder, place, before = slow_code(place))
  wait_for_folder(folder, call)
  job <- start_workers(
    folder, place, 1, paste0("env R_LIBS=", library, ":$R_LIBS ")
  )
  log_path <- file.path(place, sprintf("worker-%s-1.log", job))
  wait_for("the end of the worker", function() length(jobs_left()) == 0)
  log <- paste(readLines(log_path), collapse = "
")
  say("  %s", gsub("\n", " ", log))
  stopifnot("it is refused, and both versions are named" =
              grepl("0.0.1", log, fixed = TRUE) &&
              grepl(as.character(utils::packageVersion("fsknn")), log,
                    fixed = TRUE))
  expect_whole(result_of(call))
}

# Other points, in a folder that is there already.
case_other_data <- function() {
  place <- new_place("other")
  folder <- file.path(place, "job")
  call <- start_call(folder, place)
  wait_for_folder(folder, call)
  code <- sub("^x <- (.*)$", "x <- \\1; x[7, 3] <- x[7, 3] + 1",
              search_code(folder))
  words <- failure_of(start_r(code, place, "other"))
  say("  %s", gsub("\n", " ", words))
  stopifnot("it is refused" = grepl("another search", words))
  expect_whole(result_of(call))
}

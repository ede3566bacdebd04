# How long does a worker need to read the state of a folder of tasks, by the
# number of tasks and of workers? Each does so before each task. Workers are
# simulated: their claims are files as another host would write them; tasks are
# empty files; receipts are real. Run as
#
#     Rscript inst/bench/folder_looks.R [folder]
#
# where the folder is on the file system to measure, and is a temporary one by
# default. Prints the table of vignette("cluster").

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)
options(fsknn.num_threads = 1)
inside <- asNamespace("fsknn")
where <- word(1, tempdir())

# A folder with this number of tasks, none of them done.
make_folder <- function(num_tasks) {
  folder <- tempfile("looks-", where)
  options(fsknn.split_size = 1L)
  suppressMessages(trace(
    "work_in_folder", quote(stop("made")), print = FALSE, where = inside
  ))
  on.exit(suppressMessages(untrace("work_in_folder", where = inside)))
  x <- matrix(sin(1:60), 20)
  queries <- matrix(cos(seq_len(3 * num_tasks)), num_tasks)
  try(knn_query(x, queries, 2, checkpoint = folder), silent = TRUE)
  folder
}

make_done <- function(folder, num_done) {
  job <- inside$join_folder(folder, "folder", NULL, NULL)
  file.create(inside$task_file(job, seq_len(num_done)))
  for (task in seq_len(num_done)) {
    inside$write_receipt(job, task, 30)
  }
}

# Of workers of other hosts, from the last task down. Gives the job.
make_claims <- function(folder, num_tasks, num_workers) {
  job <- inside$join_folder(folder, "folder", NULL, NULL)
  for (worker in seq_len(num_workers)) {
    words <- sprintf(
      "%020d\nhost: node%04d\nprocess: %d\nstart: 1\nplace: elsewhere\n",
      7L, worker, worker
    )
    claim <- inside$claim_file(job, num_tasks - worker + 1, 1)
    lease <- inside$job_file(job, sprintf("lease-%016x", worker))
    if (!file.exists(claim)) {
      cat(words, file = claim)
      file.link(claim, lease)
    }
  }
  job
}

seconds_of <- function(call, times) {
  call()
  system.time(for (i in seq_len(times)) call())[["elapsed"]] / times
}

# A session keeps the receipts that it has read, so that they are forgotten first.
first_status <- function(folder) {
  assign("receipts", NULL, envir = inside$session)
  system.time(knn_status(folder))[["elapsed"]]
}

# The number of claims that one reading of the state opens.
count_reads <- function(job, open, state) {
  counter <- new.env()
  counter$reads <- 0
  suppressMessages(trace(
    "claim_text", function() counter$reads <- counter$reads + 1,
    print = FALSE, where = inside
  ))
  on.exit(suppressMessages(untrace("claim_text", where = inside)))
  inside$are_worked_on(job, open, state$generation[open])
  counter$reads
}

measure <- function(folder, num_tasks, num_workers) {
  job <- make_claims(folder, num_tasks, num_workers)
  state <- inside$look_at_folder(job, NULL)
  open <- which(!state$done & state$generation > 0)
  data.frame(
    tasks = num_tasks, workers = num_workers,
    files = length(list.files(folder)),
    claims_read = count_reads(job, open, state),
    look = seconds_of(function() inside$look_at_folder(job, NULL), 20),
    claims = seconds_of(function() {
      # As if a quarter of the lease had passed.
      job$seen <- NULL
      inside$are_worked_on(job, open, state$generation[open])
    }, 10),
    status = first_status(folder)
  )
}

rows <- list()
for (num_tasks in c(2000, 10000, 20000)) {
  folder <- make_folder(num_tasks)
  make_done(folder, num_tasks - 1000)
  for (num_workers in c(10, 100, 1000)) {
    rows <- c(rows, list(measure(folder, num_tasks, num_workers)))
  }
  unlink(folder, recursive = TRUE)
}
table <- do.call(rbind, rows)
for (column in c("look", "claims", "status")) {
  table[[column]] <- sprintf("%.4f", table[[column]])
}
print(table, row.names = FALSE)
cat(
  "\n", parallel::detectCores(), " cores (", cpu_name(), "), ",
  format(Sys.Date()), ", fsknn ", version_of("fsknn"), "\n", sep = ""
)

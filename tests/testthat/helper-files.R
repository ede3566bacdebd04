# Makes an empty working folder. Errors name a file as it was given, and a bare
# name is the same in every snapshot.
local_folder <- function(env = parent.frame()) {
  withr::local_dir(withr::local_tempdir(.local_envir = env), .local_envir = env)
}

# Returns the finished tasks in the folder of a checkpoint.
task_files <- function(folder) {
  list.files(folder, "^fsknn-task-[0-9]+$", full.names = TRUE)
}

bytes_of <- function(file) readBin(file, "raw", file.size(file))

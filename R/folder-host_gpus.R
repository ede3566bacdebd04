# The workers on a machine share its GPUs by locks. These are in a folder of the
# machine, not of the network, and the system releases them when the process
# ends.

# Returns the GPUs that this process owns until it ends: the first group that no
# other process has locked. `keys` are the names of the groups' locks.
claim_devices <- function(office, groups, keys = seq_along(groups)) {
  claim <- get0("claim", envir = session, inherits = FALSE)
  if (!identical(claim[c("office", "groups")], list(
    office = office, groups = groups
  ))) {
    claim <- list(office = office, groups = groups)
    for (number in seq_along(groups)) {
      lock <- in_core(
        cpp_lock_host(file.path(office, paste0("devices-", keys[[number]])))
      )
      if (!is.null(lock$lock)) {
        claim$lock <- lock$lock
        claim$devices <- groups[[number]]
        break
      }
    }
    if (is.null(claim$devices)) {
      stop("There is no GPU left for this worker.")
    }
    assign("claim", claim, envir = session)
  }
  claim$devices
}

# Serves a worker that shares its machine with unknown others. It uses the
# devices that were named, or one GPU. If a scheduler gave this job GPUs of its
# own, it uses all in CUDA_VISIBLE_DEVICES.
claim_host_devices <- function(devices = integer(),
                               count = nrow(cuda_devices())) {
  if (length(devices) > 0) {
    return(devices)
  }
  visible <- visible_devices()
  if (!is.null(visible)) {
    count <- min(count, length(visible))
    if (in_job_alone()) {
      return(seq_len(count))
    }
  }
  keys <- device_keys(visible %||% as.character(seq_len(count) - 1L))
  claim_devices(
    host_folder(), as.list(seq_len(count)), keys[seq_len(count)]
  )
}

# Returns the names in CUDA_VISIBLE_DEVICES, or NULL.
visible_devices <- function(variable = Sys.getenv("CUDA_VISIBLE_DEVICES", NA)) {
  if (is.na(variable)) {
    return(NULL)
  }
  names <- trimws(strsplit(variable, ",", fixed = TRUE)[[1]])
  names[nzchar(names)]
}

# Returns TRUE if this is the only process of a Slurm job on this machine. The
# job's GPUs then belong to it.
in_job_alone <- function() {
  tasks <- Sys.getenv("SLURM_STEP_TASKS_PER_NODE", Sys.getenv(
    "SLURM_TASKS_PER_NODE"
  ))
  nzchar(Sys.getenv("SLURM_JOB_ID")) && grepl("^1([(]x[0-9]+[)])?$", tasks)
}

# A GPU may have another number in another job, whose processes see only their
# own GPUs.
device_keys <- function(names) {
  job <- Sys.getenv("SLURM_JOB_ID")
  keys <- if (nzchar(job)) paste(job, names, sep = "-") else names
  gsub("[^A-Za-z0-9-]", "_", keys)
}

# The folder belongs to this machine and this user.
host_folder <- function() {
  folder <- file.path(
    dirname(tempdir()), paste0("fsknn-gpus-", Sys.info()[["effective_user"]])
  )
  dir.create(folder, showWarnings = FALSE, mode = "0700")
  if (!dir.exists(folder)) {
    stop("The folder ", folder, " for locks of GPUs can't be made.")
  }
  folder
}

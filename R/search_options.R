# How to search: what a verb was told besides its data, gathered by the names of
# its arguments and checked in one order, as far as that goes without the data.

# What holds where a verb has no such argument.
unless_told <- list(
  metric = "pearson", sign = "signed", na = "error", min_pairs = NULL,
  constant = "error", chunk_size = NULL, num_threads = NULL,
  max_device_memory = NULL, max_memory = NULL, progress = FALSE,
  verbose = FALSE, backend = "auto", devices = NULL, points = point_sides,
  assay = NULL, dimred = NULL, weights = NULL, BPPARAM = NULL,
  checkpoint = NULL
)

# Called by a verb: its options, checked.
verb_options <- function(verb = caller_env()) {
  known <- intersect(names(unless_told), ls(verb))
  check_options(mget(known, envir = verb), call = verb)
}

# told: a list of some of the arguments that unless_told names.
check_options <- function(told, call = caller_env()) {
  told <- c(told, unless_told[setdiff(names(unless_told), names(told))])
  metric <- check_metric(told$metric, call = call)
  missing <- check_na(told$na, told$min_pairs, metric, call = call)
  options <- list(
    metric = metric,
    na = missing$na,
    min_pairs = missing$min_pairs,
    sign = check_sign(told$sign, metric, call = call),
    constant = check_choice(
      told$constant, c("error", "isolate"), "constant", call = call
    ),
    chunk_size = check_chunk_size(told$chunk_size, call = call),
    num_threads = check_num_threads(told$num_threads, call = call),
    max_device_memory = check_device_memory(
      told$max_device_memory, call = call
    ),
    max_memory = check_max_memory(told$max_memory, call = call),
    progress = check_progress(told$progress, call = call),
    verbose = check_flag(told$verbose, "verbose", call = call),
    instruction_set = check_instruction_set(call = call),
    backend = choose_backend(
      backend_for(told$BPPARAM, told$backend, told$devices, call = call),
      told$devices, call = call
    ),
    automatic = is_automatic(told$backend, told$devices),
    input = check_input(told$points, told$assay, told$dimred, call = call),
    weights = check_sample_weights(told$weights, metric, call = call)
  )
  check_na_and_weights(options, call = call)
  options$long <- check_long_work(
    told$BPPARAM, told$checkpoint, options, told$num_threads, call = call
  )
  options
}

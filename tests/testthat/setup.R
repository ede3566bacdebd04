# One thread where a test names no number: on matrices this small, and on a busy
# machine, threads wait for each other longer than they work. The tests that are
# about threads, and those on real data, name a number.
rlang::local_options(
  fsknn.num_threads = 1, .frame = testthat::teardown_env()
)

# On a machine with a GPU, "auto" says once a session what it chose: here,
# and not in the middle of a snapshot.
suppressMessages(knn_plan(c(10, 3), k = 1))

# What a test draws, as by print(plot(...)), goes to no file.
rlang::local_options(
  device = function(...) grDevices::pdf(NULL), .frame = testthat::teardown_env()
)

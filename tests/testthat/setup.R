# The default is one thread: on such small matrices, and on a busy machine,
# threads wait longer than they work. Tests about threads, and those on real
# data, set a number.
rlang::local_options(
  fsknn.num_threads = 1, .frame = testthat::teardown_env()
)

# On a machine with a GPU, "auto" reports its choice once in a session. It does
# so here rather than in the middle of a snapshot.
suppressMessages(knn_plan(c(10, 3), k = 1))

# Plots that a test draws, for instance by print(plot(...)), are not written to
# a file.
rlang::local_options(
  device = function(...) grDevices::pdf(NULL), .frame = testthat::teardown_env()
)

# Seconds would change the output of every snapshot.
rlang::local_options(
  fsknn.show_time = FALSE, .frame = testthat::teardown_env()
)

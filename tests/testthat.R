library(testthat)
library(fsknn)

# Where FSKNN_TEST_RESULTS names a file, a line for each test goes there: passed,
# failed or skipped, file and name, for whoever counts (tools/test.sh). Not its
# seconds: beside others a file is read here when its worker has run it.
results <- ListReporter$new()
tryCatch(
    test_check("fsknn", reporter = MultiReporter$new(
        reporters = list(CheckReporter$new(), results)
    )),
    finally = {
        file <- Sys.getenv("FSKNN_TEST_RESULTS")
        if (nzchar(file)) {
            tests <- as.data.frame(results$get_results())
            outcome <- ifelse(
                tests$failed > 0 | tests$error, "failed",
                ifelse(tests$skipped, "skipped", "passed")
            )
            writeLines(sprintf(
                "%s\t%s\t%s", outcome, tests$file, tests$test
            ), file)
        }
    }
)

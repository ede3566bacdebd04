# Read by cpu.R and cpu_seconds.R: OpenBLAS at its best.

# An OpenBLAS that does not know a processor with AVX-512 takes it for a
# Prescott, which makes it four times slower, and all ratios to it flattering.
# What core it is for is read when OpenBLAS loads: so the script is started anew
# as SkylakeX, and this does not return. core: what OpenBLAS says it is.
start_as_skylakex <- function(core, script, arguments, options = NULL) {
  has_avx512 <- any(grepl(
    " avx512f ", readLines("/proc/cpuinfo"), fixed = TRUE
  ))
  if (core != "Prescott" || !has_avx512 ||
        Sys.getenv("OPENBLAS_CORETYPE") == "SkylakeX") {
    return(invisible())
  }
  Sys.setenv(OPENBLAS_CORETYPE = "SkylakeX")
  quit(status = system2(
    file.path(R.home("bin"), "Rscript"),
    c(options, shQuote(c(script, arguments)))
  ))
}

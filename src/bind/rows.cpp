// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "bind_files.cpp"
#include "bind_impute.cpp"
#include "bind_latent.cpp"
#include "bind_metafeatures.cpp"
#include "bind_missing.cpp"
#include "bind_row_file.cpp"
#include "bind_scan.cpp"
#include "bind_text.cpp"

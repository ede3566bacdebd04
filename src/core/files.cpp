// Compiled at once: see "Units" in CONTRIBUTING.md.

#include "core/files/bin_file.cpp"
#include "core/files/digest.cpp"
#include "core/files/durable.cpp"
#include "core/files/host_lock.cpp"
#include "core/files/lease.cpp"
#include "core/files/output_file.cpp"
#include "core/files/point_file.cpp"
#include "core/files/row_file.cpp"
#include "core/files/sealed_file.cpp"
#include "core/files/shards.cpp"
#include "core/files/temporary_file.cpp"
#include "core/files/windows.cpp"

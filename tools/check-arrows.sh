#!/bin/sh
# check-arrows.sh [ROOT]: who includes whom in src/; of the repository in ROOT,
# or here. Prints what may not be.
#
#   bindings -> core, cpu, cuda     cpu -> core     cuda -> core
#
# The core includes nothing of ours but itself. Only bindings know R, and only
# src/cuda knows CUDA, in .cpp that a build without a toolkit leaves out. What
# only nvcc compiles is in .cu and .cuh: no .hpp and no .cpp includes a .cuh. A
# unit, as core/files.cpp, includes what it compiles at once; no other file
# includes a .cpp or .cu.

# The folders of src/core and src/cuda: each includes itself and those before it.
core_folders="base contract rows files cover search graph"
cuda_folders="plan device prepare exact filter missing triples search"

# What builds without a toolkit have of src/cuda: none of it knows CUDA, however
# far down.
in_every_build="plan[./] backend.hpp absent.cpp [a-z]*/[a-z]*_bound[.]"

# Threads are started in one place, which alone knows OpenMP.
starts_threads="core/base/team.cpp"

# All may include these besides the standard library, the core too.
system_headers="arm_neon.h dirent.h fcntl.h immintrin.h pthread.h sched.h signal.h
  io.h sys/auxv.h sys/file.h sys/mman.h sys/stat.h sys/statvfs.h sys/sysctl.h sys/uio.h
  unistd.h windows.h"

cd "${1:-.}" || exit 1
status=0

find src -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh' | sort |
  xargs awk -v core="$core_folders" -v cuda="$cuda_folders" -v in_every_build="$in_every_build" \
    -v system_headers="$system_headers" \
    -v starts_threads="$starts_threads" '
  BEGIN {
    count = split(core, names)
    for (i = 1; i <= count; ++i) floor_of["core/" names[i]] = i
    count = split(cuda, names)
    for (i = 1; i <= count; ++i) floor_of["cuda/" names[i]] = i
    count = split(system_headers, names)
    for (i = 1; i <= count; ++i) is_system[names[i]] = 1
    gsub(/ /, "|", in_every_build)
    in_every_build = "^(bind|core/|cpu/|Rcpp|cuda/(" in_every_build "))"
  }

  # "bind", "core", "cpu" or "cuda": the part that a path in src/ belongs to.
  function part_of(path) {
    return path ~ /\// ? substr(path, 1, index(path, "/") - 1) : "bind"
  }

  # The level of a file of src/core or src/cuda. The interface of src/cuda is below
  # all folders; units, and the stub of the engine, are above them.
  function height_of(path,   folder) {
    if (path ~ /^[a-z]+\/[^\/]*\.(cpp|cu)$/) return 100
    if (path !~ /\/.*\//) return 0
    folder = path
    sub(/\/[^\/]*$/, "", folder)
    return folder in floor_of ? floor_of[folder] : -1
  }

  # Whether a header of CUDA is included, here or further down.
  function knows_cuda(path,   names, count, i) {
    if (!(path in known)) {
      known[path] = 0
      count = split(includes[path], names)
      for (i = 1; i <= count && !known[path]; ++i)
        known[path] = knows_cuda(names[i])
    }
    return known[path]
  }

  function wrong(why) {
    print FILENAME ":" FNR ": " why ": " $0
    bad = 1
  }

  FNR == 1 {
    path = FILENAME
    sub(/^src\//, "", path)
    part = part_of(path)
    is_plain = path ~ /pp$/
    if (part !~ /^(bind|core|cpu|cuda)$/)
      wrong("no part of src has this name")
    if (part ~ /^c(ore|uda)$/ && height_of(path) < 0)
      wrong("no folder of src/" part " has this name (tools/check-arrows.sh)")
  }

  /^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, pieces, "\"")
    target = pieces[2]
    to = part_of(target)
    includes[path] = includes[path] " " target
    if (path ~ in_every_build) {
      ++count_asked
      asked[count_asked] = target
      asked_at[count_asked] = FILENAME ":" FNR
    }
    if (target ~ /\.(cpp|cu)$/) {
      if (path !~ /^[a-z]+\/[a-z_]+\.(cpp|cu)$/ || to != part)
        wrong("only a unit includes a .cpp or .cu")
    } else if (to == "..") {
      # The header for other packages, which plain C includes.
      if (part != "bind" || target != "../inst/include/fsknn.h")
        wrong("only bindings may include inst/include/fsknn.h, and nothing else there")
    } else if (to == "bind" ? part != "bind" || target !~ /^(bind_.*\.hpp|fsknn_types\.h)$/ \
                     : to != part && to != "core" && part != "bind")
      wrong(part " may not include this")
    else if (is_plain && target ~ /\.cuh$/)
      wrong("plain C++ may not include what nvcc compiles")
    else if (to == part && part ~ /^c(ore|uda)$/ &&
             height_of(target) > height_of(path))
      wrong("this is higher up")
  }

  /^[ \t]*#[ \t]*include[ \t]*</ {
    target = $0
    sub(/^[^<]*</, "", target)
    sub(/>.*/, "", target)
    if (target ~ /^(R$|R[._]|R_|Rcpp|Rinternals|Rmath|Rversion|cli\/)|[Aa]rmadillo/) {
      if (part != "bind") wrong("only bindings know R")
    } else if (target ~ /^cuda/) {
      known[path] = 1
      if (path ~ in_every_build)
        wrong("a build without CUDA cannot include this")
    } else if (target ~ /^(cub|cooperative_groups|math_constants)/) {
      if (is_plain) wrong("only what nvcc compiles knows kernels")
    } else if (target == "omp.h") {
      if (path != starts_threads) wrong("only " starts_threads " knows OpenMP")
    } else if (target ~ /[.\/]/ && !(target in is_system)) {
      wrong("not a header that is known (tools/check-arrows.sh)")
    }
  }

  /^[ \t]*#[ \t]*pragma[ \t]+omp/ && path != starts_threads {
    wrong("only " starts_threads " knows OpenMP")
  }

  END {
    for (i = 1; i <= count_asked; ++i)
      if (knows_cuda(asked[i])) {
        print asked_at[i] ": a build without CUDA cannot include this:" \
          " #include \"" asked[i] "\""
        bad = 1
      }
    exit bad
  }
' || status=1
exit $status

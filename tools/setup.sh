#!/bin/sh
# setup.sh demo | pages | test | lint | sanitize | coverage | cluster ...   (test: and pages)
# Brings what `make demo`, `make test` and so on need from Debian's packages.
# Fetches nothing that is there already, by whatever way it came. Without apt it
# says what is missing, and fails only then.

. tools/common.sh
purposes=" both $* "
case $purposes in
  *" test "*) purposes="$purposes pages " ;;
esac

# used for, Debian package, what it is needed for
needs='
both r-base-core    command:Rscript
both r-base-dev     toolchain
both r-cran-rcpp    R:Rcpp
both r-cran-rcpparmadillo R:RcppArmadillo
both r-cran-cli     R:cli
both r-cran-rlang   R:rlang
both r-cran-igraph  R:igraph
both r-bioc-biocgenerics R:BiocGenerics
both r-cran-ggplot2 R:ggplot2
both r-cran-ggraph  R:ggraph
both r-bioc-biobase R:Biobase
both r-bioc-delayedarray R:DelayedArray
both r-bioc-all     R:ALL
both r-bioc-annotate R:annotate
test r-cran-testthat R:testthat
test r-cran-withr   R:withr
test r-cran-digest  R:digest
pages r-cran-knitr   R:knitr
pages r-cran-rmarkdown R:rmarkdown
pages r-bioc-biocstyle R:BiocStyle
test r-bioc-bioccheck R:BiocCheck
test r-cran-pkgdown R:pkgdown
pages pandoc         command:pandoc
pages r-bioc-multtest R:multtest
pages r-bioc-summarizedexperiment R:SummarizedExperiment
pages r-bioc-singlecellexperiment R:SingleCellExperiment
test r-cran-matrix  R:Matrix
pages r-bioc-biocneighbors R:BiocNeighbors
test r-bioc-biocparallel R:BiocParallel
pages r-bioc-bluster R:bluster
pages r-bioc-scran   R:scran
pages r-bioc-scater  R:scater
pages r-bioc-destiny R:destiny
pages r-cran-rspectra R:RSpectra
test r-bioc-hdf5array R:HDF5Array
test r-bioc-rhdf5   R:rhdf5
test r-cran-bigmemory R:bigmemory
test r-cran-fnn     R:FNN
test r-cran-rann    R:RANN
test r-bioc-s4vectors R:S4Vectors
test r-bioc-limma   R:limma
test r-bioc-edger   R:edgeR
test r-cran-tibble  R:tibble
test r-cran-dplyr   R:dplyr
test r-cran-tidygraph R:tidygraph
test r-cran-data.table R:data.table
test r-cran-dbscan  R:dbscan
test r-cran-rcppannoy R:RcppAnnoy
test r-cran-seurat  R:Seurat
test r-cran-seuratobject R:SeuratObject
test r-cran-uwot    R:uwot
test r-cran-rglpk   R:Rglpk
test r-cran-slam    R:slam
test r-cran-proxy   R:proxy
test r-cran-wgcna   R:WGCNA
pages r-cran-survival R:survival
pages r-bioc-annotationdbi R:AnnotationDbi
pages r-bioc-org.hs.eg.db R:org.Hs.eg.db
pages r-bioc-go.db  R:GO.db
pages r-cran-htmlwidgets R:htmlwidgets
pages r-cran-patchwork R:patchwork
test r-cran-class   R:class
test r-bioc-impute  R:impute
test r-bioc-qvalue  R:qvalue
test doctest-dev    header:doctest/doctest.h
test clang          command:clang++
test ccache         command:ccache
test g++-aarch64-linux-gnu command:aarch64-linux-gnu-g++
test qemu-user      command:qemu-aarch64
lint clang-format   command:clang-format
lint clang-tidy     command:clang-tidy
lint r-cran-lintr   R:lintr
sanitize libomp-dev clang-openmp
coverage r-cran-covr R:covr
cluster r-bioc-biocparallel R:BiocParallel
cluster r-cran-batchtools R:batchtools
cluster r-cran-snow R:snow
cluster r-cran-rmpi R:Rmpi
cluster openmpi-bin command:mpirun
cluster iproute2    command:ip
cluster slurmctld   command:slurmctld
cluster slurmd      command:slurmd
cluster slurm-client command:sbatch
cluster slurm-wlm-basic-plugins command:slurmd
cluster libopenmpi-dev library:libmpi.so
cluster libfaketime library:faketime/libfaketime.so.1
'

# Whether R can build a package here, found out by building.
has_toolchain() {
  command -v R > /dev/null 2>&1 || return 1
  probe=$(mktemp -d) || return 1
  echo 'extern "C" int fsknn_probe() { return 0; }' > "$probe/probe.cpp"
  (cd "$probe" && PKG_LIBS='$(LAPACK_LIBS) $(BLAS_LIBS) $(FLIBS)' \
    R CMD SHLIB probe.cpp) > /dev/null 2>&1
  status=$?
  rm -rf "$probe"
  return $status
}

has() {
  case $1 in
    command:*) command -v "${1#command:}" > /dev/null 2>&1 ;;
    R:*)
      command -v Rscript > /dev/null 2>&1 &&
        Rscript -e "quit(status = !nzchar(system.file(package = '${1#R:}')))" \
          > /dev/null 2>&1 ;;
    header:*)
      command -v g++ > /dev/null 2>&1 &&
        echo "#include <${1#header:}>" |
          g++ -std=c++17 -fsyntax-only -x c++ - > /dev/null 2>&1 ;;
    clang-openmp)
      echo '#include <omp.h>' |
        clang++ -fopenmp -fsyntax-only -x c++ - > /dev/null 2>&1 ;;
    library:*) ls /usr/lib*/*/"${1#library:}" > /dev/null 2>&1 ;;
    toolchain) has_toolchain ;;
  esac
}

# Debian's word first, being quick; then whether the thing itself is there.
is_there() {
  if command -v dpkg-query > /dev/null 2>&1 &&
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2> /dev/null)" = installed ]
  then
    return 0
  fi
  has "$2"
}

# Sets missing (Debian packages) and missing_words.
look() {
  missing=
  missing_words=
  while read -r used package need; do
    case $purposes in
      *" $used "*) ;;
      *) continue ;;
    esac
    # Neither R nor a compiler may eat the list that this loop reads.
    is_there "$package" "$need" < /dev/null && continue
    missing="$missing $package"
    case $need in
      R:*) missing_words="$missing_words
  the R package ${need#R:}" ;;
      command:Rscript) missing_words="$missing_words
  R 4.2 or later" ;;
      command:*) missing_words="$missing_words
  the program ${need#command:}" ;;
      header:*) missing_words="$missing_words
  the C++ header ${need#header:}" ;;
      library:*) missing_words="$missing_words
  the library ${need#library:}" ;;
      clang-openmp) missing_words="$missing_words
  OpenMP for clang" ;;
      toolchain) missing_words="$missing_words
  C++17 and Fortran compilers, LAPACK and BLAS, as R needs them for packages" ;;
    esac
  done <<END
$(echo "$needs" | sed '/^$/d')
END
}

look
[ -n "$missing" ] || exit 0

give_up() {
  echo "$1 These are missing:$missing_words" >&2
  echo "Debian's packages of them:$missing" >&2
  exit 1
}

if ! command -v apt-get > /dev/null 2>&1; then
  give_up "This machine has no apt-get, so please install by hand what is needed."
fi
as_root=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo > /dev/null 2>&1 ||
    give_up "Packages can be installed by root or through sudo, and neither is here."
  as_root=sudo
fi

echo "Installing from Debian's packages:$missing"
# Old lists are still good where nothing newer can be had.
$as_root apt-get update -q ||
  echo "apt-get update failed; going on with the lists that are here." >&2
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
  --no-install-recommends -o DPkg::Lock::Timeout=600 $missing < /dev/null ||
  give_up "apt-get could not install all that is needed."

look
[ -z "$missing" ] || give_up "apt-get installed all, but not all works."

#!/bin/sh
# setup.sh install | demo | site | check | test | lint | sanitize | coverage | cluster
# Installs what `make install`, `make demo` and so on need from Debian's packages.
# Downloads nothing that is already installed, also from elsewhere. Without apt it
# lists what is missing, and fails only then.

. tools/common.sh
purposes=" core $* "
case $* in
  install) purposes="$purposes pictures html " ;;
  demo) purposes="$purposes pictures " ;;
  site) purposes="$purposes pictures html demo pages " ;;
  check) purposes="$purposes lint " ;;
  *test*) purposes="$purposes pictures html demo pages site check lint " ;;
esac

# used for, Debian package, what it is needed for
needs='
core     r-base-core            command:Rscript
core     r-base-dev             toolchain
core     r-cran-rcpp            R:Rcpp
core     r-cran-rcpparmadillo   R:RcppArmadillo
core     r-cran-cli             R:cli
core     r-cran-rlang           R:rlang
core     r-cran-igraph          R:igraph
core     r-bioc-biocgenerics    R:BiocGenerics
pictures r-cran-ggplot2         R:ggplot2
pictures r-cran-ggraph          R:ggraph
pictures r-bioc-biobase         R:Biobase
pictures r-bioc-all             R:ALL
html     r-cran-knitr           R:knitr
html     r-cran-rmarkdown       R:rmarkdown
html     pandoc                 command:pandoc
test     r-bioc-multtest        R:multtest
html     r-cran-patchwork       R:patchwork
demo     r-bioc-annotate        R:annotate
pages    r-bioc-delayedarray    R:DelayedArray
pages    r-bioc-summarizedexperiment R:SummarizedExperiment
pages    r-bioc-singlecellexperiment R:SingleCellExperiment
pages    r-cran-matrix          R:Matrix
pages    r-bioc-biocneighbors   R:BiocNeighbors
pages    r-bioc-biocparallel    R:BiocParallel
pages    r-bioc-bluster         R:bluster
pages    r-bioc-scran           R:scran
pages    r-bioc-scater          R:scater
pages    r-bioc-destiny         R:destiny
pages    r-cran-rspectra        R:RSpectra
pages    r-cran-rtsne           R:Rtsne
pages    r-bioc-hdf5array       R:HDF5Array
pages    r-cran-survival        R:survival
pages    r-bioc-annotationdbi   R:AnnotationDbi
pages    r-bioc-org.hs.eg.db    R:org.Hs.eg.db
pages    r-bioc-go.db           R:GO.db
pages    r-cran-htmlwidgets     R:htmlwidgets
pages    r-bioc-limma           R:limma
pages    r-bioc-edger           R:edgeR
pages    r-bioc-impute          R:impute
site     r-cran-pkgdown         R:pkgdown
check    r-cran-testthat        R:testthat
check    r-cran-withr           R:withr
check    doctest-dev            header:doctest/doctest.h
check    ccache                 command:ccache
lint     clang-format           command:clang-format
lint     clang-tidy             command:clang-tidy
lint     r-cran-lintr           R:lintr
test     r-cran-digest          R:digest
test     r-bioc-bioccheck       R:BiocCheck
test     r-bioc-rhdf5           R:rhdf5
test     python3-anndata        python:anndata
test     r-cran-bigmemory       R:bigmemory
test     r-cran-fnn             R:FNN
test     r-cran-rann            R:RANN
test     r-bioc-s4vectors       R:S4Vectors
test     r-cran-tibble          R:tibble
test     r-cran-dplyr           R:dplyr
test     r-cran-tidygraph       R:tidygraph
test     r-cran-data.table      R:data.table
test     r-cran-dbscan          R:dbscan
test     r-cran-rcppannoy       R:RcppAnnoy
test     r-cran-seurat          R:Seurat
test     r-cran-seuratobject    R:SeuratObject
test     r-cran-uwot            R:uwot
test     r-cran-rglpk           R:Rglpk
test     r-cran-slam            R:slam
test     r-cran-proxy           R:proxy
test     r-cran-wgcna           R:WGCNA
test     r-bioc-snpstats        R:snpStats
test     r-bioc-variantannotation R:VariantAnnotation
test     plink1.9               command:plink1.9
test     r-cran-class           R:class
test     r-bioc-qvalue          R:qvalue
test     clang                  command:clang++
test     g++-aarch64-linux-gnu  command:aarch64-linux-gnu-g++
test     qemu-user              command:qemu-aarch64
sanitize libomp-dev             clang-openmp
coverage r-cran-covr            R:covr
cluster  r-bioc-biocparallel    R:BiocParallel
cluster  r-cran-batchtools      R:batchtools
cluster  r-cran-snow            R:snow
cluster  r-cran-rmpi            R:Rmpi
cluster  openmpi-bin            command:mpirun
cluster  iproute2               command:ip
cluster  slurmctld              command:slurmctld
cluster  slurmd                 command:slurmd
cluster  slurm-client           command:sbatch
cluster  slurm-wlm-basic-plugins command:slurmd
cluster  libopenmpi-dev         library:libmpi.so
cluster  libfaketime            library:faketime/libfaketime.so.1
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
    # Debian's, which may not be the first in the path.
    python:*) /usr/bin/python3 -c "import ${1#python:}" > /dev/null 2>&1 ;;
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

# Packages that this release of Debian does not have: what needs them is skipped.
absent=" "

# Sets missing (Debian packages) and missing_words.
look() {
  missing=
  missing_words=
  while read -r used package need; do
    case $purposes in
      *" $used "*) ;;
      *) continue ;;
    esac
    case $absent in
      *" $package "*) continue ;;
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
      python:*) missing_words="$missing_words
  the Python package ${need#python:}" ;;
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
for package in $missing; do
  LC_ALL=C apt-cache policy "$package" | grep -q 'Candidate: [^(]' ||
    absent="$absent$package "
done
if [ "$absent" != " " ]; then
  echo "This release of Debian does not have:$absent"
  look
fi
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
  --no-install-recommends -o DPkg::Lock::Timeout=600 $missing < /dev/null ||
  give_up "apt-get could not install all that is needed."

look
[ -z "$missing" ] || give_up "apt-get installed all, but not all works."

#!/bin/sh
# build.sh dev        installs the package into _build/library in haste: what changed is
#                     compiled, and there are no help pages
# build.sh library    the same with help pages and byte code, if out of date
# build.sh install    installs it with its vignettes into R's own library
# build.sh document   writes RcppExports.*, NAMESPACE and man/
#
# R compiles in _build/package, which holds a link to each source. The objects of all
# these commands stay there, and only objects whose sources or headers changed are
# compiled again.

. tools/common.sh
package=$build/package
log=$build/build.log

link_sources() {
  # In a copy of this folder the links lead to the original.
  ls -l "$package/DESCRIPTION" 2> /dev/null | grep -q -F -e "-> $root/" ||
    rm -rf "$package"
  mkdir -p "$package" || return 1
  # With -L find takes a link for one only if its target is gone.
  find -L "$package" -type l -exec rm -f {} +
  list_sources | while read -r file; do
    [ -L "$package/$file" ] || {
      mkdir -p "$(dirname "$package/$file")" &&
        ln -s "$root/$file" "$package/$file"
    } || exit 1
  done
}

# configure_package WHO: as the environment asks for. If it asks for nothing and
# no GPU is seen, an earlier choice stays; at first the CUDA part, which would
# only take time to compile, is left out of all but an installation.
configure_package() {
  choice=$package/choice
  gpus=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null |
    grep '^[0-9.]*$' | sort -u | tr '\n' ' ')
  if [ "$1" != install ] &&
    [ -z "${FSKNN_CONFIGURE_ARGS+set}${FSKNN_CUDA_ARCH+set}$gpus" ]
  then
    if [ -f "$choice" ]; then
      . "$choice"
    else
      echo "No NVIDIA GPU is seen here: the CUDA part is left out."
      FSKNN_CONFIGURE_ARGS=--without-cuda
    fi
  fi
  wanted="FSKNN_CONFIGURE_ARGS='${FSKNN_CONFIGURE_ARGS-}'
FSKNN_CUDA_ARCH='${FSKNN_CUDA_ARCH-}' # $gpus"
  if [ "$(cat "$choice" 2> /dev/null)" = "$wanted" ] &&
    [ -z "$(find configure src/Makevars.in -newer "$choice")" ]
  then
    return 0
  fi
  (cd "$package" && FSKNN_CUDA_ARCH=${FSKNN_CUDA_ARCH-} \
    ./configure ${FSKNN_CONFIGURE_ARGS-}) > "$log" 2>&1 || {
    cat "$log" >&2
    return 1
  }
  grep '^configure: ' "$log"
  printf '%s\n' "$wanted" > "$choice"
}

# weigh LINE: sets weight, about how long make takes for this command: 1 for a C++
# file, more for each GPU architecture, and 0 for all that compiles nothing.
weigh() {
  weight=0
  case $1 in
    *' -c '*) weight=1 ;;
    *) return ;;
  esac
  rest=$1
  while [ "$rest" != "${rest#*-gencode}" ]; do
    rest=${rest#*-gencode}
    weight=$((weight + 3))
  done
}

# Reads what make prints and says how far it is: all the time where someone
# watches, else now and then.
follow_make() {
  begun=$(now)
  said=$begun
  count=0
  done=0
  while read -r line; do
    printf '%s\n' "$line" >> "$log"
    weigh "$line"
    [ $weight -gt 0 ] || continue
    seconds=$(($(now) - begun))
    left=
    [ $done -eq 0 ] ||
      left=", $((seconds * (total - done) / done)) seconds left"
    done=$((done + weight))
    count=$((count + 1))
    if [ -t 1 ]; then
      printf '\r  file %s of %s%s   ' $count $files "$left"
    elif [ $((begun + seconds - said)) -ge 15 ]; then
      said=$((begun + seconds))
      echo "  file $count of $files$left"
    fi
  done
  [ ! -t 1 ] || printf '\r%60s\r' ''
}

# R CMD INSTALL runs make again, which then finds nothing to do.
compile_package() {
  CLINK_CPPFLAGS=$(Rscript -e '
    names <- strsplit(read.dcf("DESCRIPTION", "LinkingTo"), "[, \n]+")[[1]]
    paths <- vapply(names, function(name) system.file("include", package = name), "")
    cat(sprintf("-I%s", shQuote(paths)))
  ')
  export CLINK_CPPFLAGS
  # A build that was killed may have left half an object.
  if [ -f "$build/compiling" ]; then
    find "$package/src" -name '*.o' -newer "$build/compiling" -exec rm -f {} +
  fi
  cd "$package/src" || return 1
  R CMD SHLIB --dry-run -o fsknn.so > "$build/plan" 2>&1 || return 1
  total=0
  files=0
  while read -r line; do
    weigh "$line"
    [ $weight -eq 0 ] || files=$((files + 1))
    total=$((total + weight))
  done < "$build/plan"
  [ $total -eq 0 ] || {
    echo "Compiling $files files, $jobs at a time; the log is ${log#"$root"/}."
  }
  : > "$build/compiling"
  { R CMD SHLIB -o fsknn.so 2>&1; echo $? > "$build/status"; } | follow_make
  status=$(cat "$build/status")
  rm -f "$build/compiling"
  cd "$root" || return 1
  [ "$status" -eq 0 ] || tail -n 40 "$log" >&2
  return "$status"
}

# install_package ARGUMENT...: R CMD INSTALL of what has been compiled.
install_package() {
  R CMD INSTALL --no-configure "$@" "$package" >> "$log" 2>&1 || {
    tail -n 40 "$log" >&2
    return 1
  }
}

build_package() {
  use_makevars Makevars && link_sources && configure_package "$1" &&
    : > "$log" && compile_package
}

# install_library HOW [ARGUMENT...]: into _build/library, unless the package is there
# as completely and no source is newer. Nobody else uses this library, so that it
# needs no lock, which would outlive a build that was killed.
install_library() {
  how=$1
  shift
  stamp=$build/installed
  mkdir -p "$library" || return 1
  echo "$how" > "$stamp.new"
  build_package library || return 1
  case $(cat "$stamp" 2> /dev/null) in
    library | "$how")
      [ -n "$(list_sources -newer "$stamp")" ] ||
        [ -n "$(find "$package/src/fsknn.so" \
          -newer "$library/fsknn/libs/fsknn.so")" ] || return 0 ;;
  esac
  rm -f "$stamp"
  install_package --no-lock --library="$library" "$@" && mv "$stamp.new" "$stamp"
}

# The vignettes into the package, where R CMD build would put them, without compiling
# the package once more.
build_vignettes() {
  index=$package/build/vignette.rds
  if [ -f "$index" ] && [ -z "$(list_sources -newer "$index")" ]; then
    return 0
  fi
  R_LIBS=$library${R_LIBS:+:$R_LIBS} Rscript tools/vignettes.R "$package"
}

case $1 in
  dev)
    begun=$(now)
    quick="--no-docs --no-byte-compile --no-staged-install"
    install_library dev $quick || exit 1
    echo "In _build/library after $(($(now) - begun)) seconds: R_LIBS=_build/library R" ;;
  library) install_library library ;;
  install)
    sh tools/setup.sh install || exit 1
    build_package install && install_library dev --no-docs && build_vignettes &&
      install_package --strip || exit 1
    Rscript -e '
      found <- find.package("fsknn")
      count <- length(list.files(file.path(found, "doc"), "[.]html$")) - 1
      cat("Installed, with ", count, " vignettes, in ", found, "\n", sep = "")
    ' ;;
  document)
    [ -f NAMESPACE ] ||
      echo '# Generated by roxygen2: do not edit by hand' > NAMESPACE
    # Twice, since each reads what the other writes: the R functions of the
    # bindings, and whether NAMESPACE registers them. Help pages show facts of the
    # compiled code.
    Rscript -e 'Rcpp::compileAttributes()' && sh tools/build.sh dev &&
      R_LIBS=$build/library Rscript \
        -e 'roxygen2::roxygenise(load_code = "installed")' \
        -e 'Rcpp::compileAttributes()' ;;
  *)
    echo "build.sh: dev, library, install or document?" >&2
    exit 1 ;;
esac

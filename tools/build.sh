#!/bin/sh
# build.sh library    installs the package into _build/library, if out of date
# build.sh install    installs it with its vignettes into R's own library
# build.sh document   writes RcppExports.*, NAMESPACE and man/

. tools/common.sh

sees_gpu() {
  nvidia-smi -L > /dev/null 2>&1 || [ -e /dev/nvidia0 ]
}

# Where configure would look; one that is not seen here is still found there.
has_toolkit() {
  command -v nvcc > /dev/null && return 0
  for nvcc in "${CUDA_HOME-}/bin/nvcc" "${CUDA_PATH-}/bin/nvcc" \
    /usr/local/cuda*/bin/nvcc /opt/cuda/bin/nvcc /usr/lib/cuda/bin/nvcc \
    /usr/lib/nvidia-cuda-toolkit/bin/nvcc
  do
    [ ! -x "$nvcc" ] || return 0
  done
  return 1
}

# Sets key: what R compiles from and for. With a GPU gone or come, it is another.
find_key() {
  configure_args=${FSKNN_CONFIGURE_ARGS:+--configure-args=$FSKNN_CONFIGURE_ARGS}
  gpus=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader \
    2> /dev/null | sort -u | tr '\n' ' ')
  key="$configure_args ${FSKNN_CUDA_ARCH-$gpus}"
}

# is_fresh FILE KEY: FILE holds KEY and no source is newer.
is_fresh() {
  [ "$(cat "$1" 2> /dev/null)" = "$2" ] && [ -z "$(list_sources -newer "$1")" ]
}

# Sets stage: a copy of the sources in which R compiles, so that the working
# tree stays as it is. It is kept, and what is installed into both libraries is
# compiled once.
make_stage() {
  stage=$build/package/$(printf '%s' "$key" | cksum | cut -d ' ' -f 1)
  if is_fresh "$stage/key" "$key"; then
    return 0
  fi
  rm -rf "$stage"
  mkdir -p "$stage" || return 1
  # Its time is that of the start: what changes from now on is not in it.
  printf '%s\n' "$key" > "$stage/key.new"
  (cd "$stage" && R CMD build --no-build-vignettes --no-manual "$root" &&
    tar xzf fsknn_*.tar.gz && rm fsknn_*.tar.gz) || return 1
  mv "$stage/key.new" "$stage/key"
}

# How many files R compiles, which is known once configure has run.
count_objects() {
  [ -f "$stage/fsknn/src/Makevars" ] &&
    printf 'include Makevars\ncount-objects:\n\t@echo $(words $(OBJECTS))\n' |
    make -s -C "$stage/fsknn/src" -f - count-objects 2> /dev/null
}

# Says how far R is with compiling, until it is told to stop: all the time where
# someone watches, else now and then.
watch_objects() {
  begun=$(now)
  line=
  while kill -0 $$ 2> /dev/null; do
    # Not on our output, which whoever reads it would wait for.
    if [ -t 1 ]; then wait=1; else wait=${FSKNN_WATCH_SECONDS:-15}; fi
    sleep "$wait" > /dev/null 2>&1
    total=$(count_objects) || continue
    made=$(find "$stage/fsknn/src" -name '*.o' | wc -l)
    new="  $((made)) of $total files compiled"
    if [ -t 1 ]; then
      printf '\r%s, %s seconds' "$new" "$(($(now) - begun))"
    elif [ "$new" != "$line" ]; then
      echo "$new, $(($(now) - begun)) seconds"
    fi
    line=$new
  done
}

# install_stage LOG ARGUMENTS...: R CMD INSTALL of the stage.
install_stage() {
  log=$1
  shift
  # What a build that was stopped has left may be half a file.
  if [ ! -f "$stage/compiled" ]; then
    find "$stage/fsknn/src" -name '*.o' -delete
    echo "Compiling, $jobs files at once; what R says is in ${log#"$root"/}."
  fi
  watch_objects &
  watcher=$!
  trap 'kill $watcher 2> /dev/null' EXIT
  R CMD INSTALL "$@" $configure_args "$stage/fsknn" >> "$log" 2>&1
  status=$?
  kill $watcher 2> /dev/null
  wait $watcher 2> /dev/null
  trap - EXIT
  [ ! -t 1 ] || printf '\r%60s\r' ''
  if [ $status -ne 0 ]; then
    tail -n 40 "$log" >&2
    echo "R CMD INSTALL failed; the whole of what it said is in ${log#"$root"/}." >&2
    return $status
  fi
  touch "$stage/compiled"
}

# Into _build/library, from the stage of $key.
install_library() {
  if [ -f "$library/fsknn/DESCRIPTION" ] &&
    is_fresh "$build/library-key" "$key"
  then
    return 0
  fi
  rm -f "$build/library-key"
  mkdir -p "$library" || return 1
  make_stage > "$build/library.log" 2>&1 || {
    cat "$build/library.log" >&2
    return 1
  }
  # Nobody else uses this library, and R's lock would outlive a build that was
  # killed, and stop the next one.
  rm -rf "$library/00LOCK-fsknn"
  install_stage "$build/library.log" --no-lock --library="$library" || return 1
  grep '^configure: ' "$build/library.log"
  cp -p "$stage/key" "$build/library-key"
}

# The vignettes into the stage, where R CMD build would put them: what it does
# for that, compile the package once more, is done.
build_vignettes() {
  [ ! -f "$stage/fsknn/build/vignette.rds" ] || return 0
  R_LIBS=$library${R_LIBS:+:$R_LIBS} Rscript tools/vignettes.R "$stage/fsknn"
}

case $1 in
  library)
    # Neither the demo nor the pages need a GPU: where none is seen the CUDA part
    # would only take time to compile.
    if [ -z "${FSKNN_CONFIGURE_ARGS+set}${FSKNN_CUDA_ARCH+set}" ] &&
      ! sees_gpu && has_toolkit
    then
      echo "No NVIDIA GPU is seen here: the CUDA part is left out."
      FSKNN_CONFIGURE_ARGS=--without-cuda
    fi
    find_key
    install_library || exit 1 ;;
  install)
    sh tools/setup.sh pages || exit 1
    # Vignettes are built with that; where it is for the same key, all is compiled.
    sh tools/build.sh library || exit 1
    find_key
    make_stage > "$build/install.log" 2>&1 || {
      cat "$build/install.log" >&2
      exit 1
    }
    build_vignettes || exit 1
    install_stage "$build/install.log" || exit 1
    Rscript -e '
      found <- find.package("fsknn")
      count <- length(list.files(file.path(found, "doc"), "[.]html$")) - 1
      cat("Installed, with ", count, " vignettes, in ", found, "\n", sep = "")
    ' ;;
  document)
    [ -f NAMESPACE ] ||
      echo '# Generated by roxygen2: do not edit by hand' > NAMESPACE
    # Twice, since each reads what the other writes: the R functions of the
    # bindings, and whether NAMESPACE registers them.
    Rscript -e 'Rcpp::compileAttributes()' \
      -e 'roxygen2::roxygenise(load_code = "source")' \
      -e 'Rcpp::compileAttributes()' ;;
  *)
    echo "build.sh: library, install or document?" >&2
    exit 1 ;;
esac

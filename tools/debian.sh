#!/bin/sh
# debian.sh SUITE [COMMAND]   as root: builds the last commit in another release of
# Debian (trixie, sid), and so with other versions of R, all packages and compilers.
# Then runs a command there ("make demo"), by default all tests in R. The packages
# (4.5 GB) stay in _build/debian, as does all that is compiled there.

. tools/common.sh

if [ $# = 0 ] || [ "$(id -u)" != 0 ] || ! command -v debootstrap > /dev/null; then
  echo "As root, with debootstrap: debian.sh SUITE [COMMAND]" >&2
  exit 1
fi
suite=$1
shift
[ $# -gt 0 ] || set -- sh tools/test-r.sh
top=$build/debian/$suite

if [ ! -e "$top/complete" ]; then
  rm -rf "$top"
  mkdir -p "$top" && debootstrap --variant=minbase --include=ca-certificates \
    "$suite" "$top" && touch "$top/complete" || exit 1
fi
mkdir -p "$top/fsknn" &&
  find "$top/fsknn" -mindepth 1 -maxdepth 1 ! -name _build -exec rm -rf {} + &&
  git archive HEAD | tar -x -C "$top/fsknn" &&
  cp /etc/hosts /etc/resolv.conf "$top/etc" || exit 1

leave() {
  umount -l "$top/proc" "$top/dev"
}
trap leave EXIT
trap 'exit 1' HUP INT TERM
mount -t proc proc "$top/proc" && mount --bind /dev "$top/dev" || exit 1
chroot "$top" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  FSKNN_CUDA_ARCH=none R_LIBS=/fsknn/_build/library \
  sh -c 'cd /fsknn && sh tools/setup.sh test && R --version | head -n 1 &&
    sh tools/build.sh library && "$@"' debian "$@"

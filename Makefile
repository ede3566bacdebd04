# For whoever changes the code:
#   make dev       compiles what changed and installs it into _build/library
#   make check     the same, then the linters and tests of the files that changed
#                  (SINCE=COMMIT: since then)
#   make cpp-test  the C++ tests: NAME=test_lists for those of one file, CASE="merging*"
#                  for those of one case
#   make slowest   which source files take longest to compile
#
# From a clone:
#   make demo      the main job on real data; writes demo-output/
#   make test      everything that must hold; its last line counts it
#   make test-long the tests that take long, before an issue is resolved
#   make site      the pages of the package, which need no network, into _build/site
#   make install   installs the package and its vignettes into R's own library
#   make lint      what clang-format, clang-tidy and lintr say of the code
#   make sanitize  the tests under the sanitizers of memory, threads and more
#   make cluster   searches on a real Slurm of three nodes, all on this machine,
#                  and what is killed there: as root, some 15 minutes
#   make coverage  which lines no test runs, in R and in C++
#   make test-gpu  the tests in R on a machine with a GPU, a line for each file
# These install what they need from Debian's packages, where it is missing, and share
# what is compiled (see tools/build.sh).
#
#   make document  writes RcppExports.*, NAMESPACE and man/ anew
#   make clean     removes all that was built here
#
# FSKNN_CUDA_ARCH chooses the GPU architectures to compile for: by default those
# of the GPUs that are seen, or all (see configure). Tests, which need no GPU, take
# Hopper's rather than all, for a quick build.

SHELL = /bin/sh

.PHONY: dev check cpp-test slowest demo test test-long test-gpu site lint sanitize coverage cluster install document clean

dev:
	@sh tools/setup.sh dev && sh tools/build.sh dev

check:
	@sh tools/check.sh $(SINCE)

cpp-test:
	@sh tools/cpp-test.sh "$(NAME)" "$(CASE)"

slowest:
	@sh tools/slowest.sh

demo:
	@sh tools/demo.sh

test: export FSKNN_CUDA_ARCH ?= 90a
test:
	@sh tools/test.sh

test-long:
	@sh tools/test-long.sh

test-gpu:
	@sh tools/setup.sh test && sh tools/build.sh library && \
	  FSKNN_REQUIRE_CUDA=1 R_LIBS=$$(pwd)/_build/library$${R_LIBS:+:$$R_LIBS} \
	  sh tools/test-r.sh

site:
	@sh tools/site.sh

lint:
	@sh tools/lint.sh

sanitize:
	@sh tools/sanitize.sh

coverage:
	@sh tools/coverage.sh

cluster:
	@sh tools/cluster.sh

install:
	@sh tools/build.sh install

document:
	@sh tools/build.sh document

clean:
	@./cleanup
	rm -rf _build demo-output tests/cpp/build

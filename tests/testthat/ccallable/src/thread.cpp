// The header in C++, and a call that is not on R's main thread.

#include <fsknn.h>

#include <thread>

#include <Rinternals.h>

extern "C" {

fsknn_request request_of(SEXP x, SEXP query, SEXP k, SEXP metric, SEXP sign,
                         SEXP num_threads, SEXP backend, SEXP index,
                         SEXP distance);
SEXP list_of(int status, const char *message);

SEXP C_find_in_thread(SEXP x, SEXP query, SEXP k, SEXP metric, SEXP sign,
                      SEXP num_threads, SEXP backend, SEXP index,
                      SEXP distance) {
  char message[20];  // shorter than the sentence
  const fsknn_request request = request_of(
      x, query, k, metric, sign, num_threads, backend, index, distance);
  int status = FSKNN_OK;
  std::thread([&] {
    status = fsknn_find(&request, message, sizeof message);
  }).join();
  return list_of(status, message);
}

}  // extern "C"

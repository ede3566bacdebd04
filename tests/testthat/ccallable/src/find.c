#include <Rinternals.h>
#include <fsknn.h>

static const char *text_of(SEXP text) {
  return text == R_NilValue ? NULL : CHAR(STRING_ELT(text, 0));
}

fsknn_request request_of(SEXP x, SEXP query, SEXP k, SEXP metric, SEXP sign,
                         SEXP num_threads, SEXP backend, SEXP index,
                         SEXP distance) {
  fsknn_request request = {0};
  request.points = REAL(x);
  request.num_points = Rf_nrows(x);
  request.num_features = Rf_ncols(x);
  if (query != R_NilValue) {
    request.queries = REAL(query);
    request.num_queries = Rf_nrows(query);
  }
  request.k = Rf_asInteger(k);
  request.metric = text_of(metric);
  request.sign = text_of(sign);
  request.num_threads = Rf_asInteger(num_threads);
  request.backend = text_of(backend);
  request.index = INTEGER(index);
  request.distance = REAL(distance);
  return request;
}

/* list(status, message) */
SEXP list_of(int status, const char *message) {
  SEXP list = PROTECT(Rf_allocVector(VECSXP, 2));
  SET_VECTOR_ELT(list, 0, Rf_ScalarInteger(status));
  SET_VECTOR_ELT(list, 1, Rf_mkString(message));
  UNPROTECT(1);
  return list;
}

SEXP C_find(SEXP x, SEXP query, SEXP k, SEXP metric, SEXP sign,
            SEXP num_threads, SEXP backend, SEXP index, SEXP distance) {
  char message[200];
  fsknn_request request = request_of(x, query, k, metric, sign, num_threads,
                                     backend, index, distance);
  int status = fsknn_find(&request, message, sizeof message);
  return list_of(status, message);
}

/* As a caller that was compiled with a later version of the header. */
SEXP C_find_versioned(SEXP x, SEXP query, SEXP k, SEXP metric, SEXP sign,
                      SEXP num_threads, SEXP backend, SEXP index,
                      SEXP distance) {
  char message[200];
  fsknn_find_function find =
      (fsknn_find_function)R_GetCCallable("fsknn", "fsknn_find");
  fsknn_request request = request_of(x, query, k, metric, sign, num_threads,
                                     backend, index, distance);
  request.version = FSKNN_VERSION + 1;
  int status = find(&request, message, sizeof message);
  return list_of(status, message);
}

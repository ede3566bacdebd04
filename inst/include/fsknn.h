/* Exact k nearest neighbours for the C and C++ code of other packages.
 *
 * A package that uses this header has in its DESCRIPTION
 *   Imports: fsknn
 *   LinkingTo: fsknn
 * and in its NAMESPACE importFrom(fsknn, knn_search), so that fsknn is loaded
 * first. If it is not, R_GetCCallable() raises an error of R in fsknn_find().
 * Nothing else here raises an error of R or throws a C++ exception.
 *
 * The answers are those of knn_search() and knn_query(), to the last bit: the
 * same code computes them. ?`fsknn-api` has an example.
 */
#ifndef FSKNN_H
#define FSKNN_H

#include <R_ext/Rdynload.h>
#include <stddef.h>

/* The version of this interface. It changes whenever code that was compiled
 * with the header must be compiled again. */
#define FSKNN_VERSION 1

/* The status that fsknn_find() returns. */
enum fsknn_status {
  FSKNN_OK = 0,
  FSKNN_ARGUMENT,      /* the request, or a value in the data, is not allowed */
  FSKNN_INTERRUPTED,   /* the user pressed Ctrl-C; R no longer knows of it */
  FSKNN_RANGE,         /* a distance is beyond the range of a double */
  FSKNN_MEMORY,        /* not enough memory */
  FSKNN_BACKEND,       /* backend "cuda" cannot be used here, or CUDA failed */
  FSKNN_OTHER_VERSION, /* the loaded fsknn has another FSKNN_VERSION */
  FSKNN_FAILED         /* anything else */
};

/* The request. Set all of it to 0 first: `fsknn_request request = {0};`.
 *
 * Matrices are column-major doubles, as in R. A point is a row, as in
 * knn_search(): points[i + f * num_points] is the value of feature f of point
 * i. All memory belongs to the caller, who keeps it from R's garbage collector
 * during the call (PROTECT).
 *
 * All values must be finite: NA, NaN and infinite values are refused. So are
 * rows for which the metric has no value (such as a constant row under
 * "pearson"), negative values under "proportional", and values other than 0
 * and 1 under "jaccard" and "sorensen". */
typedef struct fsknn_request {
  int version; /* set by fsknn_find() */
  int k;       /* from 1; at most num_points, or num_points - 1 if
                * queries is NULL */
  int num_points;
  int num_features;
  int num_queries;       /* ignored if queries is NULL */
  int num_threads;       /* 1 to 1024; 0: one thread */
  const double *points;  /* [num_points x num_features] */
  const double *queries; /* [num_queries x num_features]; NULL: each point among
                          * all others */
  const char *metric;    /* a name of ?metrics, such as "euclidean" */
  const char *sign;    /* "signed", "absolute" or "negative"; NULL: "signed" */
  const char *backend; /* "cpu" or "cuda" (all GPUs); NULL: "cpu" */

  /* The answer: matrices [rows x k], column-major, with a row for each query,
   * or for each point if queries is NULL. The nearest is in the first column,
   * and the lower number comes first on a tie. Undefined unless the status is
   * FSKNN_OK. */
  int *index; /* numbers of points, from 1, as in R */
  double *distance;
} fsknn_request;

typedef int (*fsknn_find_function)(const fsknn_request *request, char *message,
                                   size_t message_size);

/* Finds the neighbours. Returns an fsknn_status. `message` becomes a sentence
 * about the failure, cut to message_size bytes with the final 0, or "" for
 * FSKNN_OK. It may be NULL.
 *
 * Only R's main thread may call this, because it looks up a function in R, and
 * checks for Ctrl-C about ten times a second. On another thread the status is
 * FSKNN_ARGUMENT. After FSKNN_INTERRUPTED the caller should release what it
 * holds and end its work.
 */
static inline int fsknn_find(const fsknn_request *request, char *message,
                             size_t message_size) {
  fsknn_request versioned = *request;
  /* GCC warns of a cast from one type of function to another, but not from
   * this one. */
  void (*found)(void) = (void (*)(void))R_GetCCallable("fsknn", "fsknn_find");
  versioned.version = FSKNN_VERSION;
  return ((fsknn_find_function)found)(&versioned, message, message_size);
}

#endif

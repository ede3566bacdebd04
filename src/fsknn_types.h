// Rcpp includes this file into RcppExports.cpp, before the header of
// RcppArmadillo. No function there has one of its types, and the header takes
// the compiler 3 s.

#include <Rcpp.h>

#define RcppArmadillo__RcppArmadillo__h

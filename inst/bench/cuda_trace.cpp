// Counts and times of kernels, copies and calls of the CUDA runtime between two
// calls from R, by CUPTI. Compiled by queries.R with R CMD SHLIB; no part of the
// package.

#include <cupti.h>
#include <cxxabi.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#define R_NO_REMAP
#include <Rinternals.h>

namespace {

struct Total {
  double count = 0;
  double ns = 0;
  void add(std::uint64_t start, std::uint64_t end) {
    ++count;
    ns += static_cast<double>(end - start);
  }
};

/// By kind and name. CUPTI returns buffers one at a time.
std::map<std::pair<std::string, std::string>, Total> totals;

std::string readable(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

std::string call_name(const CUpti_ActivityAPI& call) {
  const char* name = nullptr;
  cuptiGetCallbackName(call.kind == CUPTI_ACTIVITY_KIND_RUNTIME
                           ? CUPTI_CB_DOMAIN_RUNTIME_API
                           : CUPTI_CB_DOMAIN_DRIVER_API,
                       call.cbid, &name);
  return name != nullptr ? name : "?";
}

const char* direction(std::uint8_t kind) {
  if (kind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD) return "host to device";
  if (kind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH) return "device to host";
  return "other";
}

void add(CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto* it = reinterpret_cast<CUpti_ActivityKernel10*>(record);
      totals[{"kernel", readable(it->name)}].add(it->start, it->end);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto* it = reinterpret_cast<CUpti_ActivityMemcpy6*>(record);
      totals[{"copy", direction(it->copyKind)}].add(it->start, it->end);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto* it = reinterpret_cast<CUpti_ActivityMemset4*>(record);
      totals[{"memset", ""}].add(it->start, it->end);
      break;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME: {
      const auto* it = reinterpret_cast<CUpti_ActivityAPI*>(record);
      totals[{"call", call_name(*it)}].add(it->start, it->end);
      break;
    }
    default:
      break;
  }
}

void CUPTIAPI give(std::uint8_t** buffer, std::size_t* size,
                   std::size_t* most) {
  *size = 1 << 20;
  *buffer = static_cast<std::uint8_t*>(std::malloc(*size));
  *most = 0;
}

void CUPTIAPI take(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                   std::size_t used) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, used, &record) == CUPTI_SUCCESS)
    add(record);
  std::free(buffer);
}

constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME};

}  // namespace

extern "C" {

SEXP trace_start() {
  cuptiActivityRegisterCallbacks(give, take);
  for (const CUpti_ActivityKind kind : kKinds) cuptiActivityEnable(kind);
  cuptiActivityFlushAll(1);
  totals.clear();
  return R_NilValue;
}

/// Returns list(kind, name, count, ns).
SEXP trace_stop() {
  for (const CUpti_ActivityKind kind : kKinds) cuptiActivityDisable(kind);
  cuptiActivityFlushAll(1);
  const R_xlen_t size = static_cast<R_xlen_t>(totals.size());
  SEXP result = PROTECT(Rf_allocVector(VECSXP, 4));
  const SEXPTYPE types[] = {STRSXP, STRSXP, REALSXP, REALSXP};
  const char* names[] = {"kind", "name", "count", "ns"};
  SEXP labels = PROTECT(Rf_allocVector(STRSXP, 4));
  for (int i = 0; i < 4; ++i) {
    SET_VECTOR_ELT(result, i, Rf_allocVector(types[i], size));
    SET_STRING_ELT(labels, i, Rf_mkChar(names[i]));
  }
  R_xlen_t at = 0;
  for (const auto& entry : totals) {
    SET_STRING_ELT(VECTOR_ELT(result, 0), at,
                   Rf_mkChar(entry.first.first.c_str()));
    SET_STRING_ELT(VECTOR_ELT(result, 1), at,
                   Rf_mkChar(entry.first.second.c_str()));
    REAL(VECTOR_ELT(result, 2))[at] = entry.second.count;
    REAL(VECTOR_ELT(result, 3))[at] = entry.second.ns;
    ++at;
  }
  Rf_setAttrib(result, R_NamesSymbol, labels);
  UNPROTECT(2);
  return result;
}
}

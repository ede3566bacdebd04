#include "bind_held.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/contract/scaling.hpp"
#include "cpu/search/engine.hpp"
#include "cpu/search/held.hpp"
#include "cuda/backend.hpp"

using namespace fsknn;

namespace fsknn {
namespace bind {
namespace {

constexpr const char* kClass = "held_points";

/// All handles that hold points. They have no finalizer in C, because R might
/// call it after the library is unloaded.
std::set<SEXP>& handles() {
  static std::set<SEXP> all;
  return all;
}

void give_back(SEXP handle) {
  Held* const held = static_cast<Held*>(R_ExternalPtrAddr(handle));
  handles().erase(handle);
  R_ClearExternalPtr(handle);
  // In a fork, the points belong to the parent.
  if (held != nullptr && held->is_ours()) delete held;
}

bool same(const SampleWeights* a, const SampleWeights* b) {
  if (a == nullptr || b == nullptr) return a == b;
  const FeatureWeights x = a->view(), y = b->view();
  return a->num_features() == b->num_features() &&
         std::equal(x.weight, x.weight + a->num_features(), y.weight);
}

bool same(const SampleCovariates* a, const SampleCovariates* b) {
  if (a == nullptr || b == nullptr) return a == b;
  const FeatureCovariates x = a->view(), y = b->view();
  return a->num_features() == b->num_features() && x.vectors == y.vectors &&
         std::equal(x.basis,
                    x.basis + x.vectors * padded_features(a->num_features()),
                    y.basis);
}

}  // namespace

struct Held::Backends {
  Request asked;
  std::unique_ptr<cpu::HeldPoints> cpu;
  std::unique_ptr<cuda::HeldPoints> cuda;
};

Held::Held(SEXP x, const Rcpp::List& request)
    : process_(static_cast<long>(getpid())),
      x_(x),
      fill_(fills(x, request)),
      source_(row_source(x, {}, fill_)),
      backends_(new Backends) {
  if (Rcpp::as<std::string>(request["na"]) == "pairwise")
    throw HandleFailure(HandleFailure::Why::pairwise);
}

Held::~Held() = default;

const RowSource& Held::choose_features(
    const std::vector<std::int32_t>& features) {
  if (features != features_) {
    if (fill_) {
      // Means are over the chosen features, so the filled values change.
      std::unique_ptr<RowSource> source = row_source(x_, features, fill_);
      backends_->cpu.reset();
      backends_->cuda.reset();
      source_ = std::move(source);
    } else {
      some_.reset(features.empty() ? nullptr
                                   : new FeatureSubset(*source_, features));
    }
    features_ = features;
  }
  return some_ ? *some_ : *source_;
}

bool Held::is_ours() const { return process_ == static_cast<long>(getpid()); }

double Held::bytes_on_cpu() const {
  return backends_->cpu == nullptr ? 0.0 : backends_->cpu->bytes();
}

std::vector<cuda::HeldPoints::BytesOn> Held::bytes_on_gpus() const {
  if (backends_->cuda == nullptr) return {};
  return backends_->cuda->bytes();
}

void Held::prepare_for(bool on_gpu, Request& request,
                       const RowSource* queries) {
  Backends& b = *backends_;
  if (request.na_pairwise) throw HandleFailure(HandleFailure::Why::pairwise);
  if (same(request.weights.get(), b.asked.weights.get()))
    request.weights = b.asked.weights;
  if (same(request.covariates.get(), b.asked.covariates.get()))
    request.covariates = b.asked.covariates;
  const bool as_before = b.asked.metric != nullptr &&
                         is_same_metric(*request.metric, *b.asked.metric) &&
                         request.weights == b.asked.weights &&
                         request.covariates == b.asked.covariates &&
                         request.skip == b.asked.skip &&
                         request.instruction_set == b.asked.instruction_set;
  if (!as_before) b.cpu.reset();
  if (request.devices != b.asked.devices) b.cuda.reset();
  b.asked = request;
  if (!on_gpu)
    request.num_threads = cpu::threads_for(
        request.num_threads,
        (queries != nullptr ? *queries : *source_).num_points(),
        source_->num_points(), source_->num_features());
  if (on_gpu && b.cuda == nullptr)
    b.cuda.reset(new cuda::HeldPoints(request, *source_));
  if (!on_gpu && b.cpu == nullptr)
    b.cpu.reset(new cpu::HeldPoints(request, *source_));
  if (fill_) return;  // the source already has these features only
  if (b.cuda != nullptr) b.cuda->choose_features(features_);
  if (b.cpu != nullptr) b.cpu->choose_features(features_);
}

void Held::find_neighbours(bool on_gpu, Request& request,
                           const RowSource* queries, const Neighbours& out,
                           Progress* progress, Stats* stats) {
  prepare_for(on_gpu, request, queries);
  if (on_gpu)
    backends_->cuda->find_neighbours(request, queries, out, progress, stats);
  else
    backends_->cpu->find_neighbours(request, queries, out, progress, stats);
}

void Held::find_within(bool on_gpu, Request& request, const Within& within,
                       const RowSource* queries, WithinAnswer& answer,
                       Progress* progress, Stats* stats) {
  prepare_for(on_gpu, request, queries);
  if (on_gpu)
    backends_->cuda->find_within(request, within, queries, answer, progress,
                                 stats);
  else
    backends_->cpu->find_within(request, within, queries, answer, progress,
                                stats);
}

Held* held_points(SEXP x) {
  if (TYPEOF(x) != EXTPTRSXP || !Rf_inherits(x, kClass)) return nullptr;
  Held* const held = static_cast<Held*>(R_ExternalPtrAddr(x));
  if (held == nullptr) throw HandleFailure(HandleFailure::Why::gone);
  if (!held->is_ours()) throw HandleFailure(HandleFailure::Why::forked);
  return held;
}

}  // namespace bind
}  // namespace fsknn

// Makes a handle; cpp_give_back_held() releases the points that it holds.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_hold_points(SEXP x, Rcpp::List request) {
  return bind::guarded([&] {
    std::unique_ptr<bind::Held> held(new bind::Held(x, request));
    // The handle keeps `x` alive.
    const Rcpp::Shield<SEXP> handle(
        R_MakeExternalPtr(held.get(), R_NilValue, x));
    Rf_setAttrib(handle, R_ClassSymbol, Rf_mkString(bind::kClass));
    bind::handles().insert(handle);
    held.release();
    return Rcpp::List::create(Rcpp::_["points"] = Rcpp::RObject(handle));
  });
}

// handle: NULL for all handles, when the package is unloaded.
// [[Rcpp::export(rng = false)]]
void cpp_give_back_held(SEXP handle) {
  if (!Rf_isNull(handle)) return bind::give_back(handle);
  while (!bind::handles().empty()) bind::give_back(*bind::handles().begin());
}

// The bytes that held points take: on the CPU, and on each GPU that has some,
// with the GPU's number from 1.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_held_bytes(SEXP handle) {
  return bind::guarded([&] {
    const bind::Held* const held = bind::held_points(handle);
    Rcpp::IntegerVector gpus;
    Rcpp::NumericVector bytes;
    for (const auto& on : held->bytes_on_gpus()) {
      gpus.push_back(on.row + 1);
      bytes.push_back(on.bytes);
    }
    return Rcpp::List::create(Rcpp::_["cpu"] = held->bytes_on_cpu(),
                              Rcpp::_["gpus"] = gpus, Rcpp::_["bytes"] = bytes);
  });
}

// [[Rcpp::export(rng = false)]]
int cpp_num_held() { return static_cast<int>(bind::handles().size()); }

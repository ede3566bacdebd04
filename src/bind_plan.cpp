#include <algorithm>

#include "bind_common.hpp"
#include "core/plan.hpp"
#include "cpu/kernels.hpp"
#include "cuda/backend.hpp"
#include "cuda/plan.hpp"

using namespace fsknn;

namespace {

/// The plan on the request's GPUs (all of them if it names none).
Plan plan_on_gpus(PlanInput input, const Request& request) {
  const std::vector<cuda::Device> found = cuda::devices();
  cuda::GpuFacts gpus;
  gpus.half_products = true;
  int used = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& asked = request.devices;
    if (!asked.empty() &&
        std::find(asked.begin(), asked.end(), static_cast<int>(i)) ==
            asked.end())
      continue;
    gpus.bytes_free = used == 0
                          ? found[i].bytes_free
                          : std::min(gpus.bytes_free, found[i].bytes_free);
    gpus.half_products = gpus.half_products && found[i].half_products;
    ++used;
  }
  input.num_workers = std::max(1, used);
  return cuda::plan_cuda(input, gpus);
}

}  // namespace

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_plan(double num_points, double num_features, double num_queries,
                    Rcpp::List request) {
  const Request r = bind::request_from(request);
  const bool on_gpu = Rcpp::as<std::string>(request["backend"]) == "cuda";
  PlanInput input;
  input.num_points = static_cast<std::int64_t>(num_points);
  input.num_features = static_cast<std::int64_t>(num_features);
  input.num_queries = static_cast<std::int64_t>(num_queries);
  input.k = r.k;
  input.chunk_size = r.chunk_size;
  input.num_workers = r.num_threads;
  input.correlation = Rcpp::as<bool>(request["correlation"]);
  input.elementwise = r.metric->is_elementwise();
  input.unit_dot = r.metric->is_unit_dot();
  input.rows_made = Rcpp::as<bool>(request["rows_made"]);
  const Plan p = on_gpu ? plan_on_gpus(input, r) : plan_cpu(input);
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  Rcpp::List out = Rcpp::List::create(
      Rcpp::_["num_points"] = number(p.num_points),
      Rcpp::_["num_features"] = number(p.num_features),
      Rcpp::_["num_queries"] = number(p.num_queries),
      Rcpp::_["k"] = number(p.k),
      Rcpp::_["chunk_size"] = number(p.chunk_size),
      Rcpp::_["padded_points"] = number(p.padded_points),
      Rcpp::_["padded_features"] = number(p.padded_features),
      Rcpp::_["data_block"] = number(p.data_block),
      Rcpp::_["num_splits"] = number(p.num_splits),
      Rcpp::_["chunks_per_split"] = number(p.chunks_per_split),
      Rcpp::_["num_segments"] = number(p.num_segments),
      Rcpp::_["splits_per_segment"] = number(p.splits_per_segment),
      Rcpp::_["num_chunks"] = number(p.num_chunks),
      Rcpp::_["num_workers"] = p.num_workers);
  out["bytes_prepared"] = p.bytes_prepared;
  out["bytes_filter"] = p.bytes_filter;
  out["bytes_result"] = p.bytes_result;
  out["bytes_working"] = p.bytes_working;
  out["bytes_peak"] = p.bytes_peak;
  out["instruction_set"] = on_gpu ? "" : cpu::choose_kernels(r.instruction_set).name;
  out["filter"] = p.filtered          ? "products of half-precision floats by tensor cores"
                  : on_gpu            ? ""
                  : input.elementwise ? "whole numbers of 16 bits; floats for wide ranges"
                                      : "whole numbers of 16 bits";
  return out;
}

#include "bind_common.hpp"
#include "core/search/plan.hpp"
#include "cpu/filter/bytes_pay.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cuda/backend.hpp"
#include "cuda/plan/plan.hpp"

using namespace fsknn;

namespace {

/// The plan on the request's GPUs (all if it names none). Starts CUDA on them
/// to find the free memory.
Plan plan_on_gpus(PlanInput input, const std::vector<cuda::Device>& gpus,
                  double bytes_limit) {
  input.num_workers = static_cast<int>(gpus.size());
  Plan plan = cuda::plan_cuda(input, cuda::facts_of(gpus, bytes_limit));
  if (!input.group_sizes.empty()) return plan;
  const double points = static_cast<double>(input.num_points);
  plan.num_pairs = input.num_queries == 0
                       ? points * (points - 1) / 2
                       : points * static_cast<double>(input.num_queries);
  return plan;
}

Rcpp::List sizes_of(const Plan& p) {
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  Rcpp::List out = Rcpp::List::create(
      Rcpp::_["num_points"] = number(p.num_points),
      Rcpp::_["num_features"] = number(p.num_features),
      Rcpp::_["num_queries"] = number(p.num_queries),
      Rcpp::_["k"] = number(p.k), Rcpp::_["chunk_size"] = number(p.chunk_size),
      Rcpp::_["padded_points"] = number(p.padded_points),
      Rcpp::_["padded_features"] = number(p.padded_features),
      Rcpp::_["data_block"] = number(p.data_block),
      Rcpp::_["num_splits"] = number(p.num_splits),
      Rcpp::_["chunks_per_split"] = number(p.chunks_per_split),
      Rcpp::_["num_segments"] = number(p.num_segments),
      Rcpp::_["splits_per_segment"] = number(p.splits_per_segment),
      Rcpp::_["num_chunks"] = number(p.num_chunks),
      Rcpp::_["num_workers"] = p.num_workers);
  out["num_pairs"] = p.num_pairs;
  out["bytes_prepared"] = p.bytes_prepared;
  out["bytes_filter"] = p.bytes_filter;
  out["bytes_result"] = p.bytes_result;
  out["bytes_working"] = p.bytes_working;
  out["bytes_peak"] = p.bytes_peak;
  out["bytes_host"] = p.bytes_host;
  out["streamed"] = p.streamed;
  out["num_passes"] = number(p.num_passes);
  out["block_points"] = number(p.block_points);
  return out;
}

/// The words of knn_plan() for the CPU's filter; empty: there is none.
std::string filter_words(const Request& request, const PlanInput& input) {
  const auto& kernels = cpu::choose_kernels(request.instruction_set);
  // Sampling rows on disk would take too long.
  const bool sampled = !input.on_disk && !input.pairwise;
  const bool lists = request.k > 0 && sampled;
  const char* const after_bounds =
      ", after bounds prune pairs if a sample shows a gain";
  const char* const or_bytes =
      ", or 8-bit, or after bounds prune pairs, if a sample shows a gain";
  std::string words = "16-bit integers";
  switch (input.filter) {
    case FilterKind::none: return "";
    case FilterKind::table:
      if (input.pairwise)
        return request.metric->table.copies > 1.0 ? "8-bit integers" : "bits";
      return cpu::multiplies_bytes(kernels) ? "8-bit integers" : words;
    case FilterKind::bits: return input.pairwise ? "" : "bits";
    case FilterKind::largest:
      if (sampled) words += after_bounds;
      return words + "; floats for wide ranges";
    case FilterKind::product:
      if (input.pairwise) return words + ", then common samples";
      if (request.metric->accumulation == Accumulation::squared_difference) {
        if (sampled) words += after_bounds;
      } else if (!input.unit_dot) {
        return words;
      } else if (lists && cpu::multiplies_bytes(kernels)) {
        words += or_bytes;
      } else if (sampled) {
        words += after_bounds;
      }
      return words + "; bits for 0 and 1";
    case FilterKind::difference:
    case FilterKind::overlap:
      if (input.pairwise) return "";
      if (lists && cpu::subtracts_bytes(kernels)) {
        words += or_bytes;
      } else if (sampled) {
        words += after_bounds;
      }
      return words + "; floats for wide ranges; bits for 0 and 1";
  }
  throw_unknown("filter", static_cast<int>(input.filter));
}

}  // namespace

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_plan(double num_points, double num_features, double num_queries,
                    Rcpp::List request) {
  return bind::guarded([&] {
    const Request r = bind::request_from(request);
    PlanInput input = plan_input(r, static_cast<std::int64_t>(num_points),
                                 static_cast<std::int64_t>(num_features),
                                 static_cast<std::int64_t>(num_queries));
    input.correlation = Rcpp::as<bool>(request["correlation"]);
    input.bytes_made_from = Rcpp::as<double>(request["bytes_made_from"]);
    input.rows_made = input.bytes_made_from > 0;
    input.on_disk = Rcpp::as<double>(request["bytes_file"]) > 0;
    if (Rcpp::as<std::string>(request["backend"]) == "cuda") {
      const std::vector<cuda::Device> gpus = cuda::start_devices(r.devices);
      const Plan p = plan_on_gpus(input, gpus, r.max_device_memory);
      Rcpp::List out = sizes_of(p);
      out["instruction_set"] = "";
      out["filter"] = p.filter;
      out["devices"] = bind::table_of(gpus);
      return out;
    }
    Rcpp::List out = sizes_of(plan_cpu(input));
    out["instruction_set"] = cpu::choose_kernels(r.instruction_set).name;
    out["filter"] = filter_words(r, input);
    out["devices"] = bind::table_of({});
    return out;
  });
}

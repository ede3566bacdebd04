#include "shim.h"
#include "br.h"
#include "shim.h"
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include "core/brute.hpp"
#include "core/by_groups.hpp"
#include "core/made_rows.hpp"
#include "core/prepared.hpp"
#include "core/source.hpp"
#include "core/prepare.hpp"
#include "cuda/device/used_devices.cuh"
#include "cuda/filter/float_pairs.cuh"
#include "cuda/search/groups_by_filter.cuh"
#include "ROOT"
#include "ROOT"
using namespace fsknn;
static thread_local int current = 0;
extern "C" {
cudaError_t cudaMemset(void* a, int v, size_t n) { std::memset(a, v, n); return cudaSuccess; }

cudaError_t cudaMemcpyAsync(void* a, const void* b, size_t n, cudaMemcpyKind, cudaStream_t) { std::memmove(a, b, n); return cudaSuccess; }
cudaError_t cudaMemcpyPeerAsync(void* a, int, const void* b, int, size_t n, cudaStream_t) { std::memmove(a, b, n); return cudaSuccess; }
cudaError_t cudaMemsetAsync(void* a, int v, size_t n, cudaStream_t) { std::memset(a, v, n); return cudaSuccess; }
cudaError_t cudaMemcpy2DAsync(void* a, size_t pa, const void* b, size_t pb, size_t w, size_t h, cudaMemcpyKind, cudaStream_t) { for (size_t i = 0; i < h; ++i) std::memcpy((char*)a + i * pa, (const char*)b + i * pb, w); return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) { *s = (cudaStream_t)1; return cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t*, unsigned) { return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDevice(int* d) { *d = current; return cudaSuccess; }
cudaError_t cudaSetDevice(int d) { current = d; return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr a, int) { *v = a == cudaDevAttrMultiProcessorCount ? 4 : 100000; return cudaSuccess; }
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int* c, int, int) { *c = 1; return cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaHostAlloc(void** p, size_t n, unsigned) { *p = std::malloc(n); return cudaSuccess; }
cudaError_t cudaFreeHost(void* p) { std::free(p); return cudaSuccess; }
}
namespace fsknn { namespace cuda {
std::atomic<bool> fault_is_armed{false};
bool fault_is_due(const char*, int) { return false; }
cudaError_t fault_error() { return cudaSuccess; }
void check(cudaError_t c, const char*, const char*, int, int) { if (c != cudaSuccess) std::abort(); }
Allocation allocate(double bytes) { Allocation a; a.data = std::malloc((size_t)bytes + 64); std::memset(a.data, 0xcd, (size_t)bytes); return a; }
void give_back(const Allocation& a) noexcept { std::free(a.data); }
void* current_context() { return (void*)(intptr_t)current; }
void set_current_context(void* c) { current = (int)(intptr_t)c; }
int threads_of(const Search&) { return 1; }
DevicePoints::DevicePoints(const PlacedPoints& p, const RowRecipe& prepare, int, std::int64_t places_, const Stream& stream)
    : padded(p.padded), rows(places_ * p.padded), sums(places_), ids(places_), places(p.source->num_points()) {
  clear_from(rows, 0, stream); clear_from(sums, 0, stream);
  upload_padded(ids, p.own_ids(), p.size(), stream);
  upload(places, p.order.place.data(), places.size(), stream);
  const PreparedPoints all = prepare_points(*p.source, prepare, {}, false, &prepare_row<ScalarLanes>, 1);
  for (std::int64_t i = 0; i < p.size(); ++i) {
    const std::int64_t id = p.order.id[i];
    std::memcpy(rows.data() + i * padded, all.row(Place{id}), padded * 8);
    sums.data()[i] = all.sums[id];
  }
}
}}
#include "core/edge_counts.hpp"
using namespace fsknn::cuda;
static int failures = 0;
static void run(const char* metric, const Matrix& m, std::vector<std::int32_t> of, int count_groups, PointGroups::Lists lists, std::int64_t k, int devices, std::vector<std::int64_t> skip, std::int64_t most_blocks, std::int32_t /*unused*/ = 0) {
  const auto source = m.source();
  Request request; request.metric = &find_metric(metric, "signed"); request.k = k; request.num_threads = 1; request.skip = skip; request.chunk_size = 64;
  request.groups = std::make_shared<PointGroups>(lists, count_groups, of, std::vector<std::int32_t>());
  const std::int64_t n = source.num_points(), L = request.groups->num_lists();
  const auto make = [&](std::vector<std::int32_t>& i, std::vector<double>& d) {
    i.assign(n * L * k, -9); d.assign(n * L * k, -9); Neighbours out; out.rows = n; out.index = i.data(); out.distance = d.data(); out.missing_index = -1; out.missing_value = -1; return out; };
  std::vector<std::int32_t> i1, i2; std::vector<double> d1, d2;
  const Neighbours want = make(i1, d1), out = make(i2, d2);
  brute_force(request, source, nullptr, want);
  PlanInput in = plan_input(request, n - skip.size(), source.num_features(), 0);
  in.num_workers = devices;
  GpuFacts gpu; gpu.bytes_free = 1e10; gpu.capability = 90; gpu.shared_bytes = 232448; gpu.multiprocessors = 4;
  in.num_points = 5000; // for the shape only
  const FilterShape shape = filter_shape([&] { PlanInput p = in; p.group_sizes.clear(); return p; }(), gpu);
  CudaPlan plan; plan.shape = shape; plan.k = k; plan.chunk_size = 64; plan.padded_points = whole_tiles(n) + 64; plan.list_blocks = most_blocks; plan.num_workers = devices; plan.num_pairs = 1;
  PlacedPoints columns(source, skip, true); columns.order = order_by_group(*request.groups, columns.order);
  for (std::int64_t i = 0; i < n; ++i) if (columns.order.place[i] < 0) emit_missing(out, AnswerRow::of(i), k * L);
  const int exponent = common_exponent(request, source, nullptr, 1);
  PointStore store;
  const Search search = {request, plan, columns, columns, recipe_of(request, exponent), DistanceRule(*request.metric, exponent).undo(), out, nullptr, &store};
  const GroupBlocks blocks(sizes_of(*request.groups, skip));
  std::vector<Device> gpus(devices); for (int w = 0; w < devices; ++w) gpus[w].cuda_id = w;
  GroupTeam team(search, *request.groups, blocks, gpus, devices);
  Workers workers(nullptr, team.num_launches()); team.workers = &workers;
  std::vector<std::unique_ptr<GroupsByFilter>> parts(devices);
  workers.run(devices, [&](int w) { cudaSetDevice(w); parts[w].reset(new GroupsByFilter(search, team, w)); parts[w]->run(); });
  double redone = 0, exact = 0; for (auto& p : parts) { redone += p->stats().rows_redone; exact += p->stats().pairs_exact; }
  const bool same = i1 == i2 && std::memcmp(d1.data(), d2.data(), d1.size() * 8) == 0;
  std::size_t batches = 0; for (auto& b : team.batches) batches += b.size();
  std::cout << metric << " n " << n << " k " << k << " lists " << (int)lists << " groups " << count_groups << " devices " << devices << " batches " << batches << " redone " << redone << " exact/list " << exact / (n * L) << (same ? " same" : " DIFFERENT") << std::endl;
  if (!same) { ++failures; std::size_t bad = 0; for (std::size_t e = 0; e < i1.size(); ++e) bad += i1[e] != i2[e]; std::cout << "  wrong indices " << bad << " of " << i1.size() << std::endl; }
}
static std::vector<std::int32_t> of_sizes(std::vector<int> sizes) { std::vector<std::int32_t> of; for (std::size_t g = 0; g < sizes.size(); ++g) of.insert(of.end(), sizes[g], (int)g); std::mt19937 r(3); std::shuffle(of.begin(), of.end(), r); return of; }
int main(int argc, char** argv) {
  using L = PointGroups::Lists;
  const Matrix m = normal("n", 900, 9, 1);
  Matrix copies = normal("c", 900, 9, 2);
  for (std::size_t at = 0; at < copies.values.size(); ++at) copies.values[at] = copies.values[at / 900 * 900 + at % 900 % 3];
  for (const char* metric : {"pearson", "euclidean"}) {
    for (L lists : {L::each, L::others, L::together}) run(metric, m, of_sizes({500, 300, 93, 7}), 4, lists, 5, 1, {3, 400}, 3);
    run(metric, m, of_sizes({513, 257, 130}), 3, L::each, 1, 2, {}, 4);
    for (L lists : {L::each, L::together}) run(metric, copies, of_sizes({600, 280, 20}), 3, lists, 4, 1, {9}, 100);
    run(metric, normal("l", 1500, 9, 4), of_sizes({800, 600, 100}), 3, L::others, 70, 1, {}, 100);
    run(metric, normal("u", 3300, 9, 4), of_sizes({2900, 400}), 2, L::others, 3, 1, {}, 100);
  }
  if (argc > 1) { run("manhattan", m, of_sizes({500, 300, 93, 7}), 4, L::each, 5, 1, {3, 400}, 3);
    for (L lists : {L::each, L::together}) run("manhattan", copies, of_sizes({600, 280, 20}), 3, lists, 4, 1, {9}, 100);
    run("chebyshev", normal("u", 3300, 9, 4), of_sizes({2900, 400}), 2, L::others, 3, 1, {}, 100); }
  std::cout << failures << " failures" << std::endl;
  return failures;
}

#include "cuda/triples/triple_device.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/poll.hpp"
#include "cuda/device/transfer.hpp"

namespace fsknn {
namespace cuda {

namespace {

/// The bits of a value in its point's own code; 0: halves.
int own_bits(const TripleSizes& sizes) {
  return sizes.copies > 0 ? sizes.copies : sizes.bits;
}

std::int64_t own_depth(const TripleSizes& sizes, std::int64_t num_features) {
  return own_bits(sizes) > 0
             ? depth_of_triple_bits(num_features, own_bits(sizes))
             : depth_of_triples(num_features);
}

}  // namespace

DeviceTriples::DeviceTriples(const PreparedPoints& points,
                             const TripleSizes& sizes, const TableTerms& table)
    : points_(points),
      rows_(points.size() * points.padded),
      sums_(points.size()),
      numbers_(points.size() * own_depth(sizes, points.num_features)),
      most_(points.size()),
      pair_sums_(sizes.copies > 0 ? points.size() * points.size() : 0),
      scale_(no_scaling()),
      words_scale_(no_scaling()),
      bound_(TripleForm::halves, sizes.depth, scale_) {
  const Stream stream;
  const std::int64_t n = points.size();
  upload(rows_, points.rows.data(), rows_.size(), stream);
  upload(sums_, points.sums.data(), n, stream);
  view_.count = n;
  view_.padded = points.padded;
  view_.depth = sizes.depth;
  view_.own_depth = own_depth(sizes, points.num_features);
  if (sizes.copies > 0) view_.table = table;
  view_.rows = rows_.data();
  view_.sums = sums_.data();
  view_.most = most_.data();
  for (std::int64_t p = 0; p < n; ++p)
    largest_sum_ = std::max(largest_sum_, points.sums[p]);
  if (sizes.bits > 0) {
    view_.bits = own_bits(sizes);
    view_.codes = numbers_.data();
    clear_from(numbers_, 0, stream);
    start_triple_codes(view_, reinterpret_cast<unsigned*>(numbers_.data()),
                       stream.get());
    set_most(stream);
    if (sizes.copies > 0) sum_all_pairs(stream);
    return;
  }
  DeviceBuffer<double> largest(1);
  clear_from(largest, 0, stream);
  start_largest_value(rows_.data(), rows_.size(), largest.data(), stream.get());
  largest_ = downloaded(largest.data(), stream);
  view_.numbers = numbers_.data();
  double mean = 0.0;
  const double values =
      static_cast<double>(n) * static_cast<double>(points.num_features);
  for (std::int64_t p = 0; p < n; ++p) mean += points.sums[p] / values;
  words_scale_ = scale_of_words(largest_, mean);
}

void DeviceTriples::sum_all_pairs(const Stream& stream) {
  constexpr std::int64_t at_once = 1024;
  const std::int64_t n = points_.size();
  clear_from(pair_sums_, 0, stream);
  // With this, all other points are others of each.
  DeviceBuffer<char> contained(n);
  clear_from(contained, 0, stream);
  TriplePoints all = view_;
  all.contained = contained.data();
  DeviceBuffer<TripleJob> d_jobs(std::min(n, at_once));
  for (std::int64_t from = 0; from < n; from += at_once) {
    const std::int64_t count = std::min(at_once, n - from);
    std::vector<TripleJob> jobs(static_cast<std::size_t>(count));
    for (std::int64_t j = 0; j < count; ++j)
      jobs[static_cast<std::size_t>(j)].apex =
          static_cast<std::int32_t>(from + j);
    upload(d_jobs, jobs.data(), count, stream);
    start_triple_pair_sums(all, d_jobs.data(), count,
                           pair_sums_.data() + from * n, stream.get());
    stream.wait();
  }
  view_.pair_sums = pair_sums_.data();
}

bool DeviceTriples::words_serve() {
  if (asked_) return words_serve_;
  const Stream stream;
  const std::int64_t n = points_.size();
  DeviceBuffer<double> cut(n);
  std::vector<double> of_rows(static_cast<std::size_t>(n));
  start_cutting_words(view_, words_scale_, cut.data(), stream.get());
  download(of_rows.data(), cut, n, stream);
  stream.wait();
  words_serve_ = cuda::words_serve(points_.sums.data(), of_rows.data(), n,
                                   points_.num_features, words_scale_);
  asked_ = true;
  return words_serve_;
}

void DeviceTriples::make(TripleForm form) {
  if (made_ && view_.form == form) return;
  const Stream stream;
  made_ = false;  // until it is set, after any failure
  view_.form = form;
  scale_ = form == TripleForm::words ? words_scale_ : scale_of_halves(largest_);
  bound_ = TripleSumBound(form, view_.depth, scale_);
  start_triple_numbers(view_, scale_, numbers_.data(), stream.get());
  set_most(stream);
  made_ = true;
}

void DeviceTriples::set_most(const Stream& stream) {
  std::vector<float> most;
  for (std::int64_t p = 0; p < points_.size(); ++p)
    most.push_back(bound_.float_most_of(points_.sums[p]));
  upload(most_, most.data(), points_.size(), stream);
  stream.wait();
}

TripleLane::TripleLane(const DeviceTriples& points, const TripleSizes& sizes,
                       const TriplePlan& plan, const TripleOrder& order,
                       Workers& workers, std::mutex& taking)
    : sizes_(sizes),
      plan_(plan),
      order_(order),
      bound_(points.bound()),
      workers_(workers),
      taking_(taking),
      contained_(static_cast<std::int64_t>(order.task->contained.size())),
      d_jobs_(plan.apexes),
      pair_sums_(plan.apexes * sizes.num_points),
      others_(plan.apexes * sizes.num_points),
      lowers_(plan.apexes * sizes.num_points),
      list_sizes_(2 * plan.apexes),
      alike_(plan.apexes * order.num_alike),
      x_(plan.pool_rows * sizes.depth),
      pool_places_(plan.pool_rows),
      pool_most_(sizes.bits > 0 ? 0 : plan.pool_rows),
      pool_counts_(sizes.bits > 0 && sizes.copies == 0 ? plan.pool_rows : 0),
      pool_tables_(sizes.copies > 0 ? plan.pool_rows : 0),
      candidates_(plan.candidates),
      hits_(order.take != nullptr ? plan.candidates : 0),
      found_(2),
      breaks_(sizes.num_breaks),
      bin_counts_(order.breaks != nullptr ? sizes.num_breaks + 1 : 0),
      at_once_(tiles_at_once(sizes)) {
  work_.points = points.points();
  if (!order.task->contained.empty()) {
    upload(contained_, order.task->contained.data(), contained_.size(),
           stream_);
    work_.points.contained = contained_.data();
    work_.points.stage = order.task->stage;
    work_.points.stages = order.task->stages;
  }
  lists_ = {pair_sums_.data(), others_.data(), lowers_.data(),
            list_sizes_.data()};
  // All entries of counts are wanted. Else a table's bound costs little.
  choice_.by_pairs =
      sizes.copies > 0 ? order.take != nullptr : order.task->by_pairs;
  choice_.scale = points.scale();
  choice_.up = (1.0 + error_of_triple_sums(sizes.depth)) * (1.0 + 0x1p-20);
  choice_.largest_sum = points.largest_sum();
  work_.pool = {x_.data(), pool_places_.data(), pool_most_.data(),
                pool_counts_.data(), pool_tables_.data()};
  work_.jobs = d_jobs_.data();
  work_.lowers = lowers_.data();
  work_.candidates = candidates_.data();
  work_.capacity = plan.candidates;
  work_.num_candidates = found_.data();
  if (order.breaks != nullptr) {
    upload(breaks_, order.breaks->data(), breaks_.size(), stream_);
    bins_.breaks = breaks_.data();
    bins_.num_breaks = breaks_.size();
    bins_.counts = bin_counts_.data();
    bins_.low = bound_.low();
    bins_.high = bound_.high();
    bins_.lost = bound_.lost();
    bins_.off_exact = 16.0 * rounding_of_sums(sizes.padded) + 0x1p-40;
    bins_.small = std::max(0x1p-60, bound_.scaled(TripleSumBound::kCoarse));
    bins_.scale = points.scale();
    h_bin_counts_.resize(static_cast<std::size_t>(bin_counts_.size()));
    counts_.assign(h_bin_counts_.size(), 0);
  }
  stream_.wait();
}

void TripleLane::begin_jobs(std::int64_t from, std::int64_t to) {
  jobs_.clear();
  const bool tables = sizes_.copies > 0;
  for (std::int64_t a = from; a < to; ++a) {
    const TripleApex& apex = order_.task->apexes[static_cast<std::size_t>(a)];
    const TripleBound bound(apex.least, sizes_.padded);
    TripleJob job;
    job.apex = static_cast<std::int32_t>(apex.apex);
    job.begin = static_cast<std::int32_t>(apex.begin);
    job.end = static_cast<std::int32_t>(apex.end);
    job.list = static_cast<std::int32_t>(a - from);
    job.share = bound.share;
    job.third = bound.third;
    job.least = apex.least;
    job.float_share = std::nextafter(static_cast<float>(bound.share),
                                     std::numeric_limits<float>::infinity());
    if (tables) {
      const ThreeLoci loci(work_.points.table);
      job.limit = std::nextafter(static_cast<float>(loci.limit_of(apex.least)),
                                 -std::numeric_limits<float>::infinity());
    }
    job.number = static_cast<std::int32_t>(a);
    jobs_.push_back(job);
  }
  upload(d_jobs_, jobs_.data(), to - from, stream_);
  if (order_.task->by_pairs && !tables)
    start_triple_pair_sums(work_.points, d_jobs_.data(), to - from,
                           pair_sums_.data(), stream_.get());
}

void TripleLane::find_alike(std::int64_t from, std::int64_t to) {
  const std::int64_t each = order_.num_alike;
  start_most_alike(work_.points, d_jobs_.data(), to - from, pair_sums_.data(),
                   each, alike_.data(), stream_.get());
  download(order_.alike + from * each, alike_, (to - from) * each, stream_);
  stream_.wait();
}

void TripleLane::list_others() {
  const std::int64_t count = static_cast<std::int64_t>(jobs_.size());
  start_triple_lists(work_.points, d_jobs_.data(), count, choice_, lists_,
                     stream_.get());
  h_list_sizes_.resize(static_cast<std::size_t>(2 * count));
  download(h_list_sizes_.data(), list_sizes_, 2 * count, stream_);
  stream_.wait();
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    jobs_[j].columns = h_list_sizes_[2 * j];
    jobs_[j].rows = h_list_sizes_[2 * j + 1];
  }
  // Such a job has no pairs left.
  jobs_.erase(std::remove_if(jobs_.begin(), jobs_.end(),
                             [](const TripleJob& job) {
                               return job.columns < 2 || job.rows == 0;
                             }),
              jobs_.end());
}

void TripleLane::run(std::int64_t from, std::int64_t to) {
  begin_jobs(from, to);
  if (order_.alike != nullptr) {
    find_alike(from, to);
    if (!workers_.go_on(to - from)) throw StoppedElsewhere();
    return;
  }
  list_others();
  std::size_t begin = 0;
  std::int64_t rows = 0;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    if (rows + pool_rows(jobs_[j]) > plan_.pool_rows) {
      run_group(begin, j);
      begin = j;
      rows = 0;
    }
    rows += pool_rows(jobs_[j]);
  }
  if (begin < jobs_.size()) run_group(begin, jobs_.size());
  if (!workers_.go_on(to - from)) throw StoppedElsewhere();
}

/// Runs jobs whose others fit in the pool.
void TripleLane::run_group(std::size_t from, std::size_t to) {
  const bool codes = sizes_.bits > 0;
  std::int64_t offset = 0, tiles = 0, most = 0;
  for (std::size_t j = from; j < to; ++j) {
    TripleJob& job = jobs_[j];
    const std::int64_t rows = pool_rows(job);
    job.offset = job.row_offset = offset;
    // If rows have codes of their own, these are at the end.
    if (codes && (job.rows != job.columns || sizes_.apart()))
      job.row_offset += rows - bit_pool_rows(job.rows, job.rows, false);
    job.first_tile = tiles;
    offset += rows;
    tiles += codes ? job.squares().count() : job.tiles().count();
    most = std::max(most, rows);
  }
  work_.num_jobs = static_cast<std::int64_t>(to - from);
  upload(d_jobs_, jobs_.data() + from, work_.num_jobs, stream_);
  const auto start_pool = codes ? start_triple_code_pool : start_triple_pool;
  start_pool(work_.points, d_jobs_.data(), work_.num_jobs, most, lists_,
             work_.pool, stream_.get());
  for (std::int64_t t = 0; t < tiles;) {
    const std::int64_t end = std::min(tiles, t + at_once_);
    run_tiles(t, end);
    t = end;
  }
  // Counted in 16 bits each, where there are codes.
  const double features =
      static_cast<double>(sizes_.depth) *
      (codes ? 16.0 / static_cast<double>(sizes_.bits) : 1.0);
  stats_.comparisons += static_cast<double>(tiles) *
                        static_cast<double>(pairs_of_tile(sizes_)) * features;
}

/// Splits the tiles into parts whose candidates fit; those of a single tile
/// always do.
void TripleLane::run_tiles(std::int64_t from, std::int64_t to) {
  if (try_tiles(from, to)) {
    at_once_ = std::min(tiles_at_once(sizes_), 2 * at_once_);
    return;
  }
  const std::int64_t middle = from + (to - from) / 2;
  at_once_ = std::max<std::int64_t>(1, middle - from);
  run_tiles(from, middle);
  run_tiles(middle, to);
}

bool TripleLane::try_tiles(std::int64_t from, std::int64_t to) {
  work_.from = from;
  work_.to = to;
  clear_from(found_, 0, stream_);
  const bool counting = order_.breaks != nullptr;
  if (counting) {
    clear_from(bin_counts_, 0, stream_);
    if (sizes_.copies > 0) {
      start_triple_table_counts(work_, bins_, stream_.get());
    } else if (sizes_.bits > 0) {
      start_triple_bit_counts(work_, bins_, stream_.get());
    } else {
      start_triple_counts(work_, bins_, stream_.get());
      start_counting_reranked(work_, bins_, stream_.get());
    }
    download(h_bin_counts_.data(), bin_counts_, bin_counts_.size(), stream_);
  } else {
    (sizes_.copies > 0 ? start_triple_table_filter
     : sizes_.bits > 0 ? start_triple_bit_filter
                       : start_triple_filter)(work_, stream_.get());
    start_reranking_triples(work_, hits_.data(), found_.data() + 1,
                            stream_.get());
  }
  unsigned long long found[2];
  download(found, found_, 2, stream_);
  stream_.wait();
  if (!workers_.go_on(0)) throw StoppedElsewhere();
  if (found[0] > static_cast<unsigned long long>(plan_.candidates))
    return false;
  stats_.candidates += static_cast<double>(found[0]);
  stats_.reranked += static_cast<double>(found[0]);
  if (counting) {
    for (std::size_t b = 0; b < counts_.size(); ++b)
      counts_[b] += static_cast<std::int64_t>(h_bin_counts_[b]);
    return true;
  }
  if (found[1] == 0) return true;
  h_hits_.resize(static_cast<std::size_t>(found[1]));
  download(h_hits_.data(), hits_, static_cast<std::int64_t>(found[1]), stream_);
  stream_.wait();
  const std::lock_guard<std::mutex> held(taking_);
  (*order_.take)(h_hits_);
  return true;
}

}  // namespace cuda
}  // namespace fsknn

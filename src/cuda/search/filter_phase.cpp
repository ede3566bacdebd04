#include "cuda/search/filter_phase.hpp"

#include <algorithm>

#include "cuda/device/transfer.hpp"
#include "cuda/device/wait_at_end.hpp"
#include "cuda/plan/panels.hpp"

namespace fsknn {
namespace cuda {
namespace {

// The numbers of points from which a filter learns, and by which one of several
// is chosen. The latter includes enough of each row's nearest for that choice.
constexpr std::int64_t kSample = 64, kSampleToChoose = 2048;
// The size of a panel, if memory allows it: some milliseconds of work.
constexpr std::int64_t kLongPanel = std::int64_t{64} << 20;

/// Makes a filter that has learnt from some of the points.
std::unique_ptr<PairFilter> filter_of_panels(const PanelsPart& part,
                                             const RowsInForm& rows) {
  const Search& search = part.search;
  PanelBuffer& buffer = part.panels.buffers[0];
  const bool chosen = rows.otherwise().form != NumberForm::none;
  // Points are shuffled, so the first of them are a sample.
  FilterSample sample;
  sample.count = std::min({chosen ? kSampleToChoose : kSample,
                           part.num_points(), buffer.most_rows()});
  part.panels.from.fetch_some(search.columns.order.id.data(), sample.count,
                              buffer);
  const Panel first = buffer.get(part.stream);
  sample.rows = {first.rows, first.sums, search.columns.padded};
  sample.undo = search.undo.scale;
  sample.sought = sought(search);
  auto filter =
      learnt_filter(*search.request.metric, rows, sample, part.stream);
  buffer.release(part.stream);
  return filter;
}

}  // namespace

std::int64_t PanelsPart::room_for_pairs(std::int64_t num_redone) const {
  const double row_bytes = static_cast<double>(search.columns.padded) * 8 + 12;
  const double redo =
      static_cast<double>(shape().redo_rows) *
      (row_bytes + static_cast<double>(shape().stream_rows) * 8 +
       static_cast<double>(search.plan.k) * 20);
  const double stay = static_cast<double>(shape().stream_rows) * row_bytes;
  const double held = shape().bytes_fixed +
                      20 * static_cast<double>(num_points()) +
                      16 * static_cast<double>(num_redone);
  return static_cast<std::int64_t>(
      std::max(0.0, shape().bytes_usable - held - std::max(redo, stay)) / 12);
}

PanelPhase::PanelPhase(const PanelsPart& part, const RowsInForm& rows)
    : part_(part),
      shape_(part.shape()),
      asked_(rows),
      filter_(filter_of_panels(part, rows)),
      slot_places_(part.layout.places.size(), -1),
      panel_places_(part.layout.num_slots),
      panel_slots_(part.num_points()) {
  const PointOrder& order = part.search.columns.order;
  const PointOrder& in_panels = part.search.in_panels->order;
  own_places_.reserve(part.layout.row_ids.size());
  for (const std::int32_t id : part.layout.row_ids)
    own_places_.push_back(in_panels.place[static_cast<std::size_t>(id)]);
  std::vector<std::int32_t> panel_slots;
  panel_slots.reserve(in_panels.id.size());
  for (const std::int32_t id : in_panels.id) {
    const std::int32_t place = order.place[static_cast<std::size_t>(id)];
    const std::int32_t slot =
        part.layout.slots[static_cast<std::size_t>(place)];
    slot_places_[static_cast<std::size_t>(slot)] =
        static_cast<std::int32_t>(panel_slots.size());
    panel_slots.push_back(slot);
  }
  upload(panel_places_, slot_places_.data(), panel_places_.size(), part.stream);
  upload(panel_slots_, panel_slots.data(), panel_slots_.size(), part.stream);
  part.stream.wait();  // the vector is freed
}

bool PanelPhase::make_all(PanelBuffer (&panels)[2], const FilterRows& to) {
  const Stream& stream = part_.stream;
  const auto make = [&](const Panel& panel) {
    filter_->start_rows({panel.rows, panel.sums, part_.search.columns.padded},
                        panel.count, panel_slots_.data() + panel.first.value,
                        to, stream.get());
    return part_.workers.go_on();
  };
  if (!for_panels({part_.panels.from, panels}, stream, make)) return false;
  // The test covers all rows, so that devices agree.
  suits_ = filter_->suits(stream);
  stream.wait();
  return true;
}

void PanelPhase::tell(LearntForms::Stage stage, const void* words,
                      std::int64_t bytes) {
  if (part_.search.learnt == nullptr) return;
  const bool suits = stage == LearntForms::Stage::learnt || suits_;
  part_.search.learnt->tell(
      asked_, stage, learnt_form(*filter_, suits, words, bytes, part_.stream));
}

FilterPhase::FilterPhase(const PanelsPart& part, const RowsInForm& rows,
                         const FilterTeam& team, int own, Exchange& exchange)
    : PanelPhase(part, rows),
      team_size_(team.size()),
      form_(*filter_, part.layout.num_slots),
      candidates_(
          {part.layout.num_slots, shape_.capacity, part.layout.num_owned()},
          part.stream),
      own_slots_(part.layout.num_owned()) {
  const FilterLayout& layout = part.layout;
  const PointOrder& order = part.search.columns.order;
  std::vector<std::int32_t> own_slots;
  own_slots.reserve(own_places_.size());
  for (const std::int32_t place : layout.row_places)
    own_slots.push_back(layout.slots[static_cast<std::size_t>(place)]);
  upload(own_slots_, own_slots.data(), layout.num_owned(), part.stream);
  candidates_.place(layout.places.data(), layout.num_slots, part.stream);
  candidates_.hold_ids(order.id.data(), part.num_points(), part.stream);
  form_.clear(part.stream);

  pass_.filter = filter_.get();
  pass_.slot_bytes = part.search.plan.shape.rows.slot_bytes();
  pass_.rounds = rounds_of_graph(part.search, team, own);
  pass_.rounds.fill_blocks = shape_.fill_blocks;
  pass_.rounds.growth = shape_.growth;
  pass_.rounds.risk = 0.0;  // lists wait for the exact step
  pass_.exchange = &exchange;
  pass_.workers = &part.workers;
  pass_.part = FilterPass::Part::after_first;
  pass_.work.rows = pass_.work.columns = form_.rows();
  pass_.cut.redo = candidates_.redo();
  pass_.cut.k = static_cast<std::int32_t>(part.search.plan.k);
  pass_.cut.first_slot = layout.first_slot;
  pass_.cut.end_slot = layout.end_slot;
  exchange.own_slots(layout.first_slot, layout.end_slot);
  part.stream.wait();  // the vector is freed
}

bool FilterPhase::make_rows() {
  const Stream& stream = part_.stream;
  if (!make_all_rows()) return false;
  tell(LearntForms::Stage::made, form_.rows().rows,
       form_.rows().num_slots * filter_->row_bytes());
  if (!suits()) return true;
  filter_->set_errors(pass_.cut, form_.rows(), form_.rows(), stream);
  candidates_.hold_entries();
  pass_.work.lists = pass_.cut.lists = candidates_.lists();
  start_candidates(candidates_.lists(), stream.get());
  stream.wait();
  return true;
}

bool FilterPhase::make_all_rows() {
  // The lists are not allocated yet, so panels may use their memory.
  const Stream& stream = part_.stream;
  const std::int64_t padded = part_.search.columns.padded;
  const std::int64_t lists = part_.layout.num_slots * shape_.capacity *
                             static_cast<std::int64_t>(sizeof(Candidate));
  const std::int64_t row_bytes = padded * 8 + 12;
  const std::int64_t bytes =
      std::min(std::max(kLongPanel, kEnoughRows * row_bytes), lists / 2);
  const std::int64_t rows = std::min(
      whole_tiles(part_.num_points()),
      std::max(kChunkUnit, bytes / row_bytes / kChunkUnit * kChunkUnit));
  PanelBuffer panels[2] = {{rows, padded}, {rows, padded}};
  const WaitAtEnd wait(stream);
  return make_all(panels, form_.rows());
}

bool FilterPhase::fill() {
  const Stream& stream = part_.stream;
  const FilterLayout& layout = part_.layout;
  DeviceBuffer<Candidate> entries(shape_.fill_slots * shape_.fill_capacity);
  const WaitAtEnd wait(stream);
  FilterPass pass;
  pass.filter = pass_.filter;
  pass.rounds = pass_.rounds;
  pass.work = pass_.work;
  pass.cut = pass_.cut;
  pass.part = FilterPass::Part::first_round;
  CandidateLists& lists = pass.work.lists;
  lists.capacity = shape_.fill_capacity;
  const std::int64_t end = layout.end_slot.value;
  for (std::int64_t slot = layout.first_slot.value; slot < end;
       slot += shape_.fill_slots) {
    const std::int64_t count = std::min(shape_.fill_slots, end - slot);
    lists.entries = entries.data() - slot * shape_.fill_capacity;
    pass.cut.lists = lists;
    pass.cut.first_slot = {slot};
    pass.cut.end_slot = {slot + count};
    pass.rounds.first_slab = slot / kFilterSlab;
    pass.rounds.num_slabs = count / kFilterSlab;
    run_rounds(pass, stream);
    start_narrowing(lists, candidates_.lists(), pass.cut.first_slot,
                    pass.cut.end_slot, stream.get());
  }
  // A list that is too short for the kept candidates reports it by its count.
  // From here on lists hold pairs of two points, as rounds do.
  Cut cut = pass_.cut;
  cut.all_valid = true;
  start_cut(cut, stream.get());
  return pass_.exchange->publish(stream) && part_.workers.go_on();
}

bool FilterPhase::run(Stats& stats) {
  if (!run_rounds(pass_, part_.stream)) return false;
  part_.stream.wait();
  const double n = static_cast<double>(part_.num_points());
  stats.pairs_filtered = n * (n - 1) / 2 / team_size_;
  stats.filter = filter_->numbers();
  return pass_.exchange->end();
}

bool FilterPhase::collect(FilteredGraph& found, Stats& stats) {
  const FilterLayout& layout = part_.layout;
  const Stream& stream = part_.stream;
  const std::int64_t room = part_.room_for_pairs(0);
  const std::vector<std::int32_t> counts =
      candidates_.counts(Slot{0}, Slot{layout.num_slots}, stream);
  std::vector<std::int64_t> first(own_places_.size() + 1, 0);
  for (std::size_t own = 0; own < own_places_.size(); ++own) {
    const std::int32_t place = layout.row_places[own];
    const std::int32_t slot = layout.slots[static_cast<std::size_t>(place)];
    std::int32_t count = counts[static_cast<std::size_t>(slot)];
    // The list overflowed, has too few entries (NaN sums), or exceeds the
    // remaining memory.
    if (count < part_.search.plan.k || first[own] + count > room) {
      found.redone.push_back(static_cast<std::int64_t>(own));
      count = 0;
    }
    first[own + 1] = first[own] + count;
  }
  stats.rows_recomputed = static_cast<double>(found.redone.size());
  stats.pairs_exact = static_cast<double>(first.back());
  found.pairs =
      WaitingList(own_places_, first, WaitingList::Where::device, stream);
  PairsFromLists lists;
  lists.lists = candidates_.lists();
  lists.own_slots = own_slots_.data();
  lists.panel_places = panel_places_.data();
  lists.num_owned = layout.num_owned();
  start_waiting(lists, found.pairs.view(), stream.get());
  stream.wait();
  return found.redone.empty() || !WideFilter::helps(candidates_.lists()) ||
         collect_widely(found, stats);
}

/// Uses longer lists, in the memory of those no longer needed.
bool FilterPhase::collect_widely(FilteredGraph& found, Stats& stats) {
  const FilterLayout& layout = part_.layout;
  RedoneRows rows;
  std::vector<std::int32_t> ids;
  for (const std::int64_t own : found.redone) {
    const std::size_t at = static_cast<std::size_t>(own);
    ids.push_back(layout.row_ids[at]);
    rows.places.push_back(layout.row_places[at]);
    rows.slots.push_back(
        layout.slots[static_cast<std::size_t>(rows.places.back())]);
  }
  if (!filter_widely(pass_, candidates_.lists(), rows, ids,
                     panel_places_.data(), part_.panels, part_.stream,
                     found.wide))
    return false;
  stats.pairs_filtered += static_cast<double>(rows.size()) *
                          static_cast<double>(part_.num_points());
  return true;
}

}  // namespace cuda
}  // namespace fsknn

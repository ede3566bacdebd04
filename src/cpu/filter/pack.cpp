#include "cpu/filter/pack.hpp"

#include <algorithm>
#include <vector>

#include "core/base/large_pages.hpp"
#include "core/base/pieces.hpp"
#include "cpu/filter/form_parts.hpp"

namespace fsknn {
namespace cpu {

FilterRows pack(const FilterScale& scale, const PreparedPoints& points,
                int num_threads, Progress* progress) {
  const FilterForm& form = *scale.form;
  FilterRows rows;
  const std::int64_t num_panels =
      (points.size() + Tile::panel - 1) / Tile::panel;
  rows.num_places = num_panels * Tile::panel;
  if (!scale.has_filter()) return rows;
  rows.product = form.product;
  rows.steps =
      first_steps(form.product) +
      (points.padded + form.features_per_step() - 1) / form.features_per_step();
  rows.panels = Buffer<std::int32_t>(rows.num_places * rows.steps);
  in_large_pages(rows.panels);
  for (Buffer<std::int32_t>* numbers :
       {&rows.first, &rows.second, &rows.first_upper, &rows.second_upper}) {
    *numbers = Buffer<std::int32_t>(rows.num_places);
    std::fill_n(numbers->data(), rows.num_places, 0);
  }
  if (form.test == Test::table) {
    rows.third = Buffer<std::int32_t>(rows.num_places);
    std::fill_n(rows.third.data(), rows.num_places, 0);
  }
  if (form.needs_errors) {
    rows.square = Buffer<float>(rows.num_places);
    std::fill_n(rows.square.data(), rows.num_places, 0.0f);
  }
  if (form.pack_words != nullptr) {
    rows.words_wide =
        (points.padded + kWordsTogether - 1) / kWordsTogether * kWordsTogether;
    rows.words = Buffer<std::int16_t>(rows.num_places * rows.words_wide);
    rows.words_error = Buffer<float>(rows.num_places);
    in_large_pages(rows.words);
    rows.second_likely = Buffer<std::int32_t>(rows.num_places);
    std::fill_n(rows.second_likely.data(), rows.num_places, 0);
  }
  const bool fit = form.usable(scale);
  std::vector<double> error(static_cast<std::size_t>(num_panels), 0.0);
  run_pieces(num_panels, num_threads, {progress, 0.0, 0.0}, [&] {
    return [&, packer = RowPacker(scale, points.padded),
            row = FilterReader(points)](std::int64_t panel) mutable {
      for (int c = 0; c < Tile::panel; ++c) {
        const std::int64_t place = panel * Tile::panel + c;
        if (form.pack_words != nullptr) {
          std::fill_n(rows.words.data() + place * rows.words_wide,
                      rows.words_wide, std::int16_t{0});
          rows.words_error[place] = 0.0f;
        }
        if (place < points.size() && fit) {
          packer.load(row(Place{place}));
          form.pack_row(packer, rows, row.sum(Place{place}), place,
                        &error[static_cast<std::size_t>(panel)]);
          if (form.pack_words != nullptr) form.pack_words(packer, rows, place);
        } else {
          packer.clear();
        }
        for (std::int64_t f = 0; f < rows.steps; ++f)
          rows.panels[rows.at(place, f)] = packer.step[f];
      }
    };
  });
  for (const double e : error) rows.error = std::max(rows.error, e);
  return rows;
}

FilterRows reordered(const FilterRows& from,
                     const std::vector<std::int32_t>& place_at,
                     int num_threads) {
  const std::int64_t size = static_cast<std::int64_t>(place_at.size());
  FilterRows to;
  to.num_places = (size + Tile::panel - 1) / Tile::panel * Tile::panel;
  to.steps = from.steps;
  to.product = from.product;
  to.error = from.error;
  if (from.steps == 0) return to;  // there is no filter
  to.panels = Buffer<std::int32_t>(to.num_places * to.steps);
  for (Buffer<std::int32_t>* numbers :
       {&to.first, &to.second, &to.first_upper, &to.second_upper})
    *numbers = Buffer<std::int32_t>(to.num_places);
  if (from.third.size() > 0) to.third = Buffer<std::int32_t>(to.num_places);
  to.words_wide = from.words_wide;
  if (from.words_wide > 0) {
    to.words = Buffer<std::int16_t>(to.num_places * to.words_wide);
    to.words_error = Buffer<float>(to.num_places);
    to.second_likely = Buffer<std::int32_t>(to.num_places);
  }
  run_pieces(
      to.num_places / Tile::panel, num_threads, {nullptr, 0.0, 0.0}, [&] {
        return [&](std::int64_t panel) {
          for (int c = 0; c < Tile::panel; ++c) {
            const std::int64_t p = panel * Tile::panel + c;
            const std::int64_t q =
                p < size ? place_at[static_cast<std::size_t>(p)] : 0;
            for (std::int64_t f = 0; f < to.steps; ++f)
              to.panels[to.at(p, f)] = from.panels[from.at(q, f)];
            to.first[p] = from.first[q];
            to.second[p] = from.second[q];
            to.first_upper[p] = from.first_upper[q];
            to.second_upper[p] = from.second_upper[q];
            if (from.third.size() > 0) to.third[p] = from.third[q];
            if (from.words_wide == 0) continue;
            std::copy_n(from.words.data() + q * from.words_wide,
                        from.words_wide, to.words.data() + p * to.words_wide);
            to.words_error[p] = from.words_error[q];
            to.second_likely[p] = from.second_likely[q];
          }
        };
      });
  return to;
}

void set_slack(FilterScale& scale, double error, std::int64_t padded) {
  scale.slack = scale.form->slack(error, padded);
}

void complete(const FilterScale& scale, FilterRows& rows) {
  if (scale.has_filter()) scale.form->complete(scale.slack, rows);
}

}  // namespace cpu
}  // namespace fsknn

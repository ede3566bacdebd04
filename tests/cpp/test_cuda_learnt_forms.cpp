// The devices of one search share what they learn about their filters.

#include <doctest/doctest.h>

#include <stdexcept>

#include "cuda/search/learnt_forms.hpp"

using fsknn::cuda::LearntForm;
using fsknn::cuda::LearntForms;
using fsknn::cuda::NumberForm;
using fsknn::cuda::RowsInForm;
using Stage = fsknn::cuda::LearntForms::Stage;

namespace {

LearntForm halves() {
  LearntForm learnt;
  learnt.form = NumberForm::half;
  learnt.row_bytes = 256;
  learnt.digest = 77;
  return learnt;
}

}  // namespace

TEST_CASE("devices that learnt the same are heard, as often as they try") {
  const RowsInForm bytes(NumberForm::byte, true, 100);
  const RowsInForm next = bytes.otherwise();
  LearntForms told;
  LearntForm unsuited = halves();
  unsuited.form = NumberForm::byte;
  unsuited.suits = false;
  for (int device = 0; device < 3; ++device) {
    told.tell(bytes, Stage::learnt, halves());
    told.tell(bytes, Stage::made, unsuited);
    told.tell(next, Stage::learnt, halves());
    told.tell(next, Stage::made, halves());
  }
  CHECK_THROWS_AS(told.tell(bytes, Stage::made, halves()), std::logic_error);
}

TEST_CASE("devices that learnt anything else are an internal error") {
  const RowsInForm bytes(NumberForm::byte, true, 100);
  for (int what = 0; what < 5; ++what) {
    CAPTURE(what);
    LearntForms told;
    told.tell(bytes, Stage::made, halves());
    LearntForm other = halves();
    if (what == 0) other.form = NumberForm::byte;
    if (what == 1) other.centred = true;
    if (what == 2) other.suits = false;
    if (what == 3) other.row_bytes += 128;
    if (what == 4) other.digest += 1;
    CHECK_THROWS_AS(told.tell(bytes, Stage::made, other), std::logic_error);
    CHECK_NOTHROW(told.tell(bytes, Stage::made, halves()));
  }
}

TEST_CASE("rows in a form are asked for again only if all that they are is") {
  RowsInForm asked(NumberForm::byte, true, 100);
  CHECK(asked == RowsInForm(NumberForm::byte, true, 100));
  CHECK_FALSE(asked == RowsInForm(NumberForm::half, true, 100));
  CHECK_FALSE(asked == RowsInForm(NumberForm::byte, true, 101));
  CHECK_FALSE(asked == asked.with_room_to_centre());
  CHECK_FALSE(RowsInForm::codes(100, NumberForm::single) ==
              RowsInForm::codes(100, NumberForm::byte_difference));
}

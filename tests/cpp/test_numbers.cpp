// Kinds of whole numbers that interfaces do not confuse.

#include <doctest/doctest.h>

#include <cstdint>
#include <type_traits>

#include "core/base/numbers.hpp"
#include "core/base/select.hpp"
#include "core/contract/request.hpp"
#include "core/rows/order.hpp"
#include "cpu/search/lists.hpp"
#include "cpu/search/prepared_pairs.hpp"
#include "cuda/plan/filter_blocks.hpp"

using namespace fsknn;

namespace {

using Number = std::int32_t;
using cpu::NeighbourLists;
using cpu::PointBlock;
using cuda::FilterBlocks;

/// Whether a member function can be called with arguments of these types.
template <class Member, class Object, class... Arguments>
constexpr bool takes(Member Object::*, Arguments...) {
  return std::is_invocable_v<Member Object::*, Object&, Arguments...>;
}

}  // namespace

TEST_CASE("interfaces take a number of their own kind and no other") {
  const Number plain = 0;
  const PointId id = {0};
  const Place place = {0};
  const AnswerRow row = {0};
  const Rank rank = {0};
  CHECK(takes(&Neighbours::at, row, rank));
  CHECK_FALSE(takes(&Neighbours::at, plain, plain));
  CHECK_FALSE(takes(&Neighbours::at, rank, row));
  CHECK_FALSE(takes(&Neighbours::at, place, rank));
  CHECK(takes(&NeighbourHeap::offer, 1.0, id));
  CHECK_FALSE(takes(&NeighbourHeap::offer, 1.0, plain));
  CHECK_FALSE(takes(&NeighbourHeap::offer, 1.0, place));
  CHECK(takes(&NeighbourLists::offer, place, 1.0, id));
  CHECK_FALSE(takes(&NeighbourLists::offer, plain, 1.0, plain));
  CHECK_FALSE(takes(&NeighbourLists::offer, id, 1.0, id));
  CHECK_FALSE(takes(&NeighbourLists::limit, plain));
  CHECK(takes(&PointBlock::id, place));
  CHECK_FALSE(takes(&PointBlock::id, plain));
  CHECK(std::is_same_v<decltype(PointBlock::first_place), Place>);
  CHECK(std::is_same_v<decltype(PointBlock::first_id), PointId>);
}

TEST_CASE("a block of a GPU's filter says which slots and places it has") {
  for (const std::int64_t n : {1, 255, 256, 257, 1000, 5000}) {
    const FilterBlocks blocks(n);
    const auto places = blocks.places();
    std::int64_t next = 0;
    for (std::int64_t b = 0; b < blocks.count; ++b) {
      const Place first = blocks.first_place(b);
      const Slot slot = blocks.first_slot(b);
      CHECK(first == Place{next});
      next = blocks.first_place(b + 1).value;
      CHECK(next - first.value <= cuda::kFilterBlock);
      if (next > first.value)
        CHECK(places[static_cast<std::size_t>(slot.value)] == first.value);
    }
    CHECK(next == n);
    CHECK(blocks.first_slot(blocks.count).value == blocks.num_slots());
  }
}

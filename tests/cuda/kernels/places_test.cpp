// Where a stream's threads find rows: device code that runs on the host too.
#include <gtest/gtest.h>

#include "cuda/kernels/stream/place.cuh"
#include "model/primitives/concat_rows.h"

namespace fuseline {
namespace {

using namespace gpu::stream;

// Two sequences of 5 + 2 + 3 rows: every joint row is one part's, where the program says it is.
TEST(Places, RowsOfPartsAreThoseOfTheProgram) {
  const RowsOfParts parts{2, {5, 2, 3}};
  constexpr int units = 4;
  for (int first = 0; first < 20; first += units) {
    TilePlace<units> place{first, 1, 0, 20, 8};
    const auto a = rows_of_part<10, 0, 5>(place);
    const auto b = rows_of_part<10, 5, 2>(place);
    const auto c = rows_of_part<10, 7, 3>(place);
    for (int u = 0; u < units; ++u) {
      const RowsOfParts::Place from = parts.place(first + u);
      const bool holds[] = {a.holds(u), b.holds(u), c.holds(u)};
      const int rows[] = {a.memory_row(u), b.memory_row(u), c.memory_row(u)};
      const int found[] = {a.row(u), b.row(u), c.row(u)};
      for (std::size_t part = 0; part < 3; ++part) {
        EXPECT_EQ(holds[part], part == from.part) << first + u;
        // A row of another part lies past the last one, so nothing is loaded.
        EXPECT_EQ(found[part], part == from.part ? first + u : 20) << first + u;
        if (holds[part]) {
          EXPECT_EQ(rows[part], from.row) << first + u;
        }
      }
    }
  }
}

TEST(Places, JoinedRowsAreTakenFromTheirPart) {
  const TilePlace<4> place{3, 1, 0, 10, 8};  // rows 3 to 6: two of each part
  const auto second = rows_of_part<10, 5, 5>(place);
  Strip<4> own, other;
  for_each<Strip<4>>([&](int u, int e) {
    own.at(u, e) = static_cast<float>(100 + 8 * u + e);
    other.at(u, e) = static_cast<float>(-1 - 8 * u - e);
  });
  const Strip<4> joined = join_rows(second, own, other);
  for_each<Strip<4>>([&](int u, int e) {
    EXPECT_EQ(joined.at(u, e), u < 2 ? other.at(u, e) : own.at(u, e)) << u << ' ' << e;
  });
}

// Of 3 sequences of 5 tokens, with a window of 4: each row above is a row of the same sequence, or
// one of the 3 ahead of it, or nothing.
TEST(Places, RowsOfAWindowAreThoseOfTheSequence) {
  constexpr int tokens = 5, halo = 3, units = 4;
  for (int first = 0; first < 15; first += units)
    for (int back = 0; back <= halo; ++back) {
      const TilePlace<units> place{first, 1, 0, 15, 8};
      const auto above = rows_above(place, tokens, back);
      const auto ahead = rows_ahead<halo>(place, tokens, back);
      for (int u = 0; u < units; ++u) {
        const int row = first + u;
        const int token = row % tokens - back;  // in its sequence
        EXPECT_EQ(above.row(u) < place.rows, row < 15 && token >= 0) << row << ' ' << back;
        EXPECT_EQ(ahead.row(u) < place.rows, row < 15 && token < 0) << row << ' ' << back;
        if (row >= 15) continue;
        if (token >= 0) {
          EXPECT_EQ(above.memory_row(u), row / tokens * tokens + token);
        } else {
          EXPECT_EQ(ahead.memory_row(u), row / tokens * halo + halo + token);
        }
      }
    }
}

}  // namespace
}  // namespace fuseline

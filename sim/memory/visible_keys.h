// Which keys a tile of queries can see, and which queries a tile of keys.
#pragma once

#include <cstdint>

#include "model/operators/attributes.h"

namespace fuseline {

// Key positions [0, end) that queries [begin, begin + count) of one sequence can see, as a range.
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
KeyRange visible_keys(const AttentionShape& attention, std::int64_t first_query,
                      std::int64_t count);
// Queries in tiles of `tile`, some of which can see one of the keys [first_key, first_key + count).
KeyRange query_tiles_that_see(const AttentionShape& attention, std::int64_t first_key,
                              std::int64_t count, std::int64_t tile);

}  // namespace fuseline

// The sizes along which a verdict looks for its turning.
#include <algorithm>

#include "base/error.h"
#include "sim/verdict/verdict.h"

namespace fuseline {

namespace {

constexpr std::int64_t kDown = 64, kUp = 16;
// Where a block of a model of 7 or 8 billion parameters takes half a second to simulate.
constexpr std::int64_t kMostRows = 32768, kMostBatch = 1024, kMostContext = 131072;
constexpr std::int64_t kMostCached = std::int64_t{1} << 22;  // tokens of all sequences

SizeRange around(std::int64_t asked, std::int64_t least, std::int64_t most) {
  return {.least = std::min(asked, std::max(least, asked / kDown)),
          .asked = asked,
          .most = std::max(asked, std::min(most, asked * kUp))};
}

}  // namespace

std::vector<SizeAxis> axes_of(const Workload& w) {
  if (w.phase != Phase::decode) {
    // Of one sequence in a batch: M is a multiple of the batch.
    return {{"M", around(w.seq, 1, std::max<std::int64_t>(1, kMostRows / w.batch))}};
  }
  return {{"batch", around(w.batch, 1, std::min(kMostBatch, kMostCached / w.context))},
          {"context", around(w.context, w.seq, std::min(kMostContext, kMostCached / w.batch))}};
}

Workload at_size(Workload w, const std::string& letter, std::int64_t size) {
  if (letter == "M") {
    w.seq = size;
  } else if (letter == "batch") {
    w.batch = size;
  } else {
    FUSELINE_ASSERT(letter == "context", letter);
    w.context = size;
  }
  return w;
}

}  // namespace fuseline

#include "sim/kernels/scan_chunks.h"

#include <algorithm>

namespace fuseline {

namespace {

constexpr std::int64_t kTile = 16;       // rows and columns of a matrix instruction
constexpr std::int64_t kVectorCols = 8;  // that a copy of 16 bytes moves
constexpr std::int64_t kWidest = 64;
// Of the state, that the registers of four warps hold beside what they work with.
constexpr std::int64_t kStateNumbers = 64 * 128;
// A walk takes about a quarter of a microsecond a token, a chunk about three microseconds.
constexpr std::int64_t kLeastTokens = 16;

bool is_copied_by_vectors(const Graph& graph, const Operand& operand) {
  return graph.tensor(operand.tensor).dtype == Dtype::bf16 && operand.at.run == 0 &&
         operand.col_begin % kVectorCols == 0;
}

bool makes_whole_tiles(const ScanShape& s, const ChunkLayout& l) {
  return s.head_width % l.cols == 0 && s.state_width % (kTile * l.across()) == 0 &&
         l.cols * s.state_width <= kStateNumbers;
}

}  // namespace

std::int64_t ChunkLayout::shared_bytes() const {
  constexpr std::int64_t T = scan_chunk_tokens;
  const std::int64_t stage = T * (2 * cols + 16) + 2 * T * (2 * numbers + 16);
  const std::int64_t results = 4 * (1 + across()) * T * (cols + 4);
  const std::int64_t factors = 4 * 4 * T;
  return 2 * (stage + results + factors);
}

std::optional<ChunkLayout> chunk_layout(const Graph& graph, const ScanMainloop& scan,
                                        std::int64_t shared_bytes, std::int64_t multiprocessors) {
  const ScanShape& s = scan.shape;
  if (scan.has_rates_of_columns() || std::min(s.tokens, s.chunk) < kLeastTokens) return {};
  for (const Operand& operand : {scan.x, scan.k, scan.q})
    if (!is_copied_by_vectors(graph, operand)) return {};
  // The states that a gradient begins with stand behind whole chunks.
  if (scan.keeps_states() && s.chunk % scan_chunk_tokens != 0) return {};
  std::optional<ChunkLayout> chosen;
  for (std::int64_t cols = kWidest; cols >= kTile; cols /= 2) {
    const ChunkLayout l{.cols = cols, .numbers = s.state_width};
    if (!makes_whole_tiles(s, l) || l.shared_bytes() > shared_bytes) continue;
    // Narrower thread blocks are worth it while all of them run at once.
    if (!chosen || chunk_blocks(s, l) <= multiprocessors) chosen = l;
  }
  return chosen;
}

std::int64_t chunk_blocks(const ScanShape& shape, const ChunkLayout& layout) {
  return shape.batch * shape.heads * shape.head_width / layout.cols;
}

}  // namespace fuseline

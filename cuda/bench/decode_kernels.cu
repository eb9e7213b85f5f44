// Kernels for few rows: what gemm_bench --decode checks and times. The list is a file of its own so
// that it compiles beside the other.
#include "gemm_kernel.cuh"

namespace fuseline::bench {

namespace {

constexpr auto ping = gpu::Schedule::ping_pong;

// Tiles of 64 rows, of which `rows` are loaded; `parts` thread blocks of a cluster have a part of K
// each.
template <int rows, int cols, int parts>
Kernel low() {
  using Config = gpu::Sm90Config<T, 64, cols, 1, ping, false, false, false, parts, rows>;
  std::string name = std::to_string(rows) + " of 64x" + std::to_string(cols);
  if (parts > 1) name += " in " + std::to_string(parts);
  Kernel k = plain<Config>(name, 8);
  if (rows < 64) k.most_rows = rows;
  return k;
}
template <int rows>
void add_low(std::vector<Kernel>& k) {
  k.push_back(low<rows, 64, 1>());
  k.push_back(low<rows, 128, 1>());
  k.push_back(low<rows, 192, 1>());
  k.push_back(low<rows, 64, 2>());
  k.push_back(low<rows, 128, 2>());
  k.push_back(low<rows, 128, 3>());
  k.push_back(low<rows, 128, 4>());
}

// Two thread blocks below each other share the tile of weights.
template <int cols>
void add_pairs(std::vector<Kernel>& k) {
  k.push_back(
      plain<gpu::Sm90Config<T, 64, cols, 2, ping>>("64x" + std::to_string(cols) + " c2", 8));
}

// Weights and tokens change places (sm90/turned_tile.cuh).
template <int rows, int cols>
void add_turned(std::vector<Kernel>& k) {
  using Config = gpu::Sm90Config<T, cols, rows, 2, gpu::Schedule::cooperative, false, false, false,
                                 1, cols, false, false, false, false, true>;
  k.push_back(plain<Config>("turned " + std::to_string(rows) + "x" + std::to_string(cols), 8));
}

}  // namespace

std::vector<Kernel> decode_kernels() {
  std::vector<Kernel> k;
  add_low<8>(k);
  add_low<16>(k);
  add_low<32>(k);
  add_low<64>(k);
  add_pairs<64>(k);
  add_pairs<128>(k);
  add_pairs<192>(k);
  add_turned<16, 128>(k);
  add_turned<32, 128>(k);
  add_turned<48, 128>(k);
  add_turned<64, 128>(k);
  add_turned<80, 128>(k);
  add_turned<112, 128>(k);
  add_turned<128, 128>(k);
  k.push_back(plain<gpu::Sm90Config<T, 128, 64, 1>>("128x64 c1", 8));
  k.push_back(plain<gpu::Sm90Config<T, 128, 128, 1>>("128x128 c1", 8));
  return k;
}

}  // namespace fuseline::bench

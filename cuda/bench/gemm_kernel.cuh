// The GEMM kernels that gemm_bench checks and times, and the problems that it gives them.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "epilogues.cuh"
#include "launch_sm80.cuh"
#include "reference.cuh"

namespace fuseline::bench {

using T = gpu::bf16;

struct Shape {
  int M, N, K;
};

inline int padded(int n) { return (n + 7) / 8 * 8; }
inline std::size_t area(int rows, int cols) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
}

// One set of buffers. Results have rows beyond M and columns beyond N, which must stay untouched.
struct Set {
  Buffer<T> a, b, x, y;
  Buffer<float> r, s;
};
constexpr int extra_rows = 3;

struct Problem {
  Shape shape;
  int lda, ldb, ldy, blocks;
  std::vector<Set> sets;

  Problem(Shape s, int count, unsigned seed)
      : shape(s),
        lda(padded(s.K)),
        ldb(padded(s.K)),
        ldy(padded(s.N) + 8),
        blocks((s.N + 127) / 128) {
    for (int i = 0; i < count; ++i) {
      Set set{Buffer<T>(area(s.M, lda)),
              Buffer<T>(area(s.N, ldb)),
              Buffer<T>(area(s.M, ldy)),
              Buffer<T>(area(s.M + extra_rows, ldy)),
              Buffer<float>(static_cast<std::size_t>(s.M)),
              Buffer<float>(area(s.M, blocks))};
      fill_normal(set.a, seed + 1);
      fill_normal(set.b, seed + 2, 1.0F / std::sqrt(static_cast<float>(s.K)));
      fill_normal(set.x, seed + 3);
      fill_normal(set.r, seed + 4);
      seed += 10;
      sets.push_back(std::move(set));
    }
  }
  Operands operands() const { return {shape.M, shape.N, shape.K, lda, ldb}; }
};

// A kernel under test: launches on one set of a problem.
struct Kernel {
  std::string name;
  bool fused;
  std::function<void(const Problem&, const Set&, cudaStream_t)> launch;
  int most_rows = std::numeric_limits<int>::max();  // of a result that it is right for
};

template <class Config>
Kernel plain(const std::string& name, int group, int tail_parts = 1) {
  return {name, false, [group, tail_parts](const Problem& p, const Set& s, cudaStream_t stream) {
            using E = gpu::StoreResult<gpu::TileOut<T>>;
            const E::Params params{tile_out(s.y.data(), p.shape.M, p.shape.N, p.ldy)};
            launch<Config, E>(p.operands(), s.a.data(), s.b.data(), group, params, stream,
                              tail_parts);
          }};
}
// Rows of a tile of the result. Ampere's tiles are never turned.
template <class Config, class = void>
constexpr int tile_rows = Config::tile_m;
template <class Config>
constexpr int tile_rows<Config, decltype(void(Config::turned))> =
    Config::turned ? Config::tile_n : Config::tile_m;

template <class Config>
Kernel fused(const std::string& name, int group, int tail_parts = 1) {
  return {name, true, [group, tail_parts](const Problem& p, const Set& s, cudaStream_t stream) {
            using E = ResidualScaleSquares<T>;
            const E::Params params{
                tile_in<T, 0>(s.x.data(), p.shape.M, p.shape.N, p.ldy, tile_rows<Config>),
                {s.r.data(), 1},
                tile_out(s.y.data(), p.shape.M, p.shape.N, p.ldy),
                {s.s.data(), p.blocks}};
            launch<Config, E>(p.operands(), s.a.data(), s.b.data(), group, params, stream,
                              tail_parts);
          }};
}

// For few rows (decode_kernels.cu).
std::vector<Kernel> decode_kernels();

}  // namespace fuseline::bench

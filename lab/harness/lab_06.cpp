#include "harness.h"

void gemm(const fuseline_lab::Source& a, const fuseline_lab::Source& b,
          const fuseline_lab::Target& c, std::int64_t tile_m, std::int64_t tile_n,
          std::int64_t tile_k);

void fuseline_lab::run_case() {
  gemm(source("a"), source("b"), target("c"), size("tile_m"), size("tile_n"), size("tile_k"));
}

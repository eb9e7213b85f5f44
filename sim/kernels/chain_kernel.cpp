#include "sim/kernels/chain_kernel.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/error.h"
#include "model/chain.h"
#include "sim/kernels/gemm_time.h"

namespace fuseline {
namespace {

constexpr std::int64_t kChainPartBytes = 4;  // of an element of a part of y, fp32

const GemmMainloop& chain_product(const Program& program) {
  const auto* product = std::get_if<GemmMainloop>(&program.mainloop);
  FUSELINE_ASSERT(product != nullptr, program.name + " is no product of a chain");
  return *product;
}

// All that an epilogue moves, but for what is handed over: numbers of 16 bits, most of them.
Bytes chain_epilogue_bytes(const Program& program, TensorId kept) {
  Bytes bytes;
  for (const Primitive& p : program.body)
    for (const Access& access : p.accesses())
      if (access.operand.tensor != kept)
        bytes += Bytes(access.operand.rows * access.operand.cols * 2);
  return bytes;
}

}  // namespace

TileShape ChainLayout::first_tile() const { return {most_chained_rows, first_columns}; }

TileShape ChainLayout::second_tile() const {
  constexpr std::int64_t kColumns = 128;  // partial sums of rows cover so many
  return {most_chained_rows, kColumns};
}

std::optional<ChainLayout> chain_layout(const Kernel& kernel, const Gpu& gpu) {
  return chain_layout(kernel, gpu.sm_count);
}

std::optional<ChainLayout> chain_layout(const Kernel& kernel, std::int64_t sm_count) {
  if (!handed_over(kernel)) return std::nullopt;
  const std::int64_t columns = chain_product(kernel.phases[1]).K;
  const std::int64_t pieces = ceil_div(columns, chained_piece);
  ChainLayout layout;
  layout.columns = ceil_div(pieces, sm_count) * chained_piece;
  layout.blocks = ceil_div(columns, layout.columns);
  layout.first_columns = layout.columns * (chain_product(kernel.phases[0]).N / columns);
  return layout;
}

StreamWalk chain_walk(const Kernel& kernel, const Program& program, const AddressMap& addresses,
                      const Gpu& gpu) {
  const TensorId kept = handed_over(kernel).value().tensor;
  const GemmMainloop& product = chain_product(program);
  StreamKernel all;
  all.rows = product.N;
  all.cols = product.K;
  for (const Operand& o : {product.a, product.b}) {
    if (o.tensor == kept) continue;
    Stream stream;
    stream.part = addresses.locate(o);
    all.streams.push_back(stream);
  }
  Program others = program;  // its epilogue without the store of h
  std::erase_if(others.body, [&](const Primitive& p) {
    return std::ranges::any_of(p.accesses(),
                               [&](const Access& a) { return a.operand.tensor == kept; });
  });
  for (const Stream& s : streams_of(others, addresses)) all.streams.push_back(s);
  return stream_walk(all, gpu);
}

ChainEstimate estimate_chain(const Kernel& kernel, const Gpu& gpu, HbmTraffic hbm) {
  const ChainLayout layout = chain_layout(kernel, gpu).value();
  const TensorId kept = handed_over(kernel)->tensor;
  const GemmMainloop& first = chain_product(kernel.phases[0]);
  const GemmMainloop& second = chain_product(kernel.phases[1]);
  const GemmConstants& c = gpu.constants.gemm;
  const double clock = gpu.sm_clock.value();
  constexpr std::int64_t kElement = 2;

  const Bytes weights = checked_product<Bytes>(first.N, first.K, kElement) +
                        checked_product<Bytes>(second.N, second.K, kElement);
  const Bytes operand = checked_product<Bytes>(first.M, first.K, kElement);
  const Bytes parts = checked_product<Bytes>(layout.blocks, second.M * second.N, kChainPartBytes);
  const Bytes moved =
      chain_epilogue_bytes(kernel.phases[0], kept) + chain_epilogue_bytes(kernel.phases[1], kept);
  const Bytes of_block(layout.first_columns * first.K * kElement + operand.value() +
                       layout.columns * second.N * kElement);

  ChainEstimate e;
  e.l2 = weights + Bytes(layout.blocks * operand.value()) + parts + parts + moved;
  // A tile of 16 rows of a weight takes 8 rows of a or h, whether there are so many or not.
  constexpr std::int64_t kWeightRows = 16;
  e.smem = Bytes(weights.value() / kWeightRows * most_chained_rows);
  const double products = 2.0 * static_cast<double>(most_chained_rows) * weights.as_double() /
                          static_cast<double>(kElement);
  e.tensor_time = Seconds(products / (gpu.tensor_bf16.value() * c.tensor_fraction));
  const Seconds fetch(of_block.as_double() / (c.sm_fetch_bytes_per_cycle * clock));
  const double rate = gpu.hbm_bandwidth_sustained.value();
  const double busy =
      std::min(1.0, static_cast<double>(layout.blocks) * c.stream_gb_per_s * 1e9 / rate);
  e.hbm_time = Seconds(
      (hbm.read.as_double() / std::pow(busy, c.concurrency_exponent) + hbm.write.as_double()) /
      (rate * c.hbm_fraction));
  e.l2_time = e.l2 / (gpu.l2_bandwidth * c.own_l2_fraction);
  e.smem_time = Seconds(e.smem.as_double() /
                        (static_cast<double>(gpu.smem_bytes_per_clock * gpu.sm_count) * clock));
  // As the waves of a product: what is near balance disturbs each other.
  const double p = c.overlap_exponent;
  const double together = std::pow(std::pow(e.tensor_time.value(), p) + std::pow(fetch.value(), p) +
                                       std::pow(e.hbm_time.value(), p),
                                   1 / p);
  const Seconds weights_l2 = weights / (gpu.l2_bandwidth * c.own_l2_fraction);
  const Seconds stream = std::max({Seconds(together), weights_l2, e.smem_time});

  // Parts are stored as fast as L2 takes them, and added up as the parts of a product that is split
  // along K are, but in the same launch.
  const Seconds sum = parts / (gpu.l2_bandwidth * c.own_l2_fraction) +
                      reduction_time(parts, Bytes(), gpu) - gpu.tiny_kernel;
  const std::int64_t tiles = second.M * ceil_div(second.N, layout.second_tile().n);
  const Seconds epilogues(moved.as_double() /
                          (c.exposed_epilogue_bytes_per_cycle * clock *
                           static_cast<double>(std::min(layout.blocks, tiles))));
  const Seconds waits = c.start + c.hot_start + gpu.constants.sync.barrier;
  const bool by_hbm = e.hbm_time >= fetch && e.hbm_time >= e.tensor_time;
  e.work = stream + waits + sum + epilogues;
  e.compute = sum + epilogues + (by_hbm ? Seconds() : stream);
  const std::pair<Seconds, Bound> longest =
      std::max({std::pair(stream, by_hbm                  ? Bound::hbm
                                  : fetch > e.tensor_time ? Bound::l2
                                                          : Bound::tensor),
                std::pair(c.start + c.hot_start + gpu.tiny_kernel, Bound::launch),
                std::pair(gpu.constants.sync.barrier + sum, Bound::sync)},
               [](const auto& a, const auto& b) { return a.first < b.first; });
  e.bound = longest.second;
  return e;
}

void describe_chain(const ChainEstimate& chain, KernelEstimate& estimate) {
  estimate.l2 = chain.l2;
  estimate.smem = chain.smem;
  estimate.tensor_time = chain.tensor_time;
  estimate.hbm_time = chain.hbm_time;
  estimate.l2_time = chain.l2_time;
  estimate.smem_time = chain.smem_time;
  estimate.bound = chain.bound;
  estimate.judged_apart = "chain";
}

}  // namespace fuseline

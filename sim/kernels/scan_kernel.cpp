#include "sim/kernels/scan_kernel.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "sim/gpu/plan_target.h"
#include "sim/kernels/stream_kernel.h"
#include "sim/memory/traffic.h"

namespace fuseline {
namespace {

double flops_per_cycle(const Gpu& gpu) {
  const double clock =
      gpu.tensor_clock.value() > 0 ? gpu.tensor_clock.value() : gpu.sm_clock.value();
  return gpu.tensor_bf16.value() / clock / static_cast<double>(gpu.sm_count);
}

// One chunk in a thread block: its products, and what it loads.
struct Chunk {
  Seconds products;
  Seconds transfer;
};

Chunk time_chunk(const ChunkLayout& l, const Gpu& gpu) {
  constexpr std::int64_t T = scan_chunk_tokens;
  // Tiles of 16 x 16 scores on and under the diagonal; the state, the scores and what is added to
  // the state are two 16-bit operands each.
  constexpr std::int64_t tiles = T / 16, seen = tiles * (tiles + 1) / 2 * 16 * 16;
  const std::int64_t flops = 2 * seen * (l.numbers + 2 * l.cols) + 2 * 4 * T * l.cols * l.numbers;
  const std::int64_t bytes = 2 * T * (l.cols + 2 * l.numbers);
  const double clock = gpu.sm_clock.value();
  const double rate = flops_per_cycle(gpu) * gpu.constants.scan.product_fraction;
  return {
      Seconds(static_cast<double>(flops) / rate / clock),
      Seconds(static_cast<double>(bytes) / gpu.constants.attention.block_bytes_per_cycle / clock)};
}

Stream stream_of(const Operand& operand, bool store, const AddressMap& addresses) {
  Stream stream;
  stream.part = addresses.locate(operand);
  stream.store = store;
  return stream;
}

}  // namespace

// The operands and the body as streams over the rows of the result, and the states around them.
ScanWalk scan_walk(const Graph& graph, const Program& program, const AddressMap& addresses,
                   const Gpu& gpu) {
  const auto* m = std::get_if<ScanMainloop>(&program.mainloop);
  FUSELINE_ASSERT(m != nullptr, program.name);
  StreamKernel before, during, after;
  during.rows = m->x.rows;
  during.cols = m->x.cols;
  for (const Operand& o : {m->x, m->log_decay, m->k, m->q})
    during.streams.push_back(stream_of(o, false, addresses));
  if (m->rates) during.streams.push_back(stream_of(*m->rates, false, addresses));
  for (const Stream& s : streams_of(program, addresses)) during.streams.push_back(s);
  const auto state = [&](StreamKernel& part, const std::optional<Operand>& operand, bool store) {
    if (!operand) return;
    part.rows = operand->rows;
    part.cols = operand->cols;
    part.streams.push_back(stream_of(*operand, store, addresses));
  };
  state(before, m->state, false);
  state(after, m->state_after, true);
  ScanWalk scan;
  scan.chunks = chunk_layout(graph, *m, plan_target(gpu).shared_bytes_per_block);
  if (!before.streams.empty()) scan.before = stream_walk(before, gpu);
  scan.during = stream_walk(during, gpu);
  if (!after.streams.empty()) scan.after = stream_walk(after, gpu);
  scan.x = addresses.locate(m->x);
  scan.k = addresses.locate(m->k);
  scan.q = addresses.locate(m->q);
  return scan;
}

WalkTraffic walk(const ScanWalk& scan, L2Cache& cache) {
  for (const StreamWalk* part : {&scan.before, &scan.during, &scan.after}) touch_all(*part, cache);
  return {{}, cache.take_traffic(), {}};
}

void describe(const ScanWalk& scan, WalkKey& key) {
  for (const StreamWalk* part : {&scan.before, &scan.during, &scan.after}) describe(*part, key);
}

ScanTime chunk_time(const ScanShape& s, const ChunkLayout& layout, const Gpu& gpu) {
  const auto chunks = static_cast<double>(ceil_div(s.tokens, scan_chunk_tokens));
  const auto waves = static_cast<double>(ceil_div(chunk_blocks(s, layout), gpu.sm_count));
  const Chunk chunk = time_chunk(layout, gpu);
  const Seconds step = std::max(chunk.products, chunk.transfer) + gpu.constants.scan.chunk;
  return {waves * chunks * chunk.products, waves * chunks * step};
}

ScanTime walk_time(const ScanShape& s, const Gpu& gpu) {
  const ScanConstants& c = gpu.constants.scan;
  const double elements = static_cast<double>(
      checked_product<Flops>(s.batch * s.heads, s.head_width * s.state_width, s.tokens).value());
  return {Seconds(elements * c.walk_instructions / issue_rate(gpu)),
          static_cast<double>(s.tokens) * c.step};
}

ScanTime prefix_time(const ScanShape& s, const Gpu& gpu) {
  const ScanConstants& c = gpu.constants.scan;
  const double elements = static_cast<double>(
      checked_product<Flops>(s.batch * s.heads, s.head_width * s.state_width, s.tokens).value());
  const std::int64_t heads = s.batch * s.heads;
  const std::int64_t at_once = gpu.sm_count * gpu.constants.attention.blocks_per_sm;
  const double busy = std::min(1.0, static_cast<double>(heads) / static_cast<double>(gpu.sm_count));
  // One exponential, two products, and the shuffles and sums of the prefix.
  const Seconds compute(elements * c.prefix_instructions / (issue_rate(gpu) * busy));
  const std::int64_t chunks = ceil_div(s.tokens, c.prefix_tokens);
  const Seconds chain = static_cast<double>(ceil_div(heads, at_once) * chunks) * c.chunk;
  return {compute, chain};
}

ScanEstimate estimate_scan(const Program& program, const ScanWalk& walk, const Gpu& gpu,
                           HbmTraffic hbm, bool library) {
  const auto* m = std::get_if<ScanMainloop>(&program.mainloop);
  FUSELINE_ASSERT(m != nullptr, program.name);
  ScanEstimate e;
  e.hbm = hbm;
  Bytes streamed;
  for (const StreamWalk* part : {&walk.before, &walk.during, &walk.after})
    for (const Stream& s : part->streams) streamed += s.bytes();
  const CachedSlice& x = walk.x;
  const CachedSlice& k = walk.k;
  const CachedSlice& q = walk.q;
  const std::int64_t again = m->shape.heads / m->shape.groups - 1;
  const Bytes shared = checked_product<Bytes>(k.rows, k.cols, k.matrix.element) +
                       checked_product<Bytes>(q.rows, q.cols, q.matrix.element);
  e.l2 = streamed + again * shared;
  e.smem = checked_product<Bytes>(x.rows, x.cols, x.matrix.element) + (again + 1) * shared;

  const StreamConstants& c = gpu.constants.stream;
  e.hbm_time = (e.hbm.read + e.hbm.write) / (gpu.hbm_bandwidth_sustained * c.hbm_fraction);
  e.l2_time = e.l2 / (gpu.l2_bandwidth * c.l2_fraction);
  const bool prefix = library && m->has_rates_of_columns();
  const ScanTime t = walk.chunks ? chunk_time(m->shape, *walk.chunks, gpu)
                     : prefix    ? prefix_time(m->shape, gpu)
                                 : walk_time(m->shape, gpu);
  e.tensor_time = t.compute;
  e.wait_time = t.chain;
  const Seconds start = gpu.constants.attention.start;  // first loads and last stores, as there
  const Seconds memory = std::max(e.hbm_time, e.l2_time);
  const Seconds longest = std::max({t.compute, t.chain, memory});
  e.work = start + longest;
  if (longest <= start) {
    e.bound = Bound::launch;
  } else if (longest == memory) {
    e.bound = memory == e.hbm_time ? Bound::hbm : Bound::l2;
  } else {
    e.bound = longest == t.compute || t.compute > 0.5 * t.chain ? Bound::tensor : Bound::sync;
  }
  return e;
}

}  // namespace fuseline

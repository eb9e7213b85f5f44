#include "sim/kernels/scan_kernel.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/error.h"
#include "sim/gpu/plan_target.h"
#include "sim/kernels/stream_kernel.h"
#include "sim/memory/traffic.h"

namespace fuseline {
namespace {

constexpr std::int64_t kFp32Bytes = 4;
constexpr std::int64_t kWarpThreads = 32;
constexpr std::int64_t kSchedulers = 4;  // of a multiprocessor
// A thread of our own gradient takes all the registers that one can have.
constexpr std::int64_t kThreadsWithAllRegisters = 256;

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

// The gradient of a library, of which no time was measured: the scores again, those of dy with x,
// and their products with k, q and dy; four products with the state and what the loss says of it.
// It loads dy too, and adds to the gradients of k and q in fp32. Our own gradient is no such
// kernel.
Chunk time_chunk(const ChunkLayout& l, const Gpu& gpu, bool gradient) {
  constexpr std::int64_t T = scan_chunk_tokens;
  // Tiles of 16 x 16 scores on and under the diagonal; the state, the scores and what is added to
  // the state are two 16-bit operands each.
  constexpr std::int64_t tiles = T / 16, seen = tiles * (tiles + 1) / 2 * 16 * 16;
  const std::int64_t P = l.cols, N = l.numbers;
  const std::int64_t flops = gradient ? 2 * seen * (5 * N + 3 * P) + 2 * 8 * T * P * N
                                      : 2 * seen * (N + 2 * P) + 2 * 4 * T * P * N;
  const std::int64_t bytes =
      gradient ? T * (2 * (2 * P + 2 * N) + 4 * N * kFp32Bytes) : 2 * T * (P + 2 * N);
  const double clock = gpu.sm_clock.value();
  const double rate = flops_per_cycle(gpu) * gpu.constants.scan.product_fraction;
  return {
      Seconds(static_cast<double>(flops) / rate / clock),
      Seconds(static_cast<double>(bytes) / gpu.constants.attention.block_bytes_per_cycle / clock)};
}

std::int64_t blocks_on_sm(const ScanGradientLayout& l) {
  return std::max<std::int64_t>(1, kThreadsWithAllRegisters / l.threads);
}

// What our own gradient leaves in memory: the states ahead of every segment, and what each thread
// block has of dk and dq until a second kernel adds it up.
struct GradientWorkspace {
  Bytes states, keys;
};
GradientWorkspace workspace_of(const ScanMainloop& m, const ScanGradientLayout& l) {
  const std::int64_t blocks = scan_gradient_blocks(m, l);
  const std::int64_t segments = ceil_div(m.shape.tokens, scan_segment_tokens);
  return {checked_product<Bytes>(blocks * segments, l.state_numbers(), kFp32Bytes),
          checked_product<Bytes>(blocks * 2 * m.shape.tokens, m.shape.state_width, kFp32Bytes)};
}

Stream stream_of(const Operand& operand, bool store, const AddressMap& addresses) {
  Stream stream;
  stream.part = addresses.locate(operand);
  stream.store = store;
  return stream;
}

// Beside the result, which a scan without a body stores as well.
void add_body(const Program& program, const AddressMap& addresses, const CachedSlice& x,
              ScanWalk& scan) {
  bool result = true;
  for (const Stream& s : streams_of(program, addresses)) {
    const bool of_scan =
        s.store ? std::exchange(result, false)
                : s.part.matrix.tensor == x.matrix.tensor && s.part.col_begin == x.col_begin;
    if (of_scan || s.vector || s.repeated) continue;
    scan.body += s.bytes();
    scan.body_loads |= !s.store;
  }
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
  if (m->gradient) {
    const ScanGradient& g = *m->gradient;
    during.streams.push_back(stream_of(g.dy, false, addresses));
    if (g.states) during.streams.push_back(stream_of(*g.states, false, addresses));
    for (const Operand& o : {g.d_decay, g.dk, g.dq})
      during.streams.push_back(stream_of(o, true, addresses));
    if (g.d_rates) during.streams.push_back(stream_of(*g.d_rates, true, addresses));
  }
  const auto state = [&](StreamKernel& part, const std::optional<Operand>& operand, bool store) {
    if (!operand) return;
    part.rows = operand->rows;
    part.cols = operand->cols;
    part.streams.push_back(stream_of(*operand, store, addresses));
  };
  state(before, m->state, false);
  if (m->keeps_states())
    during.streams.push_back(stream_of(*m->state_after, true, addresses));
  else
    state(after, m->state_after, true);
  ScanWalk scan;
  scan.chunks = chunk_layout(graph, *m, plan_target(gpu).shared_bytes_per_block, gpu.sm_count);
  if (!before.streams.empty()) scan.before = stream_walk(before, gpu);
  scan.during = stream_walk(during, gpu);
  if (!after.streams.empty()) scan.after = stream_walk(after, gpu);
  scan.x = addresses.locate(m->x);
  scan.k = addresses.locate(m->k);
  scan.q = addresses.locate(m->q);
  add_body(program, addresses, scan.x, scan);
  return scan;
}

WalkTraffic walk(const ScanWalk& scan, L2Cache& cache) {
  for (const StreamWalk* part : {&scan.before, &scan.during, &scan.after}) touch_all(*part, cache);
  return {{}, cache.take_traffic(), {}, 0};
}

void describe(const ScanWalk& scan, WalkKey& key) {
  for (const StreamWalk* part : {&scan.before, &scan.during, &scan.after}) describe(*part, key);
}

ScanTime chunk_time(const ScanShape& s, const ChunkLayout& layout, const Gpu& gpu, bool gradient) {
  const auto chunks = static_cast<double>(ceil_div(s.tokens, scan_chunk_tokens));
  const auto waves = static_cast<double>(ceil_div(chunk_blocks(s, layout), gpu.sm_count));
  const Chunk chunk = time_chunk(layout, gpu, gradient);
  const Seconds step = std::max(chunk.products, chunk.transfer) + gpu.constants.scan.chunk;
  return {waves * chunks * chunk.products, waves * chunks * step};
}

ScanTime walk_time(const ScanShape& s, const Gpu& gpu, bool gradient) {
  const ScanConstants& c = gpu.constants.scan;
  const double elements = static_cast<double>(
      checked_product<Flops>(s.batch * s.heads, s.head_width * s.state_width, s.tokens).value());
  // The states again and the way back: 14 operations an element in place of 5.
  const double instructions = c.walk_instructions * (gradient ? 14.0 / 5.0 : 1.0);
  const std::int64_t walks = gradient ? 2 : 1;
  return {Seconds(elements * instructions / issue_rate(gpu)),
          static_cast<double>(walks * s.tokens) * c.step};
}

ScanTime own_gradient_time(const ScanMainloop& m, const ScanGradientLayout& l, const Gpu& gpu) {
  const ScanConstants& c = gpu.constants.scan;
  const std::int64_t blocks = scan_gradient_blocks(m, l);
  const std::int64_t on_sm = blocks_on_sm(l);
  const auto waves = static_cast<double>(ceil_div(blocks, gpu.sm_count * on_sm));
  const std::int64_t together = std::min(on_sm, ceil_div(blocks, gpu.sm_count));
  const auto warps =
      static_cast<double>(ceil_div(together * l.threads / kWarpThreads, kSchedulers));
  const double numbers = static_cast<double>(l.columns) * l.numbers;
  const Seconds issue(warps * numbers * c.gradient_instructions / gpu.sm_clock.value());
  const double tokens = waves * static_cast<double>(m.shape.tokens);
  return {tokens * issue, tokens * (issue + c.gradient_step)};
}

ScanTime prefix_time(const ScanShape& s, const Gpu& gpu, bool gradient) {
  const ScanConstants& c = gpu.constants.scan;
  const double elements = static_cast<double>(
      checked_product<Flops>(s.batch * s.heads, s.head_width * s.state_width, s.tokens).value());
  const std::int64_t heads = s.batch * s.heads;
  const std::int64_t at_once = gpu.sm_count * gpu.constants.attention.blocks_per_sm;
  const double busy = std::min(1.0, static_cast<double>(heads) / static_cast<double>(gpu.sm_count));
  // One exponential, two products, and the shuffles and sums of the prefix.
  const double instructions = gradient ? 2 * c.prefix_instructions + 7 : c.prefix_instructions;
  const Seconds compute(elements * instructions / (issue_rate(gpu) * busy));
  const std::int64_t chunks = ceil_div(s.tokens, c.prefix_tokens);
  const std::int64_t walks = gradient ? 2 : 1;
  const Seconds chain = static_cast<double>(ceil_div(heads, at_once) * chunks * walks) * c.chunk;
  return {compute, chain};
}

namespace {

// What the body adds. In chunks the warps that run it wait for every row's loads, so its bytes come
// on top of the step. A walk stops for the body's loads once in a while.
Seconds body_time(const ScanMainloop& m, const ScanWalk& walk,
                  const std::optional<ScanGradientLayout>& gradient, const Gpu& gpu) {
  const ScanConstants& c = gpu.constants.scan;
  if (walk.chunks && !gradient) {
    const std::int64_t blocks = chunk_blocks(m.shape, *walk.chunks);
    const auto waves = static_cast<double>(ceil_div(blocks, gpu.sm_count));
    const double bytes = walk.body.as_double() / static_cast<double>(blocks);
    return Seconds(waves * bytes / c.body_bytes_per_cycle / gpu.sm_clock.value());
  }
  if (!walk.body_loads) return {};
  const std::int64_t waves = gradient ? ceil_div(scan_gradient_blocks(m, *gradient),
                                                 gpu.sm_count * blocks_on_sm(*gradient))
                                      : 1;
  return static_cast<double>(waves * m.shape.tokens) * c.body_step;
}

// Adds what the workspace moves, and returns the time of the kernel that adds up what thread blocks
// have of dk and dq. More than L2 holds has left it before it is read again.
Seconds leave_workspace(const ScanMainloop& m, const ScanGradientLayout& l, const Gpu& gpu,
                        ScanEstimate& e) {
  const StreamConstants& c = gpu.constants.stream;
  const auto [states, keys] = workspace_of(m, l);
  e.l2 += 2 * (states + keys);
  const bool leaves = states + keys > effective_l2_capacity(gpu);
  const BytesPerSecond hbm_rate = gpu.hbm_bandwidth_sustained * c.hbm_fraction;
  if (leaves) {
    e.hbm.read += states + keys;
    e.hbm.write += states + keys;
    e.hbm_time += (states + states + keys) / hbm_rate;
  }
  return gpu.tiny_kernel + gpu.constants.launch.gap +
         (leaves ? keys / hbm_rate : keys / (gpu.l2_bandwidth * c.l2_fraction));
}

}  // namespace

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
  if (m->gradient) {  // heads and sequences add in L2: they load and store
    const ScanGradient& g = *m->gradient;
    e.l2 += 2 * again * checked_product<Bytes>(g.dk.rows, g.dk.cols + g.dq.cols, kFp32Bytes);
    if (g.d_rates)
      e.l2 += 2 * (m->shape.batch - 1) *
              checked_product<Bytes>(g.d_rates->rows, g.d_rates->cols, kFp32Bytes);
  }
  e.smem = checked_product<Bytes>(x.rows, x.cols, x.matrix.element) + (again + 1) * shared;

  const StreamConstants& c = gpu.constants.stream;
  e.hbm_time = (e.hbm.read + e.hbm.write) / (gpu.hbm_bandwidth_sustained * c.hbm_fraction);
  e.l2_time = e.l2 / (gpu.l2_bandwidth * c.l2_fraction);
  const bool back = m->gradient.has_value();
  const bool prefix = library && m->has_rates_of_columns();
  const std::optional<ScanGradientLayout> own =
      back && !library ? scan_gradient_layout(*m) : std::nullopt;
  Seconds second_kernel;
  if (own) second_kernel = leave_workspace(*m, *own, gpu, e);
  ScanTime t = own           ? own_gradient_time(*m, *own, gpu)
               : walk.chunks ? chunk_time(m->shape, *walk.chunks, gpu, back)
               : prefix      ? prefix_time(m->shape, gpu, back)
                             : walk_time(m->shape, gpu, back);
  if (!library) t.chain += body_time(*m, walk, own, gpu);
  e.tensor_time = t.compute;
  e.wait_time = t.chain;
  const Seconds start = gpu.constants.attention.start;  // first loads and last stores, as there
  const Seconds memory = std::max(e.hbm_time, e.l2_time);
  const Seconds longest = std::max({t.compute, t.chain, memory});
  e.work = start + longest + second_kernel;
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

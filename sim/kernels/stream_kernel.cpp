#include "sim/kernels/stream_kernel.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "model/operators/attributes.h"
#include "model/operators/operator.h"
#include "sim/kernels/chained_steps.h"
#include "sim/kernels/column_walk.h"
#include "sim/kernels/routing_time.h"
#include "sim/kernels/row_instructions.h"
#include "sim/kernels/stream_costs.h"

namespace fuseline {
namespace {

std::int64_t resident_blocks(const StreamKernel& kernel, const Gpu& gpu) {
  const Residency r = residency(kernel.implementation, gpu.constants.stream);
  return gpu.sm_count * std::max<std::int64_t>(1, gpu.max_threads_per_sm / r.threads);
}

// Rows that all resident thread blocks cover together.
std::int64_t rows_at_once(const StreamKernel& kernel, const Gpu& gpu) {
  const Residency r = residency(kernel.implementation, gpu.constants.stream);
  const std::int64_t blocks = resident_blocks(kernel, gpu);
  if (kernel.whole_rows) return blocks;
  return std::max<std::int64_t>(1, blocks * r.threads * r.per_thread / kernel.cols);
}

struct RowRange {
  std::int64_t begin, end;
};

void touch(const Stream& stream, RowRange rows, L2Cache& cache) {
  const CachedSlice& part = stream.part;
  const auto move = [&](std::int64_t col_begin, std::int64_t col_end) {
    if (stream.store) {
      cache.write(part.matrix, rows.begin, rows.end, col_begin, col_end);
    } else {
      cache.read(part.matrix, rows.begin, rows.end, col_begin, col_end);
    }
  };
  const ColumnPart& moved = stream.moved;
  if (moved.group == 0) {
    move(part.col_begin, part.col_begin + part.cols);
    return;
  }
  // Chunks are wider than the gaps between columns of a part.
  const std::int64_t reached = (moved.count - 1) * moved.step + 1;
  for (std::int64_t col = 0; col + moved.group <= part.cols; col += moved.group) {
    const std::int64_t begin = part.col_begin + col + moved.begin;
    move(begin, begin + reached);
  }
}

// Rows [begin, end) of `rows` kernel rows in this stream.
void touch_part(const Stream& stream, std::int64_t begin, std::int64_t end, std::int64_t rows,
                L2Cache& cache) {
  const std::int64_t height = stream.part.rows;
  if (stream.vector) {
    touch(stream, {0, height}, cache);
  } else if (stream.repeated) {
    if (end - begin >= height) {
      touch(stream, {0, height}, cache);
    } else {
      const std::int64_t first = begin % height;
      touch(stream, {first, std::min(height, first + end - begin)}, cache);
    }
  } else {
    const RowRange range{begin * height / rows, end * height / rows};
    if (range.begin < range.end) touch(stream, range, cache);
  }
}

// Row kernels take a row in steps of all their threads; the last step is partly idle, and one more
// goes to combining the threads' sums. `padding`: elements issued per element.
struct RowSteps {
  double count = 0;
  double padding = 1;
};

RowSteps row_steps(const StreamKernel& kernel, const Gpu& gpu) {
  if (!kernel.whole_rows) return {};
  const Residency r = residency(kernel.implementation, gpu.constants.stream);
  const std::int64_t per_step = r.threads * r.per_thread;
  const double count = static_cast<double>(ceil_div(kernel.cols, per_step));
  if (kernel.implementation != Implementation::row_norm)
    return {count, gpu.constants.stream.generated_row_padding};
  return {count, (count + 1) * static_cast<double>(per_step) / static_cast<double>(kernel.cols)};
}

// `missing`: of what a row loads, the share that L2 does not hold.
Seconds latency_of(const StreamKernel& kernel, const RowSteps& steps, double missing,
                   const Gpu& gpu) {
  const StreamConstants& c = gpu.constants.stream;
  // Dependent steps wait for HBM where the row is not in L2.
  const double waiting = 1 + c.miss_wait * missing;
  switch (kernel.implementation) {
    case Implementation::strided:
    case Implementation::transposing:
    case Implementation::scatter_add:
      return c.strided_latency;
    case Implementation::concat:
      return c.concat_latency_fraction * c.strided_latency;
    case Implementation::framework_reduce: {
      // Few rows share one block and finish sooner: reduce_least and an equal part of the rest per
      // row.
      const double rows = std::min(c.reduce_rows, static_cast<double>(kernel.rows));
      const Seconds rest = c.reduce_latency - c.reduce_least;
      return waiting * std::min(c.reduce_latency, c.reduce_least + rest * (rows / c.reduce_rows));
    }
    case Implementation::row_norm:
      return waiting * (c.row_start + kernel.step_factor * steps.count * c.row_step);
    case Implementation::resident_row: {
      // Loads together, then one reduction, which waits for nothing in memory.
      const double loads = std::min(1.0, c.resident_row_steps);
      return waiting * (c.row_start + loads * c.row_step) +
             (c.resident_row_steps - loads) * c.row_step;
    }
    case Implementation::generated_reduction:
      return waiting * (c.generated_row_start + steps.count * c.row_step);
    case Implementation::finisher:
      return waiting * (c.row_start + c.row_step);
    default:
      return waiting * routing_time(kernel, gpu);
  }
}

// A thread block that walks down rows and carries the sums of their columns takes one after the
// other: a row's dependent steps, its bytes on their way to one multiprocessor, and what its
// threads issue. So many thread blocks as there are partials, however many rows the GPU could hold.
Seconds walk_down(const StreamKernel& kernel, Bytes moved, const Gpu& gpu) {
  if (kernel.walked_rows == 0) return {};
  constexpr std::int64_t kIssuers = 4, kLanes = 32;
  // Such a thread takes up to 128 registers.
  constexpr std::int64_t kResidentThreads = 512;
  const StreamConstants& c = gpu.constants.stream;
  const double clock = gpu.sm_clock.value();
  const std::int64_t rows = std::min(kernel.walked_rows, kernel.rows);
  const std::int64_t blocks = ceil_div(kernel.rows, kernel.walked_rows);
  const std::int64_t threads = kernel.walkers.threads;
  const std::int64_t on_sm = std::max<std::int64_t>(1, kResidentThreads / threads);
  const auto waves = static_cast<double>(ceil_div(blocks, gpu.sm_count * on_sm));
  const std::int64_t together = std::min(on_sm, ceil_div(blocks, gpu.sm_count));
  const double share = std::max(1.0, static_cast<double>(together * threads / kLanes) / kIssuers);
  const double columns = static_cast<double>(8 * kernel.walkers.units);
  const double cycles =
      columns * kernel.instructions * share + static_cast<double>(together) * moved.as_double() /
                                                  static_cast<double>(kernel.rows) /
                                                  gpu.constants.attention.block_bytes_per_cycle;
  const Seconds row =
      static_cast<double>(kernel.walked_steps) * c.row_step + Seconds(cycles / clock);
  return c.row_start + waves * static_cast<double>(rows) * row;
}

bool own_stream(Implementation implementation) {
  return implementation == Implementation::vectorized ||
         implementation == Implementation::resident_row ||
         implementation == Implementation::finisher;
}

// Of what one row loads, the share that L2 does not hold, if each of the first rows comes on an SM
// of its own. A norm's weight is the same for all of them and is missed first: nothing else has
// read it since the layer before.
double missing_of_row(const StreamKernel& kernel, Bytes hbm_read) {
  double vectors = 0, rows = 0;
  for (const Stream& s : kernel.streams) {
    if (s.store) continue;
    const bool shared = s.vector || (s.part.rows == 1 && kernel.rows > 1);
    (shared ? vectors : rows) += s.bytes().as_double();
  }
  const double vectors_missed = std::min(vectors, hbm_read.as_double());
  const double rows_missed = std::min(rows, hbm_read.as_double() - vectors_missed);
  const double count = static_cast<double>(std::max<std::int64_t>(1, kernel.rows));
  return (vectors_missed + rows_missed / count) / std::max(1.0, vectors + rows / count);
}

}  // namespace

std::int64_t StreamKernel::elements() const {
  if (whole_rows) return checked_product<Bytes>(rows, cols).value();
  std::int64_t stored = 0;
  std::int64_t loaded = 0;
  for (const Stream& s : streams) {
    if (s.vector || s.repeated) continue;
    const std::int64_t n = s.bytes().value() / s.part.matrix.element;
    if (s.store) {
      stored += n;
    } else {
      loaded = std::max(loaded, n);
    }
  }
  return std::max(stored, loaded);
}

StreamKernel stream_kernel_of(const Graph& graph, const Kernel& kernel, const Program& program,
                              const AddressMap& addresses, const Gpu& gpu) {
  StreamKernel result;
  result.implementation = kernel.implementation;
  result.streams = streams_of(program, addresses);
  result.instructions = instructions_of(graph, kernel, gpu.constants.stream);
  if (own_stream(kernel.implementation)) result.chained = chained_steps_of(program);
  // Welford's update divides in every step.
  if (has_cost(graph, kernel, {StreamCost::welford})) {
    result.step_factor = gpu.constants.stream.layer_norm_step_factor;
  }
  if (const auto* row = std::get_if<RowMainloop>(&program.mainloop)) {
    result.rows = row->rows;
    result.cols = row->cols;
    result.whole_rows = true;
    if (walks_down_rows(program)) {
      result.walked_rows = partial_tile;
      result.walked_steps = row_steps_of(program);
      result.walkers = row_threads(program, row->rows, row->cols, true);
    } else if (kernel.implementation == Implementation::resident_row && leaves_only_sums(program)) {
      // The constant is a norm's, fitted together with the rest of its time. Counted like this a
      // norm has 23 to 27.
      result.instructions = row_instructions(program, row->rows, row->cols);
    }
  } else {
    const auto* stream = std::get_if<StreamMainloop>(&program.mainloop);
    FUSELINE_ASSERT(stream != nullptr, program.name);
    result.rows = stream->rows;
    result.cols = stream->cols;
    if (own_stream(kernel.implementation) && sums_columns(program)) {
      result.columns = column_threads(program, stream->rows, stream->cols);
      result.column_sums = column_sums(program);
      result.column_terms = std::max(loaded_tiles(program), result.column_sums.all());
      result.instructions =
          gpu.constants.stream.column_instructions * static_cast<double>(result.column_terms);
    }
  }
  if (kernel.implementation == Implementation::row_norm) {
    const Op& norm = graph.op(kernel.ops.back());
    const auto* heads = norm.attributes.get<HeadNorm>();
    result.row_blocks = result.rows;
    if (heads != nullptr)
      result.row_blocks = norm.reads[0].rows * (norm.reads[0].cols / heads->head_width);
  }
  return result;
}

StreamKernel stream_kernel_of(const FrameworkLaunch& launch, const Kernel& kernel,
                              const AddressMap& addresses, const Gpu& gpu) {
  StreamKernel result;
  result.implementation = launch.implementation;
  for (const LaunchAccess& access : launch.moved) {
    Stream stream;
    stream.part = addresses.locate(kernel, access);
    stream.store = access.store;
    result.streams.push_back(stream);
  }
  if (!result.streams.empty()) {
    result.rows = result.streams.front().part.rows;
    result.cols = result.streams.front().part.cols;
  }
  result.each = launch.each;
  result.instructions = instructions_of(launch.implementation, gpu.constants.stream);
  if (!routes(launch.implementation)) result.instructions *= static_cast<double>(launch.each);
  return result;
}

double issue_rate(const Gpu& gpu) {
  return static_cast<double>(gpu.sm_count) * gpu.constants.stream.issue_lanes *
         gpu.sm_clock.value();
}

double l2_crossing(const Gpu& gpu) {
  return 2.0 - 1.0 / static_cast<double>(std::max<std::int64_t>(1, gpu.l2_partitions));
}

StreamWalk stream_walk(const StreamKernel& kernel, const Gpu& gpu) {
  return {kernel.streams, kernel.rows, rows_at_once(kernel, gpu)};
}

double touch_all(const StreamWalk& kernel, L2Cache& cache) {
  std::vector<std::int64_t> missed(kernel.streams.size());
  // Rows per step, so that a step covers whole chunks also of a part whose rows hold several of the
  // kernel's (heads side by side).
  std::int64_t step = kChunkEdge;
  for (const Stream& stream : kernel.streams) {
    if (stream.vector || stream.repeated) continue;
    step = std::max(step, kChunkEdge * ceil_div(kernel.rows, stream.part.rows));
  }
  step = std::min(step, std::max(kChunkEdge, kernel.rows));
  const std::int64_t at_once = std::max(step, kernel.rows_at_once / step * step);
  Bytes asked;
  for (const Stream& stream : kernel.streams) asked += stream.bytes();
  for (std::int64_t first = 0; first < kernel.rows; first += at_once) {
    const std::int64_t last = std::min(kernel.rows, first + at_once);
    for (const bool store : {false, true}) {
      for (std::int64_t row = first; row < last; row += step) {
        for (std::size_t i = 0; i < kernel.streams.size(); ++i) {
          const Stream& stream = kernel.streams[i];
          if (stream.store != store) continue;
          const Bytes before = cache.read_since_taken();
          touch_part(stream, row, std::min(last, row + step), kernel.rows, cache);
          missed[i] += (cache.read_since_taken() - before).value();
        }
      }
    }
    cache.step_ends({.kind = WalkStep::Kind::rows,
                     .begin = first,
                     .end = last,
                     .of = kernel.rows,
                     .asked = Bytes(static_cast<std::int64_t>(asked.as_double() *
                                                              static_cast<double>(last - first) /
                                                              static_cast<double>(kernel.rows)))});
  }
  double most = 0;
  for (std::size_t i = 0; i < kernel.streams.size(); ++i) {
    const double bytes = std::max(1.0, kernel.streams[i].bytes().as_double());
    most = std::max(most, std::min(1.0, static_cast<double>(missed[i]) / bytes));
  }
  return most;
}

WalkTraffic walk(const StreamWalk& streams, L2Cache& cache) {
  const double most_missed = touch_all(streams, cache);
  return {{}, cache.take_traffic(), {}, most_missed};
}

void describe(const CachedSlice& slice, WalkKey& key) {
  key.matrix(slice.matrix);
  key.number(slice.rows);
  key.number(slice.col_begin);
  key.number(slice.cols);
}

void describe(const StreamWalk& streams, WalkKey& key) {
  key.kind(WalkKey::Kind::streams);
  key.number(streams.rows);
  key.number(streams.rows_at_once);
  key.number(std::ssize(streams.streams));
  for (const Stream& s : streams.streams) {
    describe(s.part, key);
    key.number((s.store ? 1 : 0) + (s.repeated ? 2 : 0) + (s.vector ? 4 : 0));
    for (const std::int64_t n : {s.moved.group, s.moved.begin, s.moved.step, s.moved.count})
      key.number(n);
  }
}

StreamEstimate simulate_stream(const StreamKernel& kernel, const Gpu& gpu, L2Cache& cache) {
  return estimate_stream(kernel, gpu, walk(stream_walk(kernel, gpu), cache));
}

StreamEstimate estimate_stream(const StreamKernel& kernel, const Gpu& gpu,
                               const WalkTraffic& traffic) {
  const HbmTraffic hbm = traffic.hbm;
  const StreamConstants& c = gpu.constants.stream;
  StreamEstimate estimate;
  estimate.hbm = hbm;
  Bytes moved;
  for (const Stream& s : kernel.streams) moved += s.bytes();
  estimate.l2 = Bytes(static_cast<std::int64_t>(moved.as_double() * l2_crossing(gpu)));

  const double elements = static_cast<double>(kernel.elements());
  estimate.hbm_time =
      (estimate.hbm.read + estimate.hbm.write) / (gpu.hbm_bandwidth_sustained * c.hbm_fraction);
  estimate.l2_time = estimate.l2 / (gpu.l2_bandwidth * c.l2_fraction);
  // A byte takes its time where it is found: in HBM, or in L2.
  const double found_in_l2 =
      std::max(0.0, 1.0 - (estimate.hbm.read + estimate.hbm.write).as_double() /
                              std::max(1.0, moved.as_double()));
  // All of them pass through L2.
  const Seconds bandwidth =
      std::max(estimate.hbm_time + found_in_l2 * estimate.l2_time, estimate.l2_time);

  // A grid smaller than the GPU leaves SMs idle.
  constexpr double kLeastBusy = 1e-3;  // keeps an empty kernel's time finite
  const Residency r = residency(kernel.implementation, gpu.constants.stream);
  const double blocks = kernel.whole_rows
                            ? static_cast<double>(kernel.rows)
                            : elements / static_cast<double>(r.threads * r.per_thread);
  const double busy = std::clamp(blocks / static_cast<double>(gpu.sm_count), kLeastBusy, 1.0);
  const RowSteps steps = row_steps(kernel, gpu);
  estimate.issue_time =
      Seconds(elements * kernel.instructions * steps.padding / (issue_rate(gpu) * busy));

  estimate.latency =
      latency_of(kernel, steps, kernel.whole_rows ? missing_of_row(kernel, hbm.read) : 0.0, gpu);
  const Seconds streaming = std::max(bandwidth, estimate.issue_time);
  // A framework's norm has a thread block a row, or a head of a row: where these are short, the
  // blocks that come and go take longer than the bytes.
  const double turns =
      static_cast<double>(kernel.row_blocks) / static_cast<double>(resident_blocks(kernel, gpu));
  estimate.work = std::max({streaming, estimate.latency, turns * c.row_block});
  if (kernel.implementation == Implementation::resident_row) {
    // Many rows are in flight and hide each other's waiting, but for the first and the last ones.
    const double waves =
        static_cast<double>(kernel.rows) / static_cast<double>(rows_at_once(kernel, gpu));
    estimate.work = streaming + estimate.latency * std::clamp(waves, 1.0, c.exposed_row_waves);
    // The steps of a row that no other follows contain what its threads issue.
    if (waves < 1) estimate.work -= (1 - waves) * std::min(streaming, estimate.latency);
  } else if (kernel.whole_rows) {
    estimate.work += c.miss_exposed * std::min(estimate.hbm_time, estimate.latency);
  } else {
    estimate.work += traffic.most_missed * c.ramp;
  }
  if (kernel.columns.threads > 0) {
    const ColumnWalk down = walk_columns(kernel, traffic.most_missed, gpu);
    estimate.latency = std::max(estimate.latency, down.steps + down.ends);
    estimate.work = std::max(streaming, down.steps) + down.ends;
  }
  const Seconds chain = time_of_chain(kernel, gpu);
  estimate.latency += chain;
  estimate.work += chain;
  const Seconds walk = walk_down(kernel, moved, gpu);
  estimate.latency = std::max(estimate.latency, walk);
  estimate.work = std::max(estimate.work, walk);
  if (streaming <= gpu.tiny_kernel + estimate.latency) {
    estimate.bound = Bound::launch;
  } else if (streaming == estimate.issue_time) {
    estimate.bound = Bound::smem;
  } else {
    estimate.bound = estimate.hbm_time >= found_in_l2 * estimate.l2_time ? Bound::hbm : Bound::l2;
  }
  return estimate;
}

}  // namespace fuseline

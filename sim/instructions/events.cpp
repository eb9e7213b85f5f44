#include "sim/instructions/events.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace fuseline {

namespace {

constexpr std::int64_t kElement = 2;  // bytes of weights, keys and values in memory

struct Slice {
  Bytes bytes;
  CounterRange waits;  // of its operand
};

// The slices of one instruction; as many as the executor and the kernel have.
std::vector<Slice> slices_of(const BlockInstructions& all, const Instruction& i) {
  std::vector<Slice> slices;
  const auto cut = [&](std::int64_t extent, std::int64_t size, std::int64_t row_bytes) {
    for (std::int64_t at = 0; at < extent; at += size) {
      const std::int64_t count = std::min(size, extent - at);
      Slice slice{Bytes(count * row_bytes), {}};
      if (i.operand.count > 0) {
        const std::int64_t first = at / i.operand_columns;
        const std::int64_t last = (at + count - 1) / i.operand_columns;
        slice.waits = {i.operand.first + static_cast<std::int32_t>(first),
                       static_cast<std::int32_t>(last - first + 1)};
      }
      slices.push_back(slice);
    }
  };
  if (is_product(i.step))
    cut(operand_of(all.block, i.step).cols, all.sizes.slice_columns, i.count * kElement);
  if (i.step == Step::attend) cut(i.count, all.keys_of_slice(), 2 * all.block.width * kElement);
  return slices;
}

// One SM: what its loader and its consumer have come to.
struct Sm {
  std::size_t loading = 0, consuming = 0;  // instructions
  std::size_t loaded = 0, consumed = 0;    // slices of them
  Seconds load_time, consume_time;         // until when they are busy
  std::vector<Seconds> arrived, freed;     // of all slices so far
};

class Events {
 public:
  Events(const BlockInstructions& all, const Gpu& gpu, int ring)
      : all_(all),
        ring_(static_cast<std::size_t>(ring)),
        share_(gpu.hbm_bandwidth_sustained.value() / all.sizes.sms),
        shared_(static_cast<double>(gpu.smem_bytes_per_clock) * gpu.sm_clock.value()),
        barrier_(gpu.constants.sync.barrier),
        sms_(all.sms.size()),
        counters_(all.counters.size()) {
    result_.sms.resize(all.sms.size());
    for (Sm& sm : sms_) sm.load_time = sm.consume_time = gpu.tiny_kernel;
  }

  InstructionEvents run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t sm = 0; sm < sms_.size(); ++sm)
        while (load(sm) || consume(sm)) moved = true;
    }
    for (std::size_t sm = 0; sm < sms_.size(); ++sm) {
      FUSELINE_ASSERT(sms_[sm].consuming == all_.sms[sm].size(),
                      "instructions that wait for each other");
      result_.time = std::max(result_.time, sms_[sm].consume_time);
    }
    return std::move(result_);
  }

 private:
  struct Count {
    std::int64_t added = 0;
    Seconds last;
  };

  // When all of them are seen complete; nothing: not known yet.
  [[nodiscard]] std::optional<Seconds> complete(const CounterRange& range) const {
    Seconds time;
    for (std::int32_t c = range.first; c < range.first + range.count; ++c) {
      const auto i = static_cast<std::size_t>(c);
      if (counters_[i].added < all_.counters[i].goal) return std::nullopt;
      if (counters_[i].added > 0) time = std::max(time, counters_[i].last + barrier_);
    }
    return time;
  }

  bool load(std::size_t index) {
    Sm& sm = sms_[index];
    const std::vector<Instruction>& list = all_.sms[index];
    while (sm.loading < list.size() && slices_of(all_, list[sm.loading]).empty()) ++sm.loading;
    if (sm.loading == list.size()) return false;
    const std::size_t number = sm.arrived.size();
    if (number >= ring_ && sm.freed.size() <= number - ring_) return false;
    const std::vector<Slice> slices = slices_of(all_, list[sm.loading]);
    const Slice& slice = slices[sm.loaded];
    const std::optional<Seconds> operand = complete(slice.waits);
    if (!operand) return false;
    if (number >= ring_) sm.load_time = std::max(sm.load_time, sm.freed[number - ring_]);
    sm.load_time += Seconds(slice.bytes.as_double() / share_);
    sm.arrived.push_back(std::max(sm.load_time, *operand));
    if (++sm.loaded == slices.size()) {
      sm.loaded = 0;
      ++sm.loading;
    }
    return true;
  }

  bool consume(std::size_t index) {
    Sm& sm = sms_[index];
    const std::vector<Instruction>& list = all_.sms[index];
    if (sm.consuming == list.size()) return false;
    const Instruction& i = list[sm.consuming];
    const std::vector<Slice> slices = slices_of(all_, i);
    std::vector<InstructionEvent>& events = result_.sms[index];
    const bool product = is_product(i.step);
    if (sm.consumed == 0 && events.size() == sm.consuming && (product || can_begin(i)))
      events.push_back({sm.consume_time, {}});
    if (events.size() == sm.consuming) return false;
    if (sm.consumed < slices.size()) {
      const std::size_t number = sm.freed.size();
      if (number == sm.arrived.size()) return false;
      sm.consume_time = std::max(sm.consume_time, sm.arrived[number]);
      if (!product) sm.consume_time = std::max(sm.consume_time, *waited(i));
      sm.consume_time += Seconds(slices[sm.consumed].bytes.as_double() / shared_);
      sm.freed.push_back(sm.consume_time);
      ++sm.consumed;
      return true;
    }
    const std::optional<Seconds> ready = waited(i);
    if (!ready) return false;
    sm.consume_time = std::max(sm.consume_time, *ready);
    events.back().end = sm.consume_time;
    for (const std::int32_t c : i.adds) {
      if (c == no_counter) continue;
      Count& count = counters_[static_cast<std::size_t>(c)];
      count.added += i.amount;
      count.last = std::max(count.last, sm.consume_time);
    }
    sm.consumed = 0;
    ++sm.consuming;
    return true;
  }

  // The waits of the instruction itself, not of its slices.
  [[nodiscard]] std::optional<Seconds> waited(const Instruction& i) const {
    Seconds time;
    const auto take = [&](const CounterRange& range) {
      const std::optional<Seconds> t = complete(range);
      if (t) time = std::max(time, *t);
      return t.has_value();
    };
    for (const std::int32_t c : i.waits)
      if (c != no_counter && !take({c, 1})) return std::nullopt;
    if (!is_product(i.step) && i.operand.count > 0 && !take(i.operand)) return std::nullopt;
    return time;
  }
  [[nodiscard]] bool can_begin(const Instruction& i) const { return waited(i).has_value(); }

  const BlockInstructions& all_;
  std::size_t ring_;
  double share_;   // bytes per second of one SM
  double shared_;  // of its shared memory
  Seconds barrier_;
  std::vector<Sm> sms_;
  std::vector<Count> counters_;
  InstructionEvents result_;
};

}  // namespace

InstructionEvents simulate_instructions(const BlockInstructions& all, const Gpu& gpu, int ring) {
  FUSELINE_ASSERT(ring > 0, "a ring of slices");
  return Events(all, gpu, ring).run();
}

}  // namespace fuseline

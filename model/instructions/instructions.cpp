#include "model/instructions/instructions.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "model/primitives/basics.h"

namespace fuseline {

namespace {

std::int64_t ceil_of(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Groups of columns of one tensor, a counter each.
struct ColumnCounters {
  CounterRange range;
  std::int64_t columns = 1;  // of each
};

class Builder {
 public:
  Builder(const DecodeBlock& block, const InstructionSizes& sizes) {
    all_.block = block;
    all_.sizes = sizes;
    all_.sms.resize(static_cast<std::size_t>(sizes.sms));
    load_.resize(all_.sms.size());
  }

  BlockInstructions run() {
    const DecodeBlock& b = all_.block;
    q_ = counters("queries of key head {}", b.kv_heads, b.group() * b.width);
    new_k_ = counters("the new key of head {}", b.kv_heads, b.width);
    new_v_ = counters("the new value of head {}", b.kv_heads, b.width);
    partials_ = counters("partial softmaxes of head {}", b.batch * b.kv_heads, 1);
    const std::int64_t together = ceil_of(b.kv_heads, all_.sizes.most_waits);
    attention_ = counters(
        together == 1 ? "attention of key head {}" : "attention of the key heads of group {}",
        ceil_of(b.kv_heads, together), together * b.group() * b.width);
    h_ = column_counters("h", b.model);
    act_ = column_counters("act", b.inner);
    y_ = counter("y");

    share_all();
    // What a plan keeps of norms takes no weights, and no SM waits for it: it stands where these
    // consumers would wait, each on another SM.
    products(Step::qkv, 2);
    all_.sms.front().push_back({.step = Step::finish_norm1});
    attention();
    sums();
    products(Step::out, 1);
    products(Step::gate_up, 2);
    all_.sms.at(all_.sms.size() / 2).push_back({.step = Step::finish_norm2, .operand = h_.range});
    products(Step::down, 1);
    all_.sms.front().push_back({.step = Step::finish_stats, .operand = {y_, 1}});
    for (const auto& sm : all_.sms)
      for (const Instruction& i : sm)
        for (const std::int32_t c : i.adds)
          if (c != no_counter) all_.counters[static_cast<std::size_t>(c)].goal += i.amount;
    return std::move(all_);
  }

 private:
  std::int32_t counter(std::string name) {
    all_.counters.push_back({std::move(name)});
    return static_cast<std::int32_t>(all_.counters.size() - 1);
  }
  ColumnCounters counters(const char* name, std::int64_t count, std::int64_t columns) {
    ColumnCounters made{
        {static_cast<std::int32_t>(all_.counters.size()), static_cast<std::int32_t>(count)},
        columns};
    for (std::int64_t i = 0; i < count; ++i) counter(fmt::format(fmt::runtime(name), i));
    return made;
  }
  // As few as one warp can look at, of whole slices.
  ColumnCounters column_counters(const std::string& tensor, std::int64_t cols) {
    const std::int64_t slice = all_.sizes.slice_columns;
    const std::int64_t each = slice * ceil_of(ceil_of(cols, slice), all_.sizes.most_waits);
    return counters((tensor + " group {}").c_str(), ceil_of(cols, each), each);
  }
  static std::int32_t at(const ColumnCounters& c, std::int64_t column) {
    return c.range.first + static_cast<std::int32_t>(column / c.columns);
  }
  // `count` equal things behind each other: where each SM's share begins, and the end. An SM that
  // has more to load than others gets fewer.
  std::vector<std::int64_t> shares(std::int64_t count, std::int64_t elements) {
    std::int64_t all = count * elements;
    for (const std::int64_t l : load_) all += l;
    const std::int64_t wanted = all / all_.sizes.sms;
    std::vector<std::int64_t> of_sm;
    std::int64_t left = count;
    for (const std::int64_t l : load_) {
      of_sm.push_back(std::clamp<std::int64_t>((wanted - l) / elements, 0, left));
      left -= of_sm.back();
    }
    std::vector<std::int64_t> begins{0};
    for (std::size_t sm = 0; sm < load_.size(); ++sm) load_[sm] += of_sm[sm] * elements;
    for (; left > 0; --left) {
      const auto least = std::ranges::min_element(load_);
      *least += elements;
      ++of_sm[static_cast<std::size_t>(least - load_.begin())];
    }
    for (const std::int64_t n : of_sm) begins.push_back(begins.back() + n);
    return begins;
  }
  // The coarsest shares first, so that the finer ones make up for them.
  void share_all() {
    const DecodeBlock& b = all_.block;
    const std::int64_t keys = all_.keys_of_slice();
    slices_ = shares(b.batch * b.kv_heads * ceil_of(b.context - 1, keys), 2 * keys * b.width);
    out_ = shares(b.model, b.q_rows() + b.inner);  // of down too
    gate_up_ = shares(b.inner, 2 * b.model);
    qkv_ = shares(b.qkv_rows() / 2, 2 * b.model);
  }
  [[nodiscard]] const std::vector<std::int64_t>& shares_of(Step step) const {
    if (step == Step::qkv) return qkv_;
    return step == Step::gate_up ? gate_up_ : out_;
  }

  // Which counter the row of a product adds to.
  [[nodiscard]] std::int32_t counter_of(Step step, std::int64_t row) const {
    const DecodeBlock& b = all_.block;
    if (step == Step::out) return at(h_, row);
    if (step == Step::gate_up) return at(act_, row / 2);
    if (step == Step::down) return y_;
    if (row < b.q_rows()) return at(q_, row);
    row -= b.q_rows();
    return row < b.kv_rows() ? at(new_k_, row) : at(new_v_, row - b.kv_rows());
  }

  // No tile has rows of more than two counters, or sums of more than two groups.
  [[nodiscard]] std::int64_t tile_rows(Step step) const {
    const std::int64_t most = all_.sizes.tile_rows;
    if (step == Step::qkv) return std::min(most, all_.block.width / 2 * 2);
    if (step == Step::gate_up) return std::min(most, 2 * act_.columns);
    return std::min({most, h_.columns, partial_tile});
  }

  void products(Step step, std::int64_t unit) {
    for (std::size_t sm = 0; sm < all_.sms.size(); ++sm) {
      const std::int64_t begin = shares_of(step)[sm], end = shares_of(step)[sm + 1];
      const std::int64_t tiles = ceil_of((end - begin) * unit, tile_rows(step));
      for (std::int64_t t = 0; t < tiles; ++t) {
        const std::int64_t first = begin + (end - begin) * t / tiles;
        const std::int64_t behind = begin + (end - begin) * (t + 1) / tiles;
        all_.sms[sm].push_back(product(step, first * unit, (behind - first) * unit));
      }
    }
  }

  [[nodiscard]] Instruction product(Step step, std::int64_t begin, std::int64_t count) const {
    Instruction i{.step = step, .begin = begin, .count = count, .amount = all_.block.batch};
    if (step == Step::out || step == Step::gate_up || step == Step::down) {
      const ColumnCounters& c =
          step == Step::out ? attention_ : (step == Step::gate_up ? h_ : act_);
      i.operand = c.range;
      i.operand_columns = c.columns;
    }
    if (step == Step::out || step == Step::down) {
      const auto tile = std::ranges::find(tile_begins_, begin);
      FUSELINE_ASSERT(tile != tile_begins_.end(), "out and down have the same tiles");
      i.slot = tile_slots_[static_cast<std::size_t>(tile - tile_begins_.begin())];
    }
    i.adds[0] = counter_of(step, begin);
    const std::int32_t last = counter_of(step, begin + count - 1);
    if (last != i.adds[0]) i.adds[1] = last;
    return i;
  }

  // Slots of the sums of squares: those of one group of columns lie behind each other.
  void sums() {
    const std::int64_t D = all_.block.model;
    for (std::size_t sm = 0; sm < all_.sms.size(); ++sm) {
      const std::int64_t begin = out_[sm], end = out_[sm + 1];
      const std::int64_t tiles = ceil_of(end - begin, tile_rows(Step::out));
      for (std::int64_t t = 0; t < tiles; ++t)
        tile_begins_.push_back(begin + (end - begin) * t / tiles);
    }
    std::int64_t slots = 0;
    for (std::size_t t = 0; t < tile_begins_.size(); ++t) {
      const std::int64_t behind = t + 1 < tile_begins_.size() ? tile_begins_[t + 1] : D;
      tile_slots_.push_back(slots);
      for (std::int64_t g = tile_begins_[t] / partial_tile; g <= (behind - 1) / partial_tile; ++g) {
        if (g == static_cast<std::int64_t>(all_.first_sum.size())) all_.first_sum.push_back(slots);
        ++slots;
      }
    }
    all_.first_sum.push_back(slots);
  }

  // All SMs share the slices of all heads; a head's partial softmaxes are joined where its last
  // slice is.
  void attention() {
    const DecodeBlock& b = all_.block;
    const std::int64_t old = b.context - 1, keys = all_.keys_of_slice();
    const std::int64_t slices = ceil_of(old, keys), heads = b.batch * b.kv_heads;
    std::vector<std::int64_t> first(static_cast<std::size_t>(heads) + 1);
    std::vector<std::size_t> joins_on(static_cast<std::size_t>(heads));
    for (std::size_t sm = 0; sm < all_.sms.size(); ++sm) {
      const std::int64_t end = slices_[sm + 1];
      for (std::int64_t s = slices_[sm]; s < end;) {
        const std::int64_t head = s / slices, in_head = s % slices;
        const std::int64_t count = std::min(slices - in_head, end - s);
        const std::int64_t begin = in_head * keys;
        all_.sms[sm].push_back(
            {.step = Step::attend,
             .begin = begin,
             .count = std::min(count * keys, old - begin),
             .sequence = head / b.kv_heads,
             .kv_head = head % b.kv_heads,
             .slot = all_.attention_slots++,
             .waits = {at(q_, (head % b.kv_heads) * q_.columns), no_counter, no_counter},
             .adds = {partials_.range.first + static_cast<std::int32_t>(head), no_counter}});
        first[static_cast<std::size_t>(head) + 1] = all_.attention_slots;
        joins_on[static_cast<std::size_t>(head)] = sm;
        s += count;
      }
    }
    for (std::int64_t head = 0; head < heads; ++head) {
      const auto i = static_cast<std::size_t>(head);
      const std::int64_t kv = head % b.kv_heads;
      if (slices == 0) joins_on[i] = i % all_.sms.size();
      const std::int32_t ready = slices > 0
                                     ? partials_.range.first + static_cast<std::int32_t>(head)
                                     : at(q_, kv * q_.columns);
      all_.sms[joins_on[i]].push_back(
          {.step = Step::join,
           .sequence = head / b.kv_heads,
           .kv_head = kv,
           .slot = first[i],
           .slots = slices > 0 ? first[i + 1] - first[i] : 0,
           .waits = {ready, at(new_k_, kv * b.width), at(new_v_, kv * b.width)},
           .adds = {at(attention_, kv * b.group() * b.width), no_counter},
           .amount = b.group()});
    }
  }

  BlockInstructions all_;
  std::int32_t y_ = 0;
  ColumnCounters q_, new_k_, new_v_, partials_, attention_, h_, act_;
  std::vector<std::int64_t> load_;                          // elements, by SM
  std::vector<std::int64_t> slices_, qkv_, out_, gate_up_;  // where shares begin, and the end
  std::vector<std::int64_t> tile_begins_, tile_slots_;      // of out and down
};

std::string names_of(const BlockInstructions& all, const CounterRange& range) {
  const auto name = [&](std::int32_t c) { return all.counters[static_cast<std::size_t>(c)].name; };
  if (range.count == 1) return name(range.first);
  return fmt::format("{} to {}", name(range.first), name(range.first + range.count - 1));
}

std::string work_of(const Instruction& i) {
  switch (i.step) {
    case Step::finish_norm1:
    case Step::finish_norm2:
    case Step::finish_stats:
      return name_of(i.step);
    case Step::attend:
      return fmt::format("attend sequence {}, key head {}, keys {} to {}", i.sequence, i.kv_head,
                         i.begin, i.begin + i.count - 1);
    case Step::join:
      return fmt::format("join sequence {}, key head {}, {} partial softmaxes", i.sequence,
                         i.kv_head, i.slots);
    case Step::qkv:
    case Step::out:
    case Step::gate_up:
    case Step::down:
      return fmt::format("{} rows {} to {}", name_of(i.step), i.begin, i.begin + i.count - 1);
  }
  FUSELINE_ASSERT(false, "unknown step");
}

}  // namespace

std::int64_t BlockInstructions::keys_of_slice() const {
  return std::max<std::int64_t>(1, sizes.slice_elements / block.width);
}

BlockInstructions block_instructions(const DecodeBlock& block, const InstructionSizes& sizes) {
  FUSELINE_ASSERT(sizes.sms > 0 && sizes.tile_rows >= 2 && sizes.tile_rows % 2 == 0,
                  "tiles of whole pairs on some SMs");
  return Builder(block, sizes).run();
}

const char* name_of(Step step) {
  switch (step) {
    case Step::finish_norm1:
      return "finish_norm1";
    case Step::qkv:
      return "qkv";
    case Step::attend:
      return "attend";
    case Step::join:
      return "join";
    case Step::out:
      return "out";
    case Step::finish_norm2:
      return "finish_norm2";
    case Step::gate_up:
      return "gate_up";
    case Step::down:
      return "down";
    case Step::finish_stats:
      return "finish_stats";
  }
  FUSELINE_ASSERT(false, "unknown step");
}

bool is_product(Step step) {
  return step == Step::qkv || step == Step::out || step == Step::gate_up || step == Step::down;
}

Operand operand_of(const DecodeBlock& b, Step step) {
  FUSELINE_ASSERT(is_product(step), name_of(step));
  if (step == Step::qkv) return b.x;
  if (step == Step::out) return b.attn;
  return step == Step::gate_up ? b.h : b.act;
}

Operand weight_of(const DecodeBlock& b, Step step) {
  FUSELINE_ASSERT(is_product(step), name_of(step));
  if (step == Step::qkv) return b.w_qkv;
  if (step == Step::out) return b.w_o;
  return step == Step::gate_up ? b.w_gate_up : b.w_down;
}

std::string text_of(const BlockInstructions& all, const Instruction& i) {
  std::string text = work_of(i);
  if (i.operand.count > 0)
    text += fmt::format("; {} for {}", is_product(i.step) ? "slices wait" : "waits",
                        names_of(all, i.operand));
  for (const std::int32_t c : i.waits)
    if (c != no_counter) text += "; waits for " + all.counters[static_cast<std::size_t>(c)].name;
  for (const std::int32_t c : i.adds)
    if (c != no_counter)
      text +=
          fmt::format("; adds {} to {}", i.amount, all.counters[static_cast<std::size_t>(c)].name);
  return text;
}

}  // namespace fuseline

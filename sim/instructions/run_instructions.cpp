#include "sim/instructions/run_instructions.h"

#include <algorithm>
#include <deque>
#include <random>

#include <fmt/format.h>

#include "sim/instructions/block_maths.h"
#include "sim/instructions/happened_before.h"

namespace fuseline::executor {

namespace {

// Where a thread of work is: its instruction, and the slice of it.
struct Place {
  std::size_t instruction = 0;
  std::int64_t slice = 0;
};

// A slice in the ring, and what its loader knew.
struct Waiting {
  LoadedSlice slice;
  HappenedBefore::Clock known;
};

class Runner {
 public:
  Runner(const Plan& plan, const BlockInstructions& all, const Inputs& inputs, int ring)
      : all_(all),
        ring_(static_cast<std::size_t>(ring)),
        memory_(std::make_unique<Memory>(plan, inputs)),
        order_(2 * all.sms.size(), all.counters.size()),
        maths_(all, *memory_, order_),
        counted_(all.counters.size()),
        loaders_(all.sms.size()),
        consumers_(all.sms.size()),
        rings_(all.sms.size()),
        partials_(all.sms.size()) {}

  InstructionRun run(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (;;) {
      std::vector<std::size_t> ready;
      for (std::size_t t = 0; t < 2 * all_.sms.size(); ++t)
        if (can_go_on(t)) ready.push_back(t);
      if (ready.empty()) break;
      go_on(ready[random() % ready.size()]);
    }
    InstructionRun result;
    result.deadlock = who_waits();
    result.races = order_.take_races();
    result.memory = std::move(memory_);
    return result;
  }

 private:
  // Threads 2·sm and 2·sm + 1 are an SM's loader and consumer.
  static bool is_loader(std::size_t thread) { return thread % 2 == 0; }
  [[nodiscard]] Place& place_of(std::size_t thread) {
    return is_loader(thread) ? loaders_[thread / 2] : consumers_[thread / 2];
  }
  [[nodiscard]] const Instruction* current(std::size_t thread) const {
    const std::vector<Instruction>& list = all_.sms[thread / 2];
    const Place& p = is_loader(thread) ? loaders_[thread / 2] : consumers_[thread / 2];
    return p.instruction < list.size() ? &list[p.instruction] : nullptr;
  }

  // Counters that the thread's next step needs.
  [[nodiscard]] std::vector<std::int32_t> needs(std::size_t thread, const Instruction& i) const {
    std::vector<std::int32_t> counters;
    const auto add_range = [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t c = from; c <= to; ++c)
        counters.push_back(i.operand.first + static_cast<std::int32_t>(c));
    };
    if (is_loader(thread)) {
      if (!is_product(i.step) || i.operand.count == 0) return {};
      const std::int64_t begin = loaders_[thread / 2].slice * all_.sizes.slice_columns;
      const std::int64_t behind =
          std::min(begin + all_.sizes.slice_columns, operand_of(all_.block, i.step).cols);
      add_range(begin / i.operand_columns, (behind - 1) / i.operand_columns);
      return counters;
    }
    const std::int64_t slice = consumers_[thread / 2].slice;
    // A product waits behind its last slice, everything else at its beginning.
    if (is_product(i.step) ? slice < maths_.slices(i) : slice > 0) return {};
    for (const std::int32_t c : i.waits)
      if (c != no_counter) counters.push_back(c);
    if (!is_product(i.step) && i.operand.count > 0) add_range(0, i.operand.count - 1);
    return counters;
  }

  [[nodiscard]] bool is_complete(std::int32_t counter) const {
    const auto c = static_cast<std::size_t>(counter);
    return counted_[c] >= all_.counters[c].goal;
  }

  [[nodiscard]] bool can_go_on(std::size_t thread) const {
    const Instruction* i = current(thread);
    if (i == nullptr) return false;
    const std::deque<Waiting>& ring = rings_[thread / 2];
    if (is_loader(thread) && ring.size() >= ring_) return false;
    if (!is_loader(thread) && consumers_[thread / 2].slice < maths_.slices(*i) && ring.empty())
      return false;
    return std::ranges::all_of(needs(thread, *i), [&](std::int32_t c) { return is_complete(c); });
  }

  void go_on(std::size_t thread) {
    const std::size_t sm = thread / 2;
    const Instruction& i = *current(thread);
    Place& place = place_of(thread);
    order_.begin(thread);
    for (const std::int32_t c : needs(thread, i)) order_.saw(thread, static_cast<std::size_t>(c));
    if (is_loader(thread)) {
      if (maths_.slices(i) > 0)
        rings_[sm].push_back({maths_.load(i, place.slice, thread), order_.now(thread)});
      if (++place.slice >= maths_.slices(i)) place = {place.instruction + 1, 0};
      return;
    }
    if (place.slice < maths_.slices(i)) {
      order_.follows(thread, rings_[sm].front().known);
      maths_.consume(i, place.slice, rings_[sm].front().slice, partials_[sm], thread, thread - 1);
      rings_[sm].pop_front();
      ++place.slice;
      return;
    }
    maths_.end(i, partials_[sm], thread);
    partials_[sm] = {};
    for (const std::int32_t c : i.adds) {
      if (c == no_counter) continue;
      counted_[static_cast<std::size_t>(c)] += i.amount;
      order_.adds(thread, static_cast<std::size_t>(c));
    }
    place = {place.instruction + 1, 0};
  }

  [[nodiscard]] std::string who_waits() const {
    std::string text;
    for (std::size_t thread = 1; thread < 2 * all_.sms.size(); thread += 2) {
      const Instruction* i = current(thread);
      if (i == nullptr) continue;
      if (!text.empty()) text += "\n";
      text += fmt::format("SM {} stands at: {}", thread / 2, text_of(all_, *i));
      for (const std::size_t waiting : {thread - 1, thread})
        if (const Instruction* of = current(waiting); of != nullptr)
          for (const std::int32_t c : needs(waiting, *of))
            if (!is_complete(c)) {
              const BlockCounter& counter = all_.counters[static_cast<std::size_t>(c)];
              text += fmt::format("; waits for {}, {} of {}", counter.name,
                                  counted_[static_cast<std::size_t>(c)], counter.goal);
            }
    }
    return text;
  }

  const BlockInstructions& all_;
  std::size_t ring_;
  std::unique_ptr<Memory> memory_;
  HappenedBefore order_;
  BlockMaths maths_;
  std::vector<std::int64_t> counted_;
  std::vector<Place> loaders_, consumers_;
  std::vector<std::deque<Waiting>> rings_;
  std::vector<Partial> partials_;
};

}  // namespace

InstructionRun run_instructions(const Plan& plan, const BlockInstructions& instructions,
                                const Inputs& inputs, std::uint64_t seed, int ring) {
  return Runner(plan, instructions, inputs, ring).run(seed);
}

}  // namespace fuseline::executor

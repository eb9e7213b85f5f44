// Instructions as events.
#include "sim/instructions/events.h"

#include <gtest/gtest.h>

#include "tests/sim/instructions/instruction_case.h"

namespace fuseline {
namespace {

using test::LlamaSizes;

BlockInstructions instructions_of(const LlamaSizes& s, int sms) {
  const Plan plan = make_plan("whole-block", test::llama_of(s), test::decode_of(s));
  return block_instructions(test::block_of(plan), {.sms = sms});
}

LlamaSizes llama2_7b() {
  return {.D = 4096, .F = 11008, .H = 32, .Hkv = 32, .d = 128, .batch = 1, .context = 2048};
}

TEST(InstructionEvents, ABlockTakesItsBytesAndALittleMore) {
  const Gpu gpu = load_gpu("h200");
  const BlockInstructions all = instructions_of(llama2_7b(), 132);
  const double seconds = simulate_instructions(all, gpu, 6).time.value();
  const double bytes = 2.0 * (4096.0 * (4.0 * 4096 + 3.0 * 11008) + 2.0 * 2047 * 4096);
  const double least = bytes / gpu.hbm_bandwidth_sustained.value();
  EXPECT_GT(seconds, least);
  EXPECT_LT(seconds, 1.2 * least);
}

// No instruction ends before those that it waits for.
TEST(InstructionEvents, EventsKeepTheOrderOfCounters) {
  const BlockInstructions all = instructions_of(llama2_7b(), 132);
  const InstructionEvents events = simulate_instructions(all, load_gpu("h200"), 6);
  std::vector<Seconds> complete(all.counters.size());
  for (std::size_t sm = 0; sm < all.sms.size(); ++sm)
    for (std::size_t i = 0; i < all.sms[sm].size(); ++i)
      for (const std::int32_t c : all.sms[sm][i].adds)
        if (c != no_counter)
          complete[static_cast<std::size_t>(c)] =
              std::max(complete[static_cast<std::size_t>(c)], events.sms[sm][i].end);
  for (std::size_t sm = 0; sm < all.sms.size(); ++sm) {
    for (std::size_t i = 0; i < all.sms[sm].size(); ++i) {
      const Instruction& in = all.sms[sm][i];
      EXPECT_LE(events.sms[sm][i].begin, events.sms[sm][i].end);
      for (std::int32_t c = in.operand.first; c < in.operand.first + in.operand.count; ++c)
        EXPECT_LE(complete[static_cast<std::size_t>(c)], events.sms[sm][i].end);
      for (const std::int32_t c : in.waits)
        if (c != no_counter) {
          EXPECT_LE(complete[static_cast<std::size_t>(c)], events.sms[sm][i].end);
        }
    }
  }
}

TEST(InstructionEvents, ALongerRingIsNeverSlower) {
  const Gpu gpu = load_gpu("h200");
  const BlockInstructions all = instructions_of(llama2_7b(), 132);
  Seconds before = simulate_instructions(all, gpu, 1).time;
  for (const int ring : {2, 4, 6, 12}) {
    const Seconds time = simulate_instructions(all, gpu, ring).time;
    EXPECT_LE(time, before) << ring;
    before = time;
  }
}

}  // namespace
}  // namespace fuseline

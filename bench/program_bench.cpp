// How long it takes to check and predict programs of one's own, on one core.
//   BM_DistinctPrograms  a program of a different size each time, with its unfused plan; goal: 20
//   ms
//                        each, and 10,000 a minute (6 ms each) with kept results
//   BM_KeptPrograms      the same ones again, as in a loop that changes one of them at a time
//   build/release/bench/program_bench
#include <benchmark/benchmark.h>

#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "model/programs/legality.h"
#include "model/programs/own_plan.h"
#include "model/programs/program_file.h"
#include "model/programs/unfused_programs.h"
#include "sim/block/estimate.h"
#include "sim/kernels/walk_memo.h"
#include "sim/programs/tile_check.h"

namespace {

using namespace fuseline;

// A product with a random chain of steps behind it, and the finisher of what its tiles sum.
std::string program_text(std::size_t i) {
  const std::size_t M = 512 * (1 + i % 8), D = 1024 * (1 + i / 8 % 5), F = 1024 * (2 + i / 40 % 9);
  const char* const steps[] = {"gelu({})", "silu({})", "relu({})", "{} * 0.5",  "tanh({})",
                               "|{}|",     "{} + 1",   "-{}",      "square({})"};
  std::string body = "  y = x[M,D] · w[F,D]ᵀ\n  c = load_cols b[1,F]\n  v0 = y + c\n";
  std::size_t random = i * 2654435761U + 12345, last = 0;
  for (; last < 2 + i % 5; ++last, random = random * 1103515245U + 12345U)
    body +=
        fmt::format("  v{} = {}\n", last + 1,
                    fmt::format(fmt::runtime(steps[random / 65536 % 9]), fmt::format("v{}", last)));
  return fmt::format(
      "fuse 1\nsize M = {}, D = {}, F = {}\ninput x[M,D]\nweight w[F,D]\nweight b[1,F]\n"
      "output h[M,F]\nactivation s[M,⌈F/128⌉], fp32\noutput r[M,1], fp32\n\nprogram up\n{}"
      "  store h[M,F] = v{}\n  store s[M,⌈F/128⌉] = sum_squares(v{})\n\nprogram finish\n"
      "  for each row of [M, ⌈F/128⌉]\n  p = load s[M,⌈F/128⌉]\n  t = row_sum(p)\n"
      "  store_rows r[M,1] = t\n",
      M, D, F, body, last, last);
}

void check_and_predict(const std::string& text, const Gpu& gpu, benchmark::State& state) {
  const ProgramFile file = read_program_text(text, "bench.fuse");
  std::vector<Diagnosis> wrong = check_programs(file);
  if (wrong.empty()) wrong = check_tiles(file, gpu);
  if (!wrong.empty()) return state.SkipWithError(wrong.front().problem.message.c_str());
  benchmark::DoNotOptimize(simulate(whole_plan(file), gpu, Fidelity::hierarchy));
  if (const std::optional<Plan> unfused = unfused_programs(file))
    benchmark::DoNotOptimize(simulate(*unfused, gpu, Fidelity::hierarchy));
}

// 360 sizes, each with other steps.
void BM_DistinctPrograms(benchmark::State& state) {
  const Gpu gpu = load_gpu("h200");
  WalkMemo::shared().forget();
  std::size_t i = 0;
  for (auto _ : state) check_and_predict(program_text(i++), gpu, state);
  state.counters["a minute"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * 60, benchmark::Counter::kIsRate);
}

void BM_KeptPrograms(benchmark::State& state) {
  const Gpu gpu = load_gpu("h200");
  constexpr std::size_t kPrograms = 16;
  for (std::size_t i = 0; i < kPrograms; ++i) check_and_predict(program_text(i), gpu, state);
  std::size_t i = 0;
  for (auto _ : state) check_and_predict(program_text(i++ % kPrograms), gpu, state);
  state.counters["a minute"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * 60, benchmark::Counter::kIsRate);
}

}  // namespace

BENCHMARK(BM_DistinctPrograms)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_KeptPrograms)->Unit(benchmark::kMillisecond);

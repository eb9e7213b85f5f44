// Programs as text, executed, and held against the fp64 meaning of the text.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "model/programs/own_plan.h"
#include "model/programs/program_file.h"
#include "sim/executor/execute.h"
#include "sim/executor/inputs.h"
#include "sim/gpu/gpu.h"
#include "sim/programs/check_results.h"

namespace fuseline::test {

inline std::string sizes_text(std::int64_t m, std::int64_t n, std::int64_t k) {
  return "fuse 1\nsize M = " + std::to_string(m) + ", N = " + std::to_string(n) +
         ", K = " + std::to_string(k) + '\n';
}

inline std::string product_text(std::int64_t m, std::int64_t n, std::int64_t k) {
  return sizes_text(m, n, k) +
         "input x[M,K]\nweight w[N,K]\nweight b[1,N]\ninput r[M,N]\noutput y[M,N]\n"
         "activation s[M,⌈N/128⌉], fp32\noutput total[M,1], fp32\n\nprogram product\n"
         "  y = x[M,K] · w[N,K]ᵀ\n  r = load r[M,N]\n  h = y + r\n  b = load_cols b[1,N]\n"
         "  z = h * b\n  store y[M,N] = z\n  store s[M,⌈N/128⌉] = sum_squares(z)\n\n"
         "program finish\n  for each row of [M, ⌈N/128⌉]\n  p = load s[M,⌈N/128⌉]\n"
         "  t = row_sum(p)\n  store_rows total[M,1] = t\n";
}

struct ExecutedPrograms {
  Plan plan;
  executor::Inputs inputs;
  executor::Execution executed;
};

inline ExecutedPrograms executed_text(const std::string& text) {
  const ProgramFile file = read_program_text(text, "test.fuse");
  EXPECT_TRUE(file.readable());
  ExecutedPrograms run{.plan = whole_plan(file), .inputs = {}, .executed = {}};
  const executor::Workers workers{.threads = 2};
  run.inputs = executor::random_storage(run.plan.graph, 3, workers);
  run.executed = executor::execute(run.plan, run.inputs, load_gpu("h200"), {.workers = workers});
  return run;
}

inline ExecutedPrograms executed_programs(std::int64_t m, std::int64_t n, std::int64_t k) {
  return executed_text(product_text(m, n, k));
}

inline CheckedResults held_against_text(const ExecutedPrograms& run) {
  return check_results(
      run.plan, run.inputs,
      [&](TensorId id) -> const executor::Storage& { return run.executed.memory->at(id); }, 5);
}

inline executor::Storage& tensor_of(ExecutedPrograms& run, const char* name) {
  return run.executed.memory->writable(*run.plan.graph.find_tensor(name));
}

// A gradient: sums down columns, then products whose first operand is stored transposed. A row of
// the last one needs all rows of the first.
inline std::string gradient_like_text(std::int64_t m, std::int64_t n, std::int64_t k) {
  return sizes_text(m, n, k) +
         "input d[M,N]\ninput x[M,K]\nactivation g[M,N]\nactivation parts[N,⌈M/128⌉], fp32\n"
         "output db[1,N]\noutput dw[N,K]\n\nprogram scaled\n  for each tile of [M, N]\n"
         "  d = load d[M,N]\n  z = tanh(d)\n  store g[M,N] = z\n"
         "  store parts[N,⌈M/128⌉] = sum(z, of = columns)\n\n"
         "program sums\n  for each row of [N, ⌈M/128⌉]\n  p = load parts[N,⌈M/128⌉]\n"
         "  s = row_sum(p)\n  store_rows db[1,N] = s\n\n"
         "program product\n  y = g[M,N]ᵀ · x[M,K]\n  store dw[N,K] = y\n";
}

}  // namespace fuseline::test

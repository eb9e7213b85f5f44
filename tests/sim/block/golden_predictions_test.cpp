// Predictions of every shipped model on every shipped GPU under every policy, at sizes that no tile
// divides, are those of tests/golden/predictions.csv: integers exactly, times to 1e-9. A change of
// the code that is not meant to change predictions must leave the file as it is;
// FUSELINE_UPDATE_GOLDEN=1 writes it anew, and the commit that does so says what changed and why.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"
#include "tests/model/refused_phases.h"

namespace fuseline {
namespace {

constexpr const char* kFile = FUSELINE_SOURCE_DIR "/tests/golden/predictions.csv";
constexpr const char* kHeader = "model,gpu,phase,batch,seq,context,policies,integers,time_us";

std::vector<Workload> sizes() {
  using enum Phase;
  return {
      {.phase = forward, .batch = 1, .seq = 333},
      {.phase = forward, .batch = 3, .seq = 1021},
      {.phase = forward, .batch = 7, .seq = 129},
      {.phase = decode, .batch = 1, .seq = 1, .context = 777},
      {.phase = decode, .batch = 5, .seq = 1, .context = 1023},
      {.phase = decode, .batch = 33, .seq = 3, .context = 511},
      {.phase = train, .batch = 1, .seq = 257},
      {.phase = train, .batch = 3, .seq = 515},
      {.phase = train, .batch = 2, .seq = 1023},
  };
}

// All integers of all policies' kernels in one number (FNV-1a, 64 bits), and the sum of their
// times.
struct Golden {
  std::size_t policies = 0;
  std::uint64_t integers = 14695981039346656037ULL;
  double time_us = 0;

  void add(const std::string& text) {
    for (const char c : text)
      integers = (integers ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
};

Golden predicted(const ModelConfig& model, const Gpu& gpu, const Workload& work) {
  Golden golden;
  for (const PolicyInfo& policy : policies()) {
    if (work.phase == Phase::train && !policy.trains) continue;
    const PlanEstimate e = simulate(make_plan(policy.name, model, work), gpu, Fidelity::hierarchy);
    ++golden.policies;
    golden.add(policy.name);
    for (const KernelEstimate& k : e.kernels)
      golden.add(fmt::format("{} {} {} {} {} {} {} {}\n", k.name, k.flops.value(),
                             k.hbm_read.value(), k.hbm_write.value(), k.l2.value(),
                             k.compulsory.value(), name_of(k.bound), fmt::join(k.tile, "x")));
    golden.time_us += to_us(e.time);
  }
  return golden;
}

std::string key(const std::string& model, const std::string& gpu, const Workload& w) {
  return fmt::format("{},{},{},{},{},{}", model, gpu, name_of(w.phase), w.batch, w.seq, w.context);
}

std::map<std::string, Golden> read_golden() {
  std::map<std::string, Golden> all;
  std::ifstream in(kFile);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::vector<std::string> cells;
    std::stringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    if (cells.size() != 9) continue;
    const std::string name = fmt::format("{},{},{},{},{},{}", cells[0], cells[1], cells[2],
                                         cells[3], cells[4], cells[5]);
    all[name] = {std::stoul(cells[6]), std::stoull(cells[7], nullptr, 16), std::stod(cells[8])};
  }
  return all;
}

void write_golden(const std::map<std::string, Golden>& all) {
  std::ofstream out(kFile);
  out << kHeader << '\n';
  for (const auto& [name, g] : all)
    out << fmt::format("{},{},{:016x},{:.17g}\n", name, g.policies, g.integers, g.time_us);
}

// Models of many experts or with scans take long, and what tells GPUs apart is in the others too:
// one GPU has them.
bool is_golden(const ModelConfig& model, const std::string& gpu) {
  static const std::set<std::string> long_blocks = {"moe",    "mla",   "mamba",
                                                    "mamba2", "jamba", "t5_decoder"};
  return gpu == "h200" || !long_blocks.contains(model.blocks.front().block);
}

void expect_golden(const std::string& gpu_name, const std::vector<std::string>& models) {
  const Gpu gpu = load_gpu(gpu_name);
  std::map<std::string, Golden> all = read_golden();
  const bool update = std::getenv("FUSELINE_UPDATE_GOLDEN") != nullptr;
  for (const std::string& model_name : models) {
    const ModelConfig model = load_model(model_name);
    if (!is_golden(model, gpu_name)) continue;
    for (const Workload& work : sizes()) {
      if (test::is_refused(model_name, work)) continue;
      const std::string name = key(model_name, gpu_name, work);
      const Golden got = predicted(model, gpu, work);
      if (update) {
        all[name] = got;
        continue;
      }
      ASSERT_TRUE(all.contains(name)) << name << " is not in " << kFile;
      const Golden& want = all.at(name);
      EXPECT_EQ(got.policies, want.policies) << name;
      EXPECT_EQ(got.integers, want.integers) << name << ": an integer differs";
      EXPECT_NEAR(got.time_us / want.time_us, 1.0, 1e-9) << name;
    }
  }
  if (update) write_golden(all);
}

TEST(GoldenPredictions, OfTwoModelsOnAnH200) {
  expect_golden("h200", {"char-llama", "gpt2-large"});
}

class LongGoldenPredictions : public testing::TestWithParam<std::string> {};
TEST_P(LongGoldenPredictions, AreTheSame) { expect_golden(GetParam(), model_names()); }
INSTANTIATE_TEST_SUITE_P(Gpus, LongGoldenPredictions, testing::ValuesIn(gpu_names()),
                         [](const auto& gpu) {
                           std::string name = gpu.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace fuseline

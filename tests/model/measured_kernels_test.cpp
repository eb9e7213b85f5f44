// Plans of PyTorch's ways of running have the kernels that were measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/config/model_files.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

// How a GEMM's operands lie, as the library names it: forward, gradient of the input, of the
// weight.
std::string layout_of(const GemmMainloop& m) {
  return std::string(m.a_is_km || m.b_is_kn ? "N" : "T") + (m.a_is_km ? "T" : "N");
}

std::vector<std::string> implementations(const Plan& plan) {
  std::vector<std::string> names;
  for (const Kernel& k : plan.kernels) {
    names.emplace_back(name_of(k.implementation));
    const auto* gemm = std::get_if<GemmMainloop>(&k.phases[0].mainloop);
    if (gemm != nullptr) names.back() += " " + layout_of(*gemm);
  }
  return names;
}

// Which implementation a measured kernel's name stands for; empty for those that the library adds
// on its own (split-K and attention reductions).
std::string measured_implementation(const std::string& kernel) {
  const auto has = [&](const char* part) { return kernel.find(part) != std::string::npos; };
  if (has("splitKreduce") || has("lean_reduction")) return "";
  if (has("nvjet")) return "library GEMM " + kernel.substr(kernel.rfind('_') + 1, 2);
  if (has("cudnn_generated")) return "library attention";
  if (has("compute_dot_do_o") || has("convert_dq") || has("fmha_reduce_head")) return "vectorized";
  if (has("layer_norm") && !has("triton")) return "row norm";
  if (has("GammaBetaBackward")) return "row norm";
  if (has("CatArrayBatchedCopy_vectorized")) return "vectorized";
  if (has("CatArrayBatchedCopy")) return "concatenation";
  if (has("reduce_kernel")) return "framework reduction";
  if (has("triton_red")) return "generated reduction";
  if (has("triton_per")) return "finisher";
  if (has("triton_poi")) return "generated pointwise";
  if (has("vectorized_elementwise")) return "vectorized";
  if (has("elementwise_kernel")) return "strided";  // unrolled_ too: index arithmetic per element
  return "unknown " + kernel;
}

// The second set's block writes rotate_half with slices, the first one's with halves of a split. A
// slice's gradient is a fill and a copy of the half into it, and a sum of both instead of a
// concatenation; and dQ and dK are copied once more before theirs. Here as the split has it.
std::vector<std::string> as_if_split(const std::vector<std::string>& kernels) {
  const auto is = [&](std::size_t i, const char* part) {
    return i < kernels.size() && kernels[i].find(part) != std::string::npos;
  };
  std::vector<std::string> result;
  int halves = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (is(i, "FillFunctor") && is(i + 1, "direct_copy")) {
      ++i;
      if (++halves % 2 != 0) continue;
      i += 2;  // the sum, and the product with the cosines, which the split has before it
      result.push_back(kernels[i]);
      result.emplace_back("CatArrayBatchedCopy");
      continue;
    }
    const bool copy = is(i, "direct_copy") && !is(i, "unrolled");
    if (!copy) result.push_back(kernels[i]);
  }
  return result;
}

// The comma-separated fields of a line; a quoted field may hold commas.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields{""};
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return fields;
}

// The sequence of kernels measured for a block, by "model,execution,phase,batch,seq,context".
std::map<std::string, std::vector<std::string>> measured_kernels(const std::string& folder) {
  std::ifstream file(FUSELINE_SOURCE_DIR "/scenarios/measurements/" + folder + "/kernels.csv");
  std::map<std::string, std::vector<std::string>> result;
  std::string line;
  while (std::getline(file, line)) {
    const std::vector<std::string> f = fields_of(line);
    if (f.size() < 10 || f[0] == "model") continue;
    result[f[0] + "," + f[1] + "," + f[2] + "," + f[3] + "," + f[4] + "," + f[5]].push_back(f[8]);
  }
  for (auto& [key, kernels] : result) {
    const bool primitives = key.find(",eager,") != key.npos || key.find(",composed,") != key.npos;
    if (primitives && key.find(",train,") != key.npos) kernels = as_if_split(kernels);
    std::vector<std::string> known;
    for (const std::string& kernel : kernels)
      if (const std::string i = measured_implementation(kernel); !i.empty()) known.push_back(i);
    kernels = std::move(known);
  }
  return result;
}

Workload work_of(const std::string& phase, std::int64_t batch, std::int64_t seq,
                 std::int64_t context) {
  if (phase == "decode") return test::decode(batch, seq, context);
  return phase == "train" ? test::train(batch, seq) : test::forward(batch, seq);
}

// Widths D, F and head counts H, Hkv of the measured models; d = D / H.
ModelConfig measured_model(const std::string& name) {
  const bool gpt = name.rfind("gpt2", 0) == 0;
  ModelConfig c = gpt ? test::gpt2_xl() : test::llama2_7b();
  const auto set = [&c](std::int64_t D, std::int64_t F, std::int64_t H, std::int64_t Hkv) {
    c.D = D;
    c.F = F;
    c.H = H;
    c.Hkv = Hkv;
    c.d = D / H;
  };
  if (name == "llama2-70b") set(8192, 28672, 64, 8);
  if (name == "llama3-8b") set(4096, 14336, 32, 8);
  if (name == "tinyllama") set(2048, 5632, 32, 4);
  if (name == "gpt2-large") set(1280, 5120, 20, 20);
  return c;
}

class MeasuredKernels : public ::testing::TestWithParam<const char*> {};

TEST_P(MeasuredKernels, AreTheKernelsOfThePlan) {
  const auto measured = measured_kernels(GetParam());
  ASSERT_GE(measured.size(), 8u);
  for (const auto& [key, kernels] : measured) {
    SCOPED_TRACE(key);
    std::vector<std::string> f;
    std::stringstream stream(key);
    for (std::string part; std::getline(stream, part, ',');) f.push_back(part);
    const std::int64_t batch = std::stoll(f[3]), seq = std::stoll(f[4]), context = std::stoll(f[5]);
    const Workload work = work_of(f[2], batch, seq, context);
    const auto planned = implementations(make_plan(f[1], measured_model(f[0]), work));
    // Inductor moves this block's weight gradients to the end, which lowers its peak of memory.
    if (key.find("llama2-7b,torch-compile,train") != key.npos)
      EXPECT_THAT(planned, ::testing::UnorderedElementsAreArray(kernels));
    else
      EXPECT_EQ(planned, kernels);
  }
}

INSTANTIATE_TEST_SUITE_P(PyTorch, MeasuredKernels,
                         ::testing::Values("h200-pytorch", "h200-pytorch-wide"),
                         [](const auto& p) { return std::to_string(p.index); });

}  // namespace
}  // namespace fuseline

// Lab 3: element-wise operators and norms in one kernel.
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "lab/labs/all_labs.h"
#include "lab/labs/parts.h"
#include "lab/plan_bytes.h"
#include "model/config/model_files.h"
#include "model/operators/all_operators.h"
#include "model/policy.h"
#include "model/reference.h"
#include "sim/block/estimate.h"

namespace fuseline::lab {

namespace {

constexpr double kEps = 1e-5;
// Rows of this size have a mean square near kEps or below it, where eps decides.
constexpr double kTiny = 1.0 / 1024;

struct AddNormShape {
  std::int64_t M = 1, D = 1;
  double eps = kEps;
  bool tiny = false;  // every other row
  bool hidden = false;
};

// sum = x + branch; normed = rms_norm(sum) · weight.
Graph add_norm_graph(const AddNormShape& shape) {
  Graph graph;
  const auto add = [&](const char* name, Role role, std::int64_t rows) {
    return graph.whole(
        graph.add_tensor({.name = name, .role = role, .rows = rows, .cols = shape.D}));
  };
  const Operand x = add("x", Role::input, shape.M);
  const Operand branch = add("branch", Role::input, shape.M);
  const Operand weight = add("weight", Role::weight, 1);
  const Operand sum = add("sum", Role::output, shape.M);
  const Operand normed = add("normed", Role::output, shape.M);
  graph.add_op(
      {.name = "add", .kind = operators::residual_add, .reads = {x, branch}, .writes = {sum}});
  graph.add_op({.name = "norm",
                .kind = operators::rms_norm,
                .reads = {sum, weight},
                .writes = {normed},
                .attributes = NormEps{shape.eps}});
  return graph;
}

// The norm with another factor of a row than 1 / sqrt(mean square + eps).
template <typename RowFactor>
std::vector<double> normed_with(const std::vector<double>& sum, const std::vector<double>& weight,
                                const RowFactor& row_factor) {
  const std::size_t D = weight.size();
  std::vector<double> out(sum.size());
  for (std::size_t row = 0; row < sum.size(); row += D) {
    double squares = 0;
    for (std::size_t j = 0; j < D; ++j) squares += sum[row + j] * sum[row + j];
    const double factor = row_factor(squares / static_cast<double>(D));
    for (std::size_t j = 0; j < D; ++j) out[row + j] = sum[row + j] * factor * weight[j];
  }
  return out;
}

FunctionCase add_norm_case(const AddNormShape& shape, double factor, std::uint64_t seed) {
  const auto [M, D, eps, tiny, hidden] = shape;
  NamedTensors inputs = {{"x", bf16_values("x", M, D, seed)},
                         {"branch", bf16_values("branch", M, D, seed)},
                         {"weight", bf16_values("weight", 1, D, seed)}};
  for (const char* name : {"x", "branch"}) {
    for (std::int64_t i = D; tiny && i < M * D; ++i) {
      if (i / D % 2 == 1) inputs.at(name)[static_cast<std::size_t>(i)] *= kTiny;
    }
  }
  const Graph graph = add_norm_graph(shape);
  const TensorValues plain = run_reference(graph, inputs);
  NamedTensors scaled = inputs;
  for (double& v : scaled.at("branch")) v *= factor;
  const TensorValues want = run_reference(graph, scaled);
  FunctionCase c;
  c.name = fmt::format("{} rows of {}{}", M, D, tiny ? ", every other one tiny" : "");
  c.hidden = hidden;
  c.numbers = {{"eps", eps}};
  const std::int64_t all = M * D;
  c.matrices = {{"x", M, D, false, inputs.at("x"), 0, all},
                {"branch", M, D, false, inputs.at("branch"), 0, all},
                {"weight", 1, D, false, inputs.at("weight"), 0, all},
                {"sum", M, D, true, want.at("sum"), stored_tolerance(1), all},
                {"normed", M, D, true, want.at("normed"), stored_tolerance(D), all}};
  c.mistakes = {
      {"sum", plain.at("sum"), "branch is not multiplied by the factor of your task sheet"},
      {"normed",
       normed_with(want.at("sum"), inputs.at("weight"),
                   [](double mean) { return mean == 0 ? 0 : 1 / std::sqrt(mean); }),
       "that is without eps"},
      {"normed",
       normed_with(want.at("sum"), inputs.at("weight"),
                   [eps = eps](double mean) { return 1 / (std::sqrt(mean) + eps); }),
       "that is with eps added outside the root: it belongs under it"},
      {"normed",
       normed_with(want.at("sum"), inputs.at("weight"),
                   [](double mean) { return 1 / std::sqrt(mean + kEps); }),
       "eps is an argument, and not always 1e-5"}};
  c.on_chip = Bytes(4 * (2 * D) + 64);  // a row and a weight in fp32
  return c;
}

FunctionKey add_norm_function(const Student& student) {
  FunctionKey key;
  key.harness = "lab/harness/lab_03.cpp";
  key.signature =
      "void add_rms_norm(const Source& x, const Source& branch, const Source& weight,\n"
      "                  const Target& sum, const Target& normed, float eps);";
  key.factor = student.factor("lab3.factor");
  key.cases = {add_norm_case({.M = 5, .D = 96}, key.factor, 1),
               add_norm_case({.M = 16, .D = 128, .tiny = true}, key.factor, 2),
               // More than a function could hold anywhere but in counted places.
               add_norm_case({.M = student.between("lab3.hidden_rows", 40, 56),
                              .D = 2 * student.between("lab3.hidden_cols", 60, 110) + 1,
                              .eps = 1e-3,
                              .tiny = true,
                              .hidden = true},
                             key.factor, 3),
               add_norm_case(
                   {.D = student.between("lab3.hidden_row", 200, 500), .eps = 1e-6, .hidden = true},
                   key.factor, 4)};
  for (const char* name : {"x", "branch"}) {
    key.mistakes.push_back(
        {name, 1.5, 2.5, "the second pass over the row goes to memory: keep the row on chip"});
    key.mistakes.push_back({name, 2.5, 1e9, "three or more passes: one has to do"});
  }
  key.wrong_values =
      "is the mean taken over the whole row, eps added before the root, and the weight applied?";
  key.nan_values = "is eps added under the root?";
  key.over_capacity = "one row is enough";
  return key;
}

Lab lab_pointwise_fusion(const Student& student) {
  const std::string model =
      student.pick_name("lab3.model", {"llama2-7b", "llama2-13b", "llama3-8b", "tinyllama"});
  const std::string gpu_name = student.pick_name("lab3.gpu", {"h100", "h200", "a100"});
  const ModelConfig config = load_model(model);
  const Gpu gpu = load_gpu(gpu_name);
  const Workload work{.batch = student.pick("lab3.batch", {1, 2}),
                      .seq = student.pick("lab3.seq", {1024, 2048, 3072})};
  const Plan composed = make_plan("composed", config, work);
  const Plan fused = make_plan("per-operator", config, work);
  const double rows = static_cast<double>(work.rows());
  const double tensor = rows * static_cast<double>(config.D) * 2;  // [M, D] in bf16
  const double wide = rows * static_cast<double>(config.F) * 2;    // [M, F]
  const double norm_composed = site_bytes(composed, "norm1").as_double();
  const double norm_fused = site_bytes(fused, "norm1").as_double();
  const std::string swiglu_site = fused.graph.op(*fused.graph.find_op("swiglu")).site;
  const double swiglu_composed = site_bytes(composed, swiglu_site).as_double();
  const double swiglu_fused = site_bytes(fused, swiglu_site).as_double();
  const std::int64_t kernels = site_kernels(composed, "norm1");
  const auto time = [&](const Plan& plan) { return simulate(plan, gpu, Fidelity::roofline).time; };
  const double block_gain = time(composed) / time(fused);
  const double bandwidth = gpu.hbm_bandwidth_sustained.value();
  const std::string selection =
      fmt::format("--model {} --gpu {} --batch {} --seq {}", model, gpu_name, work.batch, work.seq);

  const FunctionKey function = add_norm_function(student);

  Lab lab;
  lab.intro = fmt::format(
      "Your block: **{}**, M = {} rows, D = {}, F = {}, in bf16, on **{}**.\nYour commands take "
      "`{}`.\n"
      "Count each kernel's distinct bytes once, as `--fidelity roofline` does.",
      config.title, grouped(work.rows()), grouped(config.D), grouped(config.F), gpu.title,
      selection);
  lab.tasks = {
      {.id = "3.1",
       .text = fmt::format("Into how many kernels does `composed` cut the first norm? See\n"
                           "`fuseline explain {} --policy composed`.",
                           selection),
       .key = whole_key(kernels,
                        {{static_cast<double>(kernels - 1), "one is missing: count the casts too"},
                         {static_cast<double>(kernels + 1), "one too many: where does qkv start?"},
                         {1, "that is per-operator: composed writes it from primitives"}}),
       .hints = {"Count the kernels before `qkv`.",
                 "Cast, square, mean, add eps, rsqrt, two multiplies, cast back."}},
      {.id = "3.2",
       .text = "How many bytes does that norm move as a single kernel (`per-operator`)?",
       .key = byte_key(norm_fused, {{tensor, "it reads [M, D] and writes [M, D]"},
                                    {3 * tensor,
                                     "three tensors: x once, the result once; the row "
                                     "stays on chip between its two passes"},
                                    {2 * norm_fused, "that is fp32: bf16 has 2 bytes an element"}}),
       .hints = {"What is read once, what is written once?",
                 "x, the result, and the weight, which is only a row."}},
      {.id = "3.3",
       .text =
           "And how many as the kernels of `composed`? Its primitives hand fp32 tensors to one\n"
           "another; `explain` shows each kernel's loads and stores.",
       .key = byte_key(norm_composed,
                       {{norm_fused, "that is the single kernel"},
                        {norm_fused * static_cast<double>(kernels),
                         "not every kernel moves bf16: follow each load and store"},
                        {norm_composed / 2, "half of it: the tensors between the casts are fp32"}}),
       .hints = {"Make a table: kernel, bytes read, bytes written; fp32 has 4 bytes.",
                 "cast 2+4, square 4+4, mean 4, multiply by the row 4+4, then the cast back and "
                 "the weight; vectors of M elements are small but count."}},
      {.id = "3.4",
       .text = "Both versions are bound by HBM. How many times faster is the single kernel, if\n"
               "nothing but bytes counts?",
       .key = ratio_key(norm_composed / norm_fused,
                        {{norm_fused / norm_composed, "upside down"},
                         {static_cast<double>(kernels), "that counts kernels, not bytes"}}),
       .hints = {"3.3 over 3.2."}},
      {.id = "3.5",
       .text = fmt::format(
           "SwiGLU is act = silu(gate) * up, with gate and up [M, F]. `composed` runs silu and\n"
           "the product as two kernels. How many bytes does one kernel save?"),
       .key = byte_key(swiglu_composed - swiglu_fused,
                       {{wide, "silu's result is written and read back"},
                        {swiglu_composed, "that is all of the two kernels: what does one save?"},
                        {swiglu_fused, "that is what one kernel moves: what does it save?"},
                        {2 * tensor, "the tensors are [M, F], not [M, D]"}}),
       .hints = {"Only the tensor between the two goes away.", "[M, F] written and read: 4 M F."}},
      {.id = "3.6",
       .text = fmt::format(
           "How long does your GPU take for those bytes, at the sustained bandwidth of {:g} GB/s?",
           bandwidth / 1e9),
       .key = time_key((swiglu_composed - swiglu_fused) / bandwidth,
                       {{wide / bandwidth, "silu's result is written and read back"},
                        {swiglu_fused / bandwidth, "that is the fused kernel's time"},
                        {swiglu_composed / bandwidth, "that is the two kernels' time"}}),
       .hints = {"Bytes over bandwidth; mind 10^6 and 10^9."}},
      {.id = "3.7",
       .text = fmt::format("How many times faster is the whole block under `per-operator` than "
                           "under\n`composed`? `fuseline predict {} --policy "
                           "composed,per-operator --fidelity roofline`",
                           selection),
       .key = ratio_key(block_gain, {{1 / block_gain, "upside down"},
                                     {norm_composed / norm_fused,
                                      "that is the norm alone: most of the "
                                      "block's time is GEMMs"}}),
       .hints = {"The table's column `speed-up`, or time over time."}},
      {.id = "3.8",
       .text = "Why can the residual addition ride in the epilogue of the GEMM before it, and the\n"
               "norm after it cannot, as it stands?",
       .key =
           ChoiceKey{
               {{"a", "a norm spends more FLOPs on a row than the GEMM's epilogue has time for",
                 "its FLOPs are nothing beside the GEMM's"},
                {"b", "a norm has a weight of its own, and an epilogue may not read vectors",
                 "it may: bias and norm weights are vectors"},
                {"c", "a norm needs the sum over its whole row, and a tile has a part of it", ""}}},
       .hints = {"How much of a row does one tile of the GEMM hold?"}},
      {.id = "3.9",
       .text = fmt::format(
           "Write `add_rms_norm` in `stub.cpp`: sum = x + {:g} branch (the factor is yours alone,\n"
           "as some models scale their residuals), and normed = the RMSNorm of sum, times\n"
           "weight, with eps under the root. It may load x and branch once and store each result\n"
           "once; a row fits on chip, the matrix does not. Compute in float.",
           function.factor),
       .key = function,
       .hints =
           {"Two loops over the columns of a row: the first needs memory, the second must not.",
            "Keep the row in a std::vector<float> of cols elements, declared outside the loop "
            "over rows.",
            "scale = 1 / sqrt(sum of squares / cols + eps)."},
       .points = 3},
  };
  return lab;
}

}  // namespace

constinit const LabDescription labs::lab_03_pointwise_fusion{.folder = "03-pointwise-fusion",
                                                             .title = "pointwise and norm fusion",
                                                             .make = lab_pointwise_fusion};

}  // namespace fuseline::lab

// Lab 11: weights of few bits.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "lab/labs/all_labs.h"
#include "lab/labs/parts.h"
#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "model/formats/stored_weight.h"
#include "model/reference.h"

namespace fuseline::lab {

namespace {

constexpr double kLargestCode = 7;  // of int4 without a zero point: -7 to 7

// [1, K] times [N, K] in codes of 8 bits with a scale for each group of columns.
FunctionCase codes_case(std::int64_t N, std::int64_t K, std::int64_t group, bool hidden,
                        double factor, int index) {
  const auto seed = static_cast<std::uint64_t>(index);
  const std::int64_t groups = ceil_div(K, group);
  const std::vector<double> x = bf16_values("x", 1, K, seed);
  std::vector<double> codes = bf16_values("codes", N, K, seed);
  for (double& c : codes) c = std::round(std::clamp(40 * c, -127.0, 127.0));
  std::vector<double> scale = bf16_values("scale", N, groups, seed);
  for (double& s : scale) s = std::abs(s) / 64 + 1.0 / 256;
  for (double& s : scale) s = std::ldexp(std::round(std::ldexp(s, 12)), -12);
  for (double& s : scale) s = std::min(s, 255.0 / 4096);  // eight bits: bf16 has them
  // The product of y with the weights that these codes mean.
  const auto product = [&](const StoredWeight& stored, const std::vector<double>& scales,
                           std::int64_t scales_in_row, double by) {
    std::vector<double> w = codes;
    for (std::int64_t n = 0; n < N; ++n) {
      const RowScales<double> row{.scale = scales.data() + n * scales_in_row,
                                  .zero_point = nullptr};
      dequantise(stored, row, 0, K, w.data() + n * K);
    }
    for (double& v : w) v *= by;
    return run_reference(gemm_graph(1, N, K), {{"x", x}, {"w", w}}).at("y");
  };
  const StoredWeight grouped_weight{.format = nullptr, .group = group};
  const StoredWeight one_scale{.format = nullptr, .group = 0};
  const std::vector<double> ones(static_cast<std::size_t>(N), 1.0);
  FunctionCase c;
  c.name = fmt::format("K = {}, N = {}, groups of {}", K, N, group);
  c.hidden = hidden;
  c.numbers = {{"group", static_cast<double>(group)}};
  const std::vector<double> want = product(grouped_weight, scale, groups, factor);
  c.matrices = {{"x", 1, K, false, x, 0, K},
                {"codes", N, K, false, codes, 0, N * K, 1},
                {"scale", N, groups, false, scale, 0, N * groups},
                {"y", 1, N, true, want, stored_tolerance(K), N}};
  c.mistakes = {{"y", product(grouped_weight, scale, groups, 1),
                 "y is not multiplied by the factor of your task sheet"},
                {"y", product(one_scale, scale, groups, factor),
                 "that takes the first scale for the whole row: each group has its own"},
                {"y", product(one_scale, ones, 1, factor), "that is without scales"}};
  c.on_chip = Bytes(4 * K + 128);
  return c;
}

FunctionKey codes_function(const Student& student) {
  FunctionKey key;
  key.harness = "lab/harness/lab_11.cpp";
  key.signature =
      "void multiply(const Source& x, const Source& codes, const Source& scale, const Target& y,\n"
      "              std::int64_t group);";
  key.factor = student.factor("lab11.factor");
  key.cases = {codes_case(12, 96, 32, false, key.factor, 1),
               codes_case(9, 200, 64, false, key.factor, 2),
               codes_case(student.between("lab11.hidden_rows", 20, 40),
                          student.between("lab11.hidden_depth", 300, 420),
                          8 * student.between("lab11.hidden_group", 3, 9), true, key.factor, 3)};
  key.mistakes = {
      {"scale", 1.5, 1e9, "a scale belongs to a whole group: add the group up, then multiply once"},
      {"x", 1.5, 1e9, "x is the same for every row of codes: keep it on chip"},
      {"codes", 1.5, 1e9, "each code belongs to one sum: one load is enough"}};
  key.wrong_values = "column k belongs to group k / group, and the last group may be shorter";
  key.nan_values = "is the sum zero at the start of a row?";
  key.over_capacity = "x and a few sums, and no row of codes beside it";
  return key;
}

// Numbers in the weights of a block's linear operators.
std::int64_t linear_weights(const Graph& graph) {
  std::int64_t count = 0;
  for (const Tensor& t : graph.tensors()) {
    if (t.role == Role::weight && t.rows > 1) count += t.rows * t.cols;
  }
  return count;
}

Lab lab_number_formats(const Student& student) {
  const std::string model =
      student.pick_name("lab11.model", {"llama2-7b", "llama2-13b", "llama3-8b", "mistral-7b"});
  const ModelConfig config = load_model(model);
  const Gpu gpu = load_gpu(student.pick_name("lab11.gpu", {"a100", "h100", "h200"}));
  const std::int64_t group = student.pick("lab11.group", {32, 64, 128});
  const StoredWeight int4 = parse_stored_weight(fmt::format("int4:{}", group), "weights", "bf16");
  const std::int64_t count =
      linear_weights(build_block(config, {.phase = Phase::decode, .seq = 1, .context = 1024}));
  const double bits = 4 + 8 * int4.scale_bytes_per_element(config.D);
  const double bytes = static_cast<double>(count) * bits / 8;
  const double plain = static_cast<double>(count) * 2;
  const double ridge = ridge_point(gpu);
  const double rows = ridge * bits / 16;
  const double largest = static_cast<double>(student.between("lab11.largest", 35, 95)) / 500;

  Lab lab;
  lab.intro = fmt::format(
      "Your model: **{}**; the linear operators of one layer have {} weights. They are stored in\n"
      "int4, with one fp16 scale for each group of {} columns of a row and no zero point.\n"
      "Your GPU: {}.",
      config.title, grouped(count), group, describe_ceilings(gpu));
  lab.tasks = {
      {.id = "11.1",
       .text = "How many bits does a weight take, its part of the scale included? (4 digits)",
       .key = NumberKey{bits,
                        Dimension::plain,
                        {},
                        4,
                        {{4, "the scales take bits too: 16 for each group"},
                         {4 + 32 / static_cast<double>(group), "a scale is in fp16: 16 bits"},
                         {4 + 16, "a scale serves a whole group, not one weight"},
                         {4 + 16 / static_cast<double>(group) * 2, "one scale, and no zero point"},
                         {4 + 2 / static_cast<double>(group),
                          "2 bytes of a scale are 16 bits: bits over weights"}}},
       .hints = {"The bits of a whole group, over its weights.", "(4 x group + 16) / group."}},
      {.id = "11.2",
       .text = "How many bytes do the weights of one layer take then?",
       .key = byte_key(bytes, {{plain, "that is in bf16"},
                               {static_cast<double>(count) / 2, "the scales are missing"},
                               {bytes * 8, "bits: a byte has eight of them"},
                               {bytes * static_cast<double>(config.layers),
                                "that is the whole model: one layer is asked for"}}),
       .hints = {"Weights times 11.1, in bytes."}},
      {.id = "11.3",
       .text = "By what factor is reading these weights faster than in bf16, if nothing but bytes\n"
               "counts?",
       .key = ratio_key(plain / bytes,
                        {{4, "the scales are read too"},
                         {bytes / plain, "upside down"},
                         {32 / bits, "bf16 has 16 bits, not 32"},
                         {plain / bytes - 1, "that is how much faster, the gain: one is missing"}}),
       .hints = {"16 bits over 11.1."}},
      {.id = "11.4",
       .text = "The tensor cores multiply in bf16 all the same. Count the weights' bytes alone:\n"
               "from which number of rows M on is a GEMM with such weights no longer bound by HBM?",
       .key = whole_key(static_cast<std::int64_t>(std::ceil(rows)),
                        {{std::ceil(ridge), "that is with weights in bf16"},
                         {std::floor(rows), "there it is still just below: round up"},
                         {std::ceil(2 * rows), "a multiply and an add count two FLOPs"},
                         {std::ceil(rows / 2), "2 M FLOPs for each weight: a multiply and an add"},
                         {std::ceil(ridge * 4 / 16), "the scales are bytes too"},
                         {std::ceil(ridge * 16 / bits),
                          "fewer bytes: the ridge is reached with fewer rows, not with more"}}),
       .hints = {"FLOPs of a weight: 2 M. Bytes of a weight: 11.1 over 8. Lab 2 has the ridge.",
                 "M = ridge x bits / 16, rounded up."}},
      {.id = "11.5",
       .text = fmt::format(
           "Codes go from -7 to 7, and the largest weight of a group, {:.3f}, becomes 7. By how\n"
           "much can a weight of this group be off at most? (3 digits)",
           largest),
       .key = NumberKey{largest / kLargestCode / 2,
                        Dimension::plain,
                        {},
                        3,
                        {{largest / kLargestCode,
                          "that is a step from code to code: rounding is off by half a step"},
                         {largest / 16, "the codes are 7 steps from 0 to the largest weight"},
                         {largest / 30, "15 codes from -7 to 7 have 14 steps between them"},
                         {largest / 8 / 2, "the largest code is 7, not 8"}}},
       .hints = {"How far are the values of two neighbouring codes apart?",
                 "The largest weight over 7, and half of that."}},
      {.id = "11.6",
       .text =
           "One weight of a group is 20 times as large as any other in it. What becomes of the\n"
           "others?",
       .key = ChoiceKey{{{"a", "they keep about the errors that they had",
                          "the scale follows the largest weight, and with it every step"},
                         {"b", "they all become the code 0, and are lost", ""},
                         {"c", "they become 20 times as large as before",
                          "codes times the scale give back what was stored, but for rounding"}}},
       .hints = {"How large is a step? How large are they, counted in steps?"}},
      {.id = "11.7",
       .text = "A scale for each row of the weights can wait until the GEMM's epilogue. Why can a\n"
               "scale for each group of columns not?",
       .key = ChoiceKey{{{"a", "there are more of them than an epilogue has registers for",
                          "an epilogue loads what it needs, a column at a time: look at the sum"},
                         {"b", "the sum over the columns has mixed the groups by then", ""},
                         {"c", "they are in fp16, and an epilogue works in fp32 alone",
                          "every load of an epilogue turns numbers into fp32"}}},
       .hints = {"y[i, n] = sum over k of x[i, k] code[n, k] scale[n, k / group]: what may leave "
                 "the sum? Lab 4 asked the same of x."}},
      {.id = "11.8",
       .text = fmt::format(
           "Write `multiply` in `stub.cpp`: one row x times weights in codes of 8 bits, with a\n"
           "scale for each group, and the result times {:g} (the factor is yours alone). Load x,\n"
           "codes and scales once, store y once.",
           codes_function(student).factor),
       .key = codes_function(student),
       .hints = {"Keep x in a std::vector<float>: every row of codes needs it.",
                 "A sum for the group, times its scale, into the sum of the row.",
                 "The last group ends at x.cols()."},
       .points = 3},
  };
  return lab;
}

}  // namespace

constinit const LabDescription labs::lab_11_number_formats{
    .folder = "11-number-formats", .title = "weights of few bits", .make = lab_number_formats};

}  // namespace fuseline::lab

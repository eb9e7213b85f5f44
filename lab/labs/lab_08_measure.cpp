// Lab 8: predictions beside shipped measurements.
#include <algorithm>

#include <fmt/format.h>

#include "base/data_dir.h"
#include "base/error.h"
#include "base/format.h"
#include "lab/labs/all_labs.h"
#include "lab/labs/parts.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/gpu/plan_target.h"
#include "sim/measured/measurement.h"
#include "sim/report/prediction.h"

namespace fuseline::lab {

namespace {

MeasuredBlock measured_block(const Measurements& all, const BlockCase& wanted) {
  const auto found = find_block(all, wanted);
  FUSELINE_ASSERT(found.has_value(), wanted.label());
  return *found;
}

const MeasuredKernel& kernel_at(const MeasuredTrace& trace, const std::string& site) {
  const auto found = std::ranges::find(trace.kernels, site, &MeasuredKernel::site);
  FUSELINE_ASSERT(found != trace.kernels.end(), site);
  return *found;
}

Lab lab_measure(const Student& student) {
  const std::string folder = "scenarios/measurements/h200-pytorch";
  const Measurements all = load_measurements((data_dir() / "measurements/h200-pytorch").string());
  const std::string model = student.pick_name("lab8.model", {"llama2-7b", "llama2-70b", "gpt2-xl"});
  const ModelConfig config = load_model(model);
  const Gpu gpu = load_gpu("h200");
  const Workload work{.batch = 1, .seq = student.pick("lab8.seq", {512, 2048, 8192})};
  const BlockCase eager_case{model, "eager", work};
  const BlockCase compiled_case{model, "torch-compile", work};
  const auto composed = find_block(all, {model, "composed", work});
  const SpreadOfTimes eager = measured_block(all, eager_case).time;
  const double compiled = measured_block(all, compiled_case).time.median.value();
  const auto predicted = [&](const char* policy, Fidelity fidelity) {
    const PredictionCase c{.model = config, .gpu = gpu, .workload = work, .fidelity = fidelity};
    return simulate_replay(make_plan(policy, config, work, plan_target(c.gpu)), c).time.value();
  };
  const double roofline = predicted("eager", Fidelity::roofline);
  const double measured = eager.median.value();
  const double gain = measured / compiled;
  const double predicted_gain =
      predicted("eager", Fidelity::hierarchy) / predicted("torch-compile", Fidelity::hierarchy);

  // One trace with counters for everyone, a kernel of it by student.
  const BlockCase traced{"llama2-7b", "eager", Workload{.batch = 1, .seq = 2048}};
  const auto trace = find_trace(all, traced);
  FUSELINE_ASSERT(trace.has_value(), traced.label());
  const std::string site = student.pick_name("lab8.gemm", {"qkv", "gateup", "down"});
  const MeasuredKernel& kernel = kernel_at(*trace, site);
  const ModelConfig traced_config = load_model("llama2-7b");
  const std::int64_t N = site == "qkv"      ? traced_config.qkv_width()
                         : site == "gateup" ? 2 * traced_config.F
                                            : traced_config.D;
  const std::int64_t K = site == "down" ? traced_config.F : traced_config.D;
  const std::int64_t M = traced.workload.rows();
  const double operands = static_cast<double>((M + N) * K * 2);
  const double amplification = kernel.hbm_read.as_double() / operands;
  const MeasuredKernel& norm = kernel_at(*trace, "norm2");
  const double ideal = static_cast<double>(M * traced_config.D * 2 * 2);
  const double counted = (norm.hbm_read + norm.hbm_write).as_double();
  const double block_bytes = (trace->hbm_read() + trace->hbm_write()).as_double();

  Lab lab;
  lab.intro = fmt::format(
      "Measured on an H200 with PyTorch, times as medians of graph replays, bytes by hardware\n"
      "counters: `{0}`, read by `fuseline compare {0}`.\n"
      "Your block: **{1}**, forward, batch 1, {2} tokens. The trace: llama2-7b, eager, forward,\n"
      "batch 1, 2,048 tokens, in `kernels.csv`; your kernel in it is `{3}`.\n"
      "With a GPU of your own: `fuseline predict` has its file, and Nsight Compute its counters;\n"
      "no task needs one.",
      folder, config.title, grouped(work.seq), site);
  std::vector<Mistake> other_times = {
      {compiled, "that is torch-compile"},
      {predicted("eager", Fidelity::hierarchy), "that is predicted: read what was measured"}};
  if (composed) other_times.push_back({composed->time.median.value(), "that is composed"});
  const auto layers = static_cast<double>(config.layers);
  std::vector<Mistake> all_layers = {{measured, "that is one block: all layers are asked for"}};
  for (const Mistake& m : other_times) {
    all_layers.push_back({m.value * layers, m.diagnosis});
  }
  lab.tasks = {
      {.id = "8.1",
       .text = fmt::format(
           "The model has {} layers of your block. How long do all of them take under `eager`, if\n"
           "each takes what was measured? See `block.csv`, or `fuseline compare` with `--blocks`.",
           config.layers),
       .key = time_key(measured * layers, std::move(all_layers), "ms"),
       .hints = {"The row with your model, eager, forward, batch 1, your tokens.",
                 "The column ms_median, times the layers."}},
      {.id = "8.2",
       .text = "How many times faster was `torch-compile` measured than `eager`?",
       .key = ratio_key(gain, {{1 / gain, "upside down"},
                               {predicted_gain, "that is predicted: take the measured times"}}),
       .hints = {"Measured time over measured time."}},
      {.id = "8.3",
       .text = "What does `--fidelity roofline` predict for your block under `eager` on an H200?",
       .key = time_key(roofline,
                       {{measured, "that is measured"},
                        {predicted("eager", Fidelity::hierarchy), "that is fidelity hierarchy"}}),
       .hints = {"`fuseline predict --gpu h200 --fidelity roofline` and your block."}},
      {.id = "8.4",
       .text = "By what percentage is the roofline off? (predicted - measured) / measured, with\n"
               "its sign.",
       .key = NumberKey{(roofline - measured) / measured,
                        Dimension::ratio,
                        "%",
                        2,
                        {{(measured - roofline) / measured, "the sign: predicted minus measured"},
                         {(roofline - measured) / roofline,
                          "over what was measured, not over "
                          "what was predicted"},
                         {roofline / measured, "that is the ratio: take 100 % off"}}},
       .hints = {"8.3 minus the measured time of one block, over that time. A roofline is a lower "
                 "bound: what sign do you expect?",
                 "`fuseline compare --blocks` prints the same errors to one decimal."}},
      {.id = "8.5",
       .text = "How many bytes did all kernels of the trace move through HBM, by the counters?",
       .key = byte_key(block_bytes,
                       {{trace->hbm_read().as_double(), "only the reads: add the writes"},
                        {trace->hbm_write().as_double(), "only the writes: add the reads"}},
                       "GB"),
       .hints = {"Sum two columns over the rows of the trace.",
                 "dram_read_bytes + dram_write_bytes; `compare --blocks` shows the sum."}},
      {.id = "8.6",
       .text = fmt::format(
           "Kernel `{}` is a GEMM with M = {}, N = {}, K = {}. How many times its operands (x and\n"
           "w once each) did it read from HBM?",
           site, grouped(M), grouped(N), grouped(K)),
       .key =
           ratio_key(amplification, {{kernel.l2.as_double() / operands, "that is the L2's traffic"},
                                     {(kernel.hbm_read + kernel.hbm_write).as_double() / operands,
                                      "reads only: the result is written"},
                                     {1 / amplification, "upside down"}}),
       .hints = {"dram_read_bytes of that row over 2 (M K + N K).",
                 "Lab 6: panels that one wave pushes out are read again."}},
      {.id = "8.7",
       .text = fmt::format(
           "The trace's `norm2` reads and writes [2048, 4096] in bf16. Its *effective bandwidth*\n"
           "is the ideal bytes (that matrix twice, without the weight) over its time. What is it?"),
       .key = NumberKey{ideal / norm.time.value(),
                        Dimension::byte_rate,
                        "GB/s",
                        3,
                        {{counted / norm.time.value(),
                          "that is the measured bandwidth: effective means ideal bytes"},
                         {ideal / 2 / norm.time.value(), "it reads and it writes"},
                         {ideal / norm.time.value() / 1.073741824,
                          "GB/s count 10^9 bytes, GiB/s 2^30"}}},
       .hints = {"Ideal bytes: 2 x 2048 x 4096 x 2.", "Over the column `us`."}},
      {.id = "8.8",
       .text = fmt::format(
           "By the counters `norm2` moved only {} MB through HBM, a fraction of the ideal {} MB.\n"
           "How can that be?",
           megabytes(norm.hbm_read + norm.hbm_write),
           megabytes(Bytes(static_cast<std::int64_t>(ideal)))),
       .key = ChoiceKey{{{"a",
                          "the counters see one memory channel of several, and nobody multiplied "
                          "what they saw",
                          "they count what HBM moves: who else can serve a load?"},
                         {"b",
                          "L2 still held its input from the kernel before, and kept its output for "
                          "the next one",
                          ""},
                         {"c",
                          "HBM compressed the tensor, whose values are close to one another after "
                          "a norm",
                          "nothing compresses here: who else can serve a load?"}}},
       .hints = {"The H200's L2 has 60 MiB. How large is the tensor?"}},
      {.id = "8.9",
       .text = "A model's predictions are 20 % too low for half of the kernels and 20 % too high\n"
               "for the others, and their sum fits. What should a report show?",
       .key = ChoiceKey{{{"a", "the error of the sum: a block's time is what people ask for",
                          "errors that cancel here add up on another block"},
                         {"b", "the mean of absolute errors, the bias, and the worst kernels", ""},
                         {"c", "the error of the best kernel, and how many of them are as good",
                          "a best case says nothing about the others"}}},
       .hints = {"What does `fuseline compare` print?"}},
  };
  return lab;
}

}  // namespace

constinit const LabDescription labs::lab_08_measure{
    .folder = "08-predict-and-measure", .title = "predict, then measure", .make = lab_measure};

}  // namespace fuseline::lab

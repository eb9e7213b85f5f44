// Lab 0: the command line and what its numbers mean.
#include <algorithm>

#include <fmt/format.h>

#include "base/format.h"
#include "lab/labs/all_labs.h"
#include "lab/labs/parts.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/block/estimate.h"
#include "sim/gpu/plan_target.h"

namespace fuseline::lab {

namespace {

// Kernels that a block's time is mostly made of, as the answer may name them.
ChoiceKey slowest_kernel(const PlanEstimate& estimate) {
  const auto slowest = std::ranges::max_element(
      estimate.kernels, {}, [](const KernelEstimate& k) { return k.time.value(); });
  ChoiceKey key;
  for (const char* name : {"qkv", "attention", "oproj", "gate_up", "swiglu", "down"}) {
    key.options.push_back(
        {name, "",
         slowest->name == name ? "" : "another kernel takes longer: compare their time_us"});
  }
  return key;
}

Lab lab_tour(const Student& student) {
  const std::string model =
      student.pick_name("lab0.model", {"llama2-7b", "llama3-8b", "mistral-7b"});
  const std::string gpu_name = student.pick_name("lab0.gpu", {"h100", "h200", "a100"});
  const Workload work{.batch = 1, .seq = student.pick("lab0.seq", {1024, 2048, 4096})};
  const ModelConfig config = load_model(model);
  const Gpu gpu = load_gpu(gpu_name);
  const auto predicted = [&](const char* policy) {
    return simulate(make_plan(policy, config, work, plan_target(gpu)), gpu, Fidelity::hierarchy);
  };
  const PlanEstimate unfused = predicted("unfused");
  const PlanEstimate eager = predicted("eager");
  const PlanEstimate compiled = predicted("torch-compile");
  const auto traffic = [](const PlanEstimate& e) { return (e.hbm_read + e.hbm_write).as_double(); };
  const std::string selection =
      fmt::format("--model {} --gpu {} --seq {}", model, gpu_name, work.seq);

  Lab lab;
  lab.intro = fmt::format(
      "Your block: one layer of **{}** on **{}**, batch 1, {} tokens, in bf16.\nYour commands take "
      "`{}`.",
      config.title, gpu.title, grouped(work.seq), selection);
  lab.tasks = {
      {.id = "0.1",
       .text = fmt::format(
           "The model has {} layers, and each is such a block. How many launches fewer does\n"
           "`torch-compile` make than `eager` for all of them?\n"
           "Try `fuseline predict {} --policy eager,torch-compile`.",
           config.layers, selection),
       .key = whole_key(
           (eager.launches - compiled.launches) * config.layers,
           {{static_cast<double>(eager.launches - compiled.launches),
             "that is one block: all layers are asked for"},
            {static_cast<double>(eager.launches * config.layers),
             "that is what eager launches: take torch-compile's launches off"},
            {static_cast<double>(compiled.launches * config.layers),
             "that is what torch-compile launches: how many fewer are these than eager's?"},
            {static_cast<double>((unfused.launches - compiled.launches) * config.layers),
             "that is against unfused: compare with eager"}}),
       .hints = {"The table of `predict` has a column `launches`, for one block.",
                 "Row `eager` minus row `torch-compile`, times the layers."}},
      {.id = "0.2",
       .text = "How fast does policy `torch-compile` move bytes through HBM on average: reads and\n"
               "writes of the block over its time?",
       .key = NumberKey{traffic(compiled) / compiled.time.value(),
                        Dimension::byte_rate,
                        "GB/s",
                        3,
                        {{compiled.hbm_read.as_double() / compiled.time.value(),
                          "only the reads: add the writes"},
                         {compiled.hbm_write.as_double() / compiled.time.value(),
                          "only the writes: add the reads"},
                         {compiled.l2.as_double() / compiled.time.value(),
                          "that is the L2 traffic, which HBM does not see"},
                         {traffic(eager) / eager.time.value(),
                          "that is eager: look at torch-compile's row"},
                         {traffic(eager) / compiled.time.value(),
                          "eager's bytes over torch-compile's time: take one row"},
                         {gpu.hbm_bandwidth.value(),
                          "that is the datasheet's bandwidth: how much of it does the block use?"},
                         {gpu.hbm_bandwidth_sustained.value(),
                          "that is what HBM can sustain: how much of it does the block use?"}}},
       .hints = {"Two columns of the table belong together, and a third one divides them.",
                 "(HBM read + HBM write) in MB over the time in us; 1 MB/us is 1000 GB/s."}},
      {.id = "0.3",
       .text = "How many times faster than `eager` is `torch-compile`?",
       .key =
           ratio_key(eager.time / compiled.time,
                     {{compiled.time / eager.time, "upside down: the slower time over the faster"},
                      {eager.time / compiled.time - 1,
                       "that is how much faster it is, the gain: the ratio of the times is one "
                       "more"},
                      {1 - compiled.time / eager.time,
                       "that is the share of the time that goes: divide the times"},
                      {unfused.time / compiled.time, "that is over unfused: compare with eager"},
                      {traffic(eager) / traffic(compiled),
                       "that is the ratio of HBM bytes: time falls less, because GEMMs are "
                       "bound by the tensor cores"}}),
       .hints = {"Time of eager over time of torch-compile.",
                 "With both policies on the command line the column `speed-up` says it."}},
      {.id = "0.4",
       .text = fmt::format("Which kernel of `eager` takes the most time? `fuseline predict {}\n"
                           "--policy eager --format json` has every kernel with its `time_us`.",
                           selection),
       .key = slowest_kernel(eager),
       .hints = {"It is a GEMM.", "It has the largest weight matrix: two projections in one."}},
      {.id = "0.5",
       .text = "What does a fused kernel save when it keeps a tensor on chip that only it reads?",
       .key = ChoiceKey{{{"a", "the tensor's bytes once: the write to HBM goes, the read stays",
                          "nobody is left who would read it from HBM: the read goes too"},
                         {"b", "the tensor's bytes twice: the write to HBM and the read go", ""},
                         {"c", "the FLOPs of the operator that made the tensor, and no bytes",
                          "the operator still runs: fusion moves its result less"}}},
       .hints = {"Follow the tensor: who writes it, who reads it?"}},
      {.id = "0.6",
       .text = fmt::format("`fuseline explain {} --policy per-operator` ends with a list of\n"
                           "neighbouring operators. Why are `norm2` and `gate_up` apart?",
                           selection),
       .key = ChoiceKey{{{"a",
                          "the norm's weight and the GEMM's weights do not fit into shared memory "
                          "together",
                          "the norm's weight is one vector, a few kB: read the reason in explain"},
                         {"b",
                          "the norm runs on other SMs than the GEMM, and they cannot reach each "
                          "other's memory",
                          "a kernel runs on all SMs: read the reason in explain"},
                         {"c",
                          "the norm needs all of a row before its first result, and the GEMM "
                          "takes it in parts",
                          ""}}},
       .hints = {"Search the output for `norm2 -> gate_up`."}},
  };
  return lab;
}

}  // namespace

constinit const LabDescription labs::lab_00_tour{
    .folder = "00-tour", .title = "a tour", .make = lab_tour};

}  // namespace fuseline::lab

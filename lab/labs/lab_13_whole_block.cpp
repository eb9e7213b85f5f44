// Lab 13: a whole block in one launch.
#include <fmt/format.h>

#include "base/format.h"
#include "lab/labs/all_labs.h"
#include "lab/labs/parts.h"
#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "model/graph.h"
#include "model/policy.h"
#include "sim/block/estimate.h"
#include "sim/gpu/plan_target.h"

namespace fuseline::lab {

namespace {

constexpr std::int64_t kCounterTile = 64;  // columns of qkv that one instruction makes

Lab lab_whole_block(const Student& student) {
  const std::string model =
      student.pick_name("lab13.model", {"llama2-7b", "llama2-13b", "llama3-8b", "mistral-7b"});
  const std::string gpu_name = student.pick_name("lab13.gpu", {"h100", "h200"});
  const ModelConfig config = load_model(model);
  const Gpu gpu = load_gpu(gpu_name);
  const Workload work{.phase = Phase::decode,
                      .batch = student.pick("lab13.batch", {1, 2, 4}),
                      .seq = 1,
                      .context = student.pick("lab13.context", {1536, 2560, 3584})};
  const Graph graph = build_block(config, work);
  const double weights = bytes_of_role(graph, Role::weight).as_double();
  const double cache =
      static_cast<double>(work.batch * work.context * 2 * config.Hkv * config.d) * 2;
  const double bandwidth = gpu.hbm_bandwidth.value();
  const auto sms = static_cast<double>(gpu.sm_count);
  const double least = (weights + cache) / bandwidth;
  const auto estimate = [&](const char* policy) {
    return simulate(make_plan(policy, config, work, plan_target(gpu)), gpu, Fidelity::hierarchy);
  };
  const PlanEstimate coda = estimate("coda");
  const Plan whole = make_plan("whole-block", config, work, plan_target(gpu));
  const PlanEstimate one_launch = simulate(whole, gpu, Fidelity::hierarchy);
  const auto launches = static_cast<double>(coda.kernels.size());
  const auto phases = static_cast<std::int64_t>(whole.kernels.front().phases.size());
  const double gap = static_cast<double>(student.between("lab13.gap", 12, 28)) / 10 * 1e-6;
  const double barrier = static_cast<double>(student.between("lab13.barrier", 11, 24)) / 10 * 1e-6;
  const std::int64_t group = config.H / config.Hkv;  // query heads of a key head
  const auto tiles = [](std::int64_t columns) { return ceil_div(columns, kCounterTile); };
  const std::int64_t of_head = tiles(group * config.d) + 2 * tiles(config.d);
  const double speed_up = coda.time / one_launch.time;
  const std::string selection =
      fmt::format("--model {} --gpu {} --phase decode --batch {} --context {}", model, gpu_name,
                  work.batch, work.context);

  Lab lab;
  lab.intro = fmt::format(
      "Your model: **{}**, {} heads of width {}, {} of them with keys and values of their own,\n"
      "in bf16, on **{}** ({} SMs, HBM {:g} GB/s by datasheet).\n"
      "Each step makes one token for each of B = {} sequences with S = {} tokens in the cache.\n"
      "One block has {} bytes of weights and {} bytes of cache.\n"
      "Your commands take `{}`.",
      config.title, config.H, config.d, config.Hkv, gpu.title, gpu.sm_count, bandwidth / 1e9,
      work.batch, grouped(work.context), grouped(static_cast<std::int64_t>(weights)),
      grouped(static_cast<std::int64_t>(cache)), selection);
  lab.tasks = {
      {.id = "13.1",
       .text = "How long does a step of one block take at least? Weights and cache once, at the\n"
               "datasheet's bandwidth.",
       .key = time_key(least, {{weights / bandwidth, "the cache is read too"},
                               {cache / bandwidth, "the weights are read too"},
                               {least * static_cast<double>(config.layers),
                                "that is the whole model: one block is asked for"},
                               {2 * least, "the bytes above are bytes, not elements"}}),
       .hints = {"Bytes over bandwidth.", "(weights + cache) / the bandwidth above."}},
      {.id = "13.2",
       .text = fmt::format("`coda` runs the block as {} kernels. Suppose that HBM stands still for "
                           "{:.1f} us around\n"
                           "each launch, and is read at its datasheet's rate otherwise. Which "
                           "share of the time is\n"
                           "lost?",
                           coda.kernels.size(), gap * 1e6),
       .key = NumberKey{launches * gap / (least + launches * gap),
                        Dimension::ratio,
                        "%",
                        3,
                        {{launches * gap / least, "a share of the whole time, the loss included"},
                         {gap / (least + gap), "that is one launch"},
                         {least / (least + launches * gap), "that is the share that is not lost"}}},
       .hints = {"What is lost, over what is lost and 13.1 together."}},
      {.id = "13.3",
       .text =
           "`whole-block` runs the same programs as phases of one launch. How many grid barriers\n"
           "has its plan? `fuseline explain` shows them.",
       .key =
           whole_key(phases - 1,
                     {{static_cast<double>(phases), "those are the phases: barriers stand between"},
                      {static_cast<double>(phases) - 2, "count every line `-- grid barrier --`"},
                      {1, "that is the number of launches"},
                      {0, "every phase but the last has one behind it"}}),
       .hints = {fmt::format("`fuseline explain {} --policy whole-block`", selection)}},
      {.id = "13.4",
       .text = fmt::format(
           "A grid barrier takes {:.1f} us here. The next phase's weights may be loaded "
           "meanwhile.\n"
           "How many bytes must each SM have asked for, so that HBM is busy all the time?",
           barrier * 1e6),
       .key = byte_key(bandwidth * barrier / sms,
                       {{bandwidth * barrier, "that is of all SMs together"},
                        {bandwidth * barrier / sms * static_cast<double>(phases - 1),
                         "that is for all barriers: each is bridged by itself"},
                        {weights / sms, "that is the SM's share of the whole block's weights"},
                        {bandwidth * gap / sms, "that is the pause of a launch, in 13.2"}},
                       "kB"),
       .hints = {"Bandwidth times time are the bytes under way.", "Divide them among the SMs."}},
      {.id = "13.5",
       .text = "Why may these weights be loaded ahead of the barrier, and the activations not?",
       .key =
           ChoiceKey{
               {{"a", "weights are read by one SM each, so that no SM can load another one's part",
                 "who reads them does not matter: does anybody write them?"},
                {"b", "no SM writes a weight, but another SM may still be writing an activation",
                 ""},
                {"c", "activations are too few bytes, so that loading them ahead would not pay",
                 "it would save a round trip to L2 all the same, if it were right"}}},
       .hints = {"What does a barrier promise to those who passed it?"}},
      {.id = "13.6",
       .text = fmt::format(
           "Counters can take the place of the barrier between qkv and attention. An instruction "
           "of\n"
           "qkv makes {} columns. For how many instructions does attention of one key head wait?",
           kCounterTile),
       .key = whole_key(
           of_head,
           {{static_cast<double>(tiles((config.H + 2 * config.Hkv) * config.d)),
             "those are all of them, as with a barrier: a key head needs its own"},
            {static_cast<double>(of_head - tiles(config.d)), "it needs q, k and v"},
            {static_cast<double>(of_head - 2 * tiles(config.d)), "k and v are made by qkv too"},
            {static_cast<double>(3 * tiles(config.d)),
             "several query heads share a key head, and it serves them all"},
            {static_cast<double>(of_head * kCounterTile),
             "those are columns: an instruction makes many"}}),
       .hints = {"The queries that share this key head, one key, one value.",
                 fmt::format("(query heads of a key head + 2) x width / {}.", kCounterTile)}},
      {.id = "13.7",
       .text = "A persistent kernel must not have more thread blocks than the GPU holds at once.\n"
               "What goes wrong with more?",
       .key =
           ChoiceKey{
               {{"a",
                 "those that wait at a barrier hold the SMs that the others would have to run on",
                 ""},
                {"b",
                 "the blocks beyond that number share one SM's registers and spill all of theirs",
                 "a block starts only where there are registers for it: until then it waits"},
                {"c",
                 "the driver splits the launch in two, and each of them counts its own barriers",
                 "a launch stays one launch: blocks that find no place start later"}}},
       .hints = {"When does a block that found no place start?"}},
      {.id = "13.8",
       .text =
           "Several SMs each sum a part of K. Why are their sums added in a fixed order and not\n"
           "by atomic additions as they come?",
       .key = ChoiceKey{{{"a", "an atomic addition goes through HBM, and would double the traffic",
                          "atomics are done in L2: what differs from one run to the next?"},
                         {"b", "atomic additions are for whole numbers, and sums are in fp32",
                          "GPUs have them for fp32 too: what differs from one run to the next?"},
                         {"c", "rounding depends on the order, so that two runs would not agree",
                          ""}}},
       .hints = {"Is (a + b) + c the same as a + (b + c) in fp32?"}},
      {.id = "13.9",
       .text = "How many times faster than `coda` is `whole-block` predicted to be here?",
       .key = ratio_key(speed_up,
                        {{1 / speed_up, "upside down"},
                         {speed_up - 1, "that is the gain: the ratio of the times is one more"},
                         {launches, "that is the ratio of the launches: compare the times"},
                         {coda.time.value() / least, "that is coda over 13.1"}}),
       .hints = {fmt::format("`fuseline predict {} --policy coda,whole-block`", selection)}},
  };
  return lab;
}

}  // namespace

constinit const LabDescription labs::lab_13_whole_block{
    .folder = "13-whole-block", .title = "a block in one launch", .make = lab_whole_block};

}  // namespace fuseline::lab

// Lab 9: generating tokens one by one, and the cache of keys and values.
#include <algorithm>
#include <cmath>

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

Lab lab_decode(const Student& student) {
  const std::string model =
      student.pick_name("lab9.model", {"llama2-7b", "llama2-13b", "llama3-8b", "qwen3-8b"});
  const std::string gpu_name = student.pick_name("lab9.gpu", {"h100", "h200", "a100"});
  const ModelConfig config = load_model(model);
  const Gpu gpu = load_gpu(gpu_name);
  const Workload work{.phase = Phase::decode,
                      .batch = student.pick("lab9.batch", {6, 12, 24}),
                      .seq = 1,
                      .context = student.pick("lab9.context", {3072, 5120, 6144})};
  const Graph graph = build_block(config, work);
  const double weights = bytes_of_role(graph, Role::weight).as_double();  // of one block
  const auto B = static_cast<double>(work.batch), S = static_cast<double>(work.context);
  const auto L = static_cast<double>(config.layers);
  const auto H = static_cast<double>(config.H), Hkv = static_cast<double>(config.Hkv);
  const auto d = static_cast<double>(config.d);
  const double token = 2 * Hkv * d * 2;  // bytes of keys and values, one token of one layer
  const double cache = B * S * token;    // of one layer
  const double bandwidth = gpu.hbm_bandwidth.value();
  const double step = L * (weights + cache) / bandwidth;
  const double even = weights / (B * token);
  const double intensity = H / Hkv;
  const auto predicted = [&](const char* policy) {
    return simulate(make_plan(policy, config, work, plan_target(gpu)), gpu, Fidelity::hierarchy);
  };
  const PlanEstimate eager = predicted("eager"), compiled = predicted("torch-compile");
  const std::string selection =
      fmt::format("--model {} --gpu {} --phase decode --batch {} --context {}", model, gpu_name,
                  work.batch, work.context);

  Lab lab;
  lab.intro = fmt::format(
      "Your model: **{}**, {} layers, {} heads of width {}, {} of them with keys and values of\n"
      "their own, in bf16, on **{}** (HBM {:g} GB/s by datasheet).\n"
      "Each step makes one token for each of B = {} sequences; S = {} tokens are in the cache of\n"
      "each, the new one included. The weights of one layer have {} bytes.\n"
      "Your commands take `{}`.",
      config.title, config.layers, config.H, config.d, config.Hkv, gpu.title, bandwidth / 1e9,
      work.batch, grouped(work.context), grouped(static_cast<std::int64_t>(weights)), selection);
  lab.tasks = {
      {.id = "9.1",
       .text = "How many bytes does the cache of the whole model grow by with each token of one\n"
               "sequence?",
       .key =
           byte_key(L * token,
                    {{token, "that is one layer: all of them keep keys and values"},
                     {L * token / 2, "keys and values are both kept, of 2 bytes an element"},
                     {L * token * H / Hkv, "heads share keys and values: count those of their own"},
                     {L * token * 2, "that is fp32: bf16 has 2 bytes an element"},
                     {L * token / d,
                      "every head's key has as many elements as the head is "
                      "wide"}},
                    "kB"),
       .hints = {"Keys and values, of every layer, of the heads that have their own.",
                 "2 x heads with own keys x width x 2 bytes x layers."}},
      {.id = "9.2",
       .text = "How many bytes does the cache of the whole model have for all your sequences?",
       .key = byte_key(L * cache,
                       {{L * cache / B, "that is one sequence: there are B of them"},
                        {cache, "that is one layer"},
                        {L * token * S, "that is one sequence: there are B of them"},
                        {L * cache / 2, "keys and values are both kept"}},
                       "GB"),
       .hints = {"9.1 for each token of each sequence.", "9.1 x S x B."}},
      {.id = "9.3",
       .text = "What is the arithmetic intensity of one layer's attention in this step? FLOPs of\n"
               "its two products over the bytes of the cache; everything else is small.",
       .key = NumberKey{intensity,
                        Dimension::intensity,
                        "FLOP/B",
                        2,
                        {{intensity * B, "each sequence has a cache of its own: B cancels"},
                         {intensity / 2, "two products, and a multiply and an add count two FLOPs"},
                         {intensity * 2, "keys and values are both read, 2 bytes an element"},
                         {1 / intensity, "upside down: FLOPs over bytes"},
                         {intensity * S, "each key is used once for each head: S cancels"}}},
       .hints = {"A key of d elements: 2 d FLOPs for each head that uses it, and 2 d bytes.",
                 "How many heads share one key?"}},
      {.id = "9.4",
       .text = "Twice as many sequences: the GEMMs' time in a step stays nearly as it is. What\n"
               "does attention's do, and why?",
       .key =
           ChoiceKey{
               {{"a", "it stays as well: attention's kernels have room for more sequences",
                 "its time is the cache's bytes over the bandwidth: what happens to the bytes?"},
                {"b", "it doubles: every sequence brings a cache of its own to read", ""},
                {"c", "it is fourfold: scores are kept for all pairs of the sequences",
                 "a sequence looks at its own tokens only: there are no such pairs"}}},
       .hints = {"The weights are shared by all sequences. The cache?"}},
      {.id = "9.5",
       .text = "From which S on (a whole number of tokens, B as it is) does a step read more of\n"
               "the cache than of the layers' weights?",
       .key = whole_key(static_cast<std::int64_t>(std::floor(even)) + 1,
                        {{std::floor(even), "there it is still no more: round up"},
                         {std::ceil(even * B), "that is for one sequence: all B have a cache"},
                         {std::floor(even * B) + 1, "that is for one sequence: all B have a cache"},
                         {std::floor(even * 2) + 1, "keys and values are both read"},
                         {std::floor(even / L) + 1,
                          "one layer's weights beside one layer's cache: layers cancel"},
                         {std::floor(even * Hkv / H) + 1,
                          "heads share keys and values: count those of their own"}}),
       .hints = {"One layer's weights over the bytes that a token of all sequences adds to it.",
                 "weights / (B x 4 x heads with own keys x width), and the next whole number."}},
      {.id = "9.6",
       .text = "How long does a step of all layers take at least? Weights and cache once, at the\n"
               "datasheet's bandwidth.",
       .key = time_key(
           step,
           {{step / L, "that is one layer"},
            {L * weights / bandwidth, "the cache is read too"},
            {L * cache / bandwidth, "the weights are read too"},
            {L * (weights + cache / B) / bandwidth, "every sequence's cache is read, not one"}},
           "ms"),
       .hints = {"Bytes of all layers over the bandwidth.", "layers x weights + 9.2."}},
      {.id = "9.7",
       .text = "Keys and values in fp8 take half the bytes. By what factor does 9.6 fall then?\n"
               "Leave scales out.",
       .key = ratio_key((weights + cache) / (weights + cache / 2),
                        {{2, "only the cache halves: the weights stay as they are"},
                         {(weights + cache / 2) / (weights + cache), "upside down"},
                         {(weights + cache) / (weights / 2 + cache),
                          "that is with the weights in 8 bits and the cache in 16"}}),
       .hints = {"Weights stay, the cache halves.", "(w + c) / (w + c/2)."}},
      {.id = "9.8",
       .text = "How many times faster is `torch-compile` predicted to be than `eager` here? "
               "Compare it\n"
               "with a prompt: the same command without `--phase`, `--batch` and `--context`.",
       .key = ratio_key(eager.time / compiled.time,
                        {{compiled.time / eager.time, "upside down"},
                         {eager.time / compiled.time - 1,
                          "that is the gain: the ratio of the times is one more"},
                         {(eager.hbm_read + eager.hbm_write).as_double() /
                              (compiled.hbm_read + compiled.hbm_write).as_double(),
                          "that is the ratio of HBM bytes: many of eager's kernels move hardly "
                          "any, and cost a launch each"}}),
       .hints = {fmt::format("`fuseline predict {} --policy eager,torch-compile`", selection),
                 "A launch takes microseconds, whether its kernel moves kB or MB."}},
  };
  return lab;
}

}  // namespace

constinit const LabDescription labs::lab_09_decode{
    .folder = "09-decode", .title = "decode and the KV cache", .make = lab_decode};

}  // namespace fuseline::lab

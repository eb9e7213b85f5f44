// Lab 5: online softmax, and why fewer bytes are not as much less time.
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "lab/labs/all_labs.h"
#include "lab/labs/parts.h"
#include "model/reference.h"
#include "sim/memory/traffic.h"
#include "sim/memory/visible_keys.h"

namespace fuseline::lab {

namespace {

constexpr std::int64_t kQueryTile = 128;

struct HeadShape {
  std::int64_t T = 1, S = 1, d = 1, query_tile = 8, key_tile = 16;
  // Of the queries, a power of two, so that the values stay those of bf16. With 16 exp overflows in
  // fp32 unless the maximum is taken off, and nearly all weight lies on one key. With 1 all keys
  // count, and so does the scale.
  double size = 1;
  double scale = 0;  // 0: 1 / sqrt(d)
  bool hidden = false;
};

// One head, every key visible.
FunctionCase attention_case(const HeadShape& shape, double factor, std::uint64_t seed) {
  const auto [T, S, d, query_tile, key_tile, size, scale, hidden] = shape;
  AttentionShape attention{.T = T, .S = S, .d = d, .dtype = Dtype::bf16, .scale = scale};
  const Graph graph = attention_graph(attention);
  NamedTensors inputs = {{"q", bf16_values("q", T, d, seed)},
                         {"k", bf16_values("k", S, d, seed)},
                         {"v", bf16_values("v", S, d, seed)}};
  for (double& q : inputs.at("q")) q *= size;
  const TensorValues plain = run_reference(graph, inputs);
  NamedTensors scaled = inputs;
  for (double& v : scaled.at("v")) v *= factor;
  const TensorValues want = run_reference(graph, scaled);
  // TensorValues look into their graph.
  const auto result_with = [&](double other_scale) {
    attention.scale = other_scale;
    const Graph other = attention_graph(attention);
    return run_reference(other, scaled).at("y");
  };
  const std::vector<double> unscaled = result_with(1);
  const std::vector<double> usual_scale = result_with(0);
  FunctionCase c;
  c.name = fmt::format("{} queries, {} keys, width {}, tiles {} x {}{}", T, S, d, query_tile,
                       key_tile, size > 1 ? ", large scores" : "");
  c.hidden = hidden;
  c.numbers = {{"query_tile", static_cast<double>(query_tile)},
               {"key_tile", static_cast<double>(key_tile)},
               {"scale", graph.ops()[0].attributes.as<fuseline::AttentionShape>().scale}};
  const std::int64_t passes = ceil_div(T, query_tile);
  c.matrices = {{"q", T, d, false, inputs.at("q"), 0, T * d},
                {"k", S, d, false, inputs.at("k"), 0, passes * S * d},
                {"v", S, d, false, inputs.at("v"), 0, passes * S * d},
                {"y", T, d, true, want.at("y"), 0, T * d}};
  // Scores are sums of d products of size |score|; an error of one is an error of the exponent. The
  // largest score in sight bounds it.
  double largest = 0;
  for (const double s : want.at("scores")) largest = std::max(largest, std::abs(s));
  c.matrices.back().tolerance =
      stored_tolerance(S) +
      largest * (2 * std::sqrt(static_cast<double>(d)) + 8) * std::ldexp(1.0, -24);
  c.mistakes = {{"y", plain.at("y"), "y is not multiplied by the factor of your task sheet"},
                {"y", unscaled, "the scores are not multiplied by scale"},
                {"y", usual_scale, "scale is an argument, and not always 1 / sqrt(d)"}};
  // Q, accumulators, K and V tiles, scores, and three numbers a row, in fp32.
  c.on_chip = Bytes(
      4 * (2 * query_tile * d + 2 * key_tile * d + query_tile * key_tile + 3 * query_tile) + 256);
  return c;
}

FunctionKey attention_function(const Student& student) {
  FunctionKey key;
  key.harness = "lab/harness/lab_05.cpp";
  key.signature =
      "void attend(const Source& q, const Source& k, const Source& v, const Target& y,\n"
      "            std::int64_t query_tile, std::int64_t key_tile, float scale);";
  key.factor = student.factor("lab5.factor");
  key.cases = {
      attention_case({.T = 8, .S = 160, .d = 16, .query_tile = 4, .size = 16}, key.factor, 1),
      attention_case({.T = 20, .S = 200, .d = 24}, key.factor, 2),
      attention_case({.T = student.between("lab5.hidden_queries", 9, 30),
                      .S = student.between("lab5.hidden_keys", 210, 350),
                      .d = student.between("lab5.hidden_width", 5, 30),
                      .size = 16,
                      .hidden = true},
                     key.factor, 3),
      attention_case({.T = student.between("lab5.hidden_few", 3, 13),
                      .S = student.between("lab5.hidden_tail", 100, 170),
                      .d = student.between("lab5.hidden_narrow", 17, 30),
                      .scale = 0.125,
                      .hidden = true},
                     key.factor, 4)};
  key.mistakes = {
      {"k", 1.5, 2.5, "a second pass over the keys: online softmax needs one"},
      {"k", 2.5, 1e9, "a tile of keys serves all queries of a query tile: keep it on chip"},
      {"v", 1.5, 1e9, "a tile of values serves all queries of a query tile: keep it on chip"},
      {"q", 1.5, 1e9, "a tile of queries stays on chip while the keys stream by"}};
  key.wrong_values =
      "when a row's maximum rises, what has been summed so far (denominator and accumulator) has "
      "to be multiplied by exp(old maximum - new maximum)";
  key.nan_values = "exp overflows: take the row's maximum off every score first";
  key.over_capacity = "the scores of one tile of keys at a time, never of a whole row";
  return key;
}

// K and V bytes that the query tiles of one head load, each what it can see.
double causal_loads(const AttentionShape& shape, std::int64_t d) {
  fuseline::AttentionShape a;
  a.heads = a.kv_heads = 1;
  a.head_width = d;
  a.batch = 1;
  a.q_tokens = a.kv_tokens = shape.T;
  a.causal = true;
  std::int64_t keys = 0;
  for (std::int64_t first = 0; first < shape.T; first += kQueryTile) {
    const KeyRange seen = visible_keys(a, first, std::min(kQueryTile, shape.T - first));
    keys += seen.end - seen.begin;
  }
  return static_cast<double>(keys * d * 2 * 2);
}

// Most keys in a tile, in steps of 16, with Q [128, d] and two stages of K and V in fp16.
std::int64_t largest_key_tile(const Gpu& gpu, std::int64_t d) {
  std::int64_t keys = 0;
  while (Bytes(2 * d * (kQueryTile + 4 * (keys + 16))) <= gpu.smem_per_block_max) keys += 16;
  return keys;
}

// The same without the steps.
std::int64_t exact_key_tile(const Gpu& gpu, std::int64_t d) {
  return (gpu.smem_per_block_max.value() / (2 * d) - kQueryTile) / 4;
}

Lab lab_attention(const Student& student) {
  const AttentionShape shape{.B = student.pick("lab5.batch", {2, 4, 6}),
                             .H = student.pick("lab5.heads", {12, 20, 32}),
                             .T = student.pick("lab5.tokens", {1536, 3072, 4096}),
                             .S = student.pick("lab5.tokens", {1536, 3072, 4096}),
                             .d = student.pick("lab5.head_width", {64, 128})};
  const AttentionWork work = attention_work(shape);
  const Gpu h100 = load_gpu("h100");
  const Gpu a100 = load_gpu("a100");
  const Gpu gpu = load_gpu(student.pick_name("lab5.gpu", {"a100", "h100", "l40s"}));
  const auto fold = [&](const Gpu& g) {
    return roofline_time(work.products, work.unfused, g) /
           roofline_time(work.products, work.fused, g);
  };
  const auto products = [&](const Gpu& g) { return work.products / g.tensor_fp16; };
  const double bytes_fold = work.unfused.as_double() / work.fused.as_double();

  // Two tiles of scores of one row: maximum and sum of exponentials each.
  const double m1 = static_cast<double>(student.between("lab5.m1", 2, 5));
  const double m2 = m1 + static_cast<double>(student.between("lab5.m2", 1, 3));
  const double l1 = static_cast<double>(student.between("lab5.l1", 12, 40));
  const double l2 = static_cast<double>(student.between("lab5.l2", 3, 9)) / 2;
  const double merged = l1 * std::exp(m1 - m2) + l2;
  const double one_head = static_cast<double>(shape.S * shape.d * 2 * 2);
  const double causal = causal_loads(shape, shape.d);
  const std::int64_t tiles = ceil_div(shape.T, kQueryTile);
  const std::int64_t key_tile = largest_key_tile(gpu, shape.d);

  const FunctionKey function = attention_function(student);

  Lab lab;
  lab.intro = fmt::format(
      "Your attention: B = {}, H = {}, N = {} tokens, d = {}, in fp16, no mask unless it is said.\n"
      "Your GPU for 5.7: **{}** with {} KiB of shared memory for one block.\n"
      "Datasheet peaks and bandwidths; FLOPs are those of the two products.",
      shape.B, shape.H, grouped(shape.T), shape.d, gpu.title,
      gpu.smem_per_block_max.value() / 1024);
  lab.tasks = {
      {.id = "5.1",
       .text = fmt::format(
           "A row of scores comes in two tiles. The first has maximum {:g} and sum of\n"
           "exponentials {:g} (above its own maximum), the second maximum {:g} and sum {:g}. What\n"
           "is the sum for the whole row, above the common maximum? (4 digits)",
           m1, l1, m2, l2),
       .key = NumberKey{merged,
                        Dimension::plain,
                        {},
                        4,
                        {{l1 + l2, "the first sum is above another maximum: rescale it"},
                         {l1 + l2 * std::exp(m1 - m2),
                          "the wrong one is rescaled: the larger maximum "
                          "is the common one"},
                         {l1 * std::exp(m2 - m1) + l2, "the factor is exp(old - new), at most 1"},
                         {merged * std::exp(m2 - m1), "that is above the smaller maximum"}}},
       .hints = {"The sums are of exp(s - m). What turns m1 into m2?",
                 "l1 exp(m1 - m2) + l2, when m2 is larger."}},
      {.id = "5.2",
       .text = "A new tile of keys raises a row's maximum. What has to be rescaled?",
       .key = ChoiceKey{{{"a", "the denominator, and not the accumulated P V",
                          "the accumulator holds exponentials above the old maximum too"},
                         {"b", "the denominator and the accumulated P V", ""},
                         {"c", "neither: exp of the new tile takes care of it",
                          "what was summed so far is relative to the old maximum"}}},
       .hints = {"What was computed with the old maximum?"}},
      {.id = "5.3",
       .text = "By what factor do the bytes fall when attention is fused (lab 1)?",
       .key = ratio_key(bytes_fold, {{1 / bytes_fold, "upside down"},
                                     {1 + (bytes_fold - 1) / 2,
                                      "S counted once: it is written and read, and so is P"}}),
       .hints = {"4 tensors and 4 passes over the scores, against 4 tensors.", "1 + N / d."}},
      {.id = "5.4",
       .text = "By what factor does the roofline time fall on an **H100 SXM** (989 TFLOP/s dense\n"
               "fp16, 3,350 GB/s)?",
       .key = ratio_key(fold(h100),
                        {{bytes_fold, "that is the bytes: once fused, is HBM still the limit?"},
                         {fold(a100), "that is an A100"},
                         {(work.unfused / h100.hbm_bandwidth + products(h100)) /
                              (work.fused / h100.hbm_bandwidth + products(h100)),
                          "tensor cores and HBM work at once: the longer counts, not the sum"}}),
       .hints = {"Roofline time of each version: the longer of FLOPs / peak and bytes / bandwidth.",
                 "The fused version's limit may be another than the unfused one's."}},
      {.id = "5.5",
       .text = "And on an **A100 SXM 80 GB** (312 TFLOP/s, 2,039 GB/s)?",
       .key = ratio_key(fold(a100),
                        {{bytes_fold, "that is the bytes"}, {fold(h100), "that is an H100"}}),
       .hints = {"As 5.4, with the other ceilings."}},
      {.id = "5.6",
       .text =
           "B 8, H 16, N 2,048, d 64 in fp16: attention's bytes fall 33-fold, its roofline time\n"
           "9.5-fold on an H100 and 4.9-fold on an A100. Why?",
       .key = ChoiceKey{{{"a",
                          "online softmax spends FLOPs that the unfused version does not, and the "
                          "A100 has fewer to spend",
                          "online softmax adds a few operations a score, nothing like that"},
                         {"b",
                          "once fused, the tensor cores set the time, and they do so sooner where "
                          "the ridge point is lower",
                          ""},
                         {"c",
                          "the launches of three kernels take most of the rest, and on the A100 a "
                          "launch takes longer",
                          "a roofline knows no launches: three launches are microseconds anyway"},
                         {"d",
                          "the tensor cores are idle while softmax runs, and the A100 runs softmax "
                          "more slowly",
                          "both versions compute the same products at the same peak"}}},
       .hints = {"Compute both times of both versions: which is the longer?",
                 "After fusing, the intensity is above the ridge. The gain is ridge over unfused "
                 "intensity.",
                 "Ridge points: 295 and 153 FLOP/B."},
       .points = 2},
      {.id = "5.7",
       .text = fmt::format(
           "A thread block keeps Q [128, {}] and two stages of K and V tiles in shared memory, in\n"
           "fp16. How many keys can a tile have at most, in steps of 16?",
           shape.d),
       .key = whole_key(key_tile,
                        {{static_cast<double>(key_tile + 16), "that is 16 too many: KiB are 1024"},
                         {static_cast<double>(key_tile - 16), "16 more fit"},
                         {static_cast<double>(exact_key_tile(gpu, shape.d)),
                          "that fits, but steps of 16 are asked for: round down"},
                         {static_cast<double>(2 * key_tile), "K and V, each twice: four tiles"}}),
       .hints = {"2 bytes x d x (128 + 4 x keys) has to fit.",
                 "Solve for keys, round down to 16."}},
      {.id = "5.8",
       .text =
           "With a causal mask and tiles of 128 queries, each tile loads the keys and values\n"
           "that its last query can see, from L2. How many bytes of K and V does one head load?",
       .key =
           byte_key(causal, {{one_head, "once only: every tile of queries loads its keys again"},
                             {one_head * static_cast<double>(tiles),
                              "that is without the mask: early tiles of "
                              "queries see few keys"},
                             {causal / 2, "K or V: both are loaded"},
                             {one_head * static_cast<double>(tiles) / 2,
                              "about half of all, but the tile on the diagonal is loaded whole"}}),
       .hints = {"Tile i (from 1) sees 128 i keys.", "4 d bytes x 128 x (1 + 2 + ... + N/128)."}},
      {.id = "5.9",
       .text = "Write `attend` in `stub.cpp`: one head of attention by online softmax. Load each\n"
               "query once, each key and value once for every tile of queries, store y once. Only\n"
               "one tile of keys fits on chip.",
       .key = attention_function(student),
       .hints = {"Loop over query tiles; inside, over key tiles; inside, over rows of the tile.",
                 "Per row: maximum m = -infinity, denominator l = 0, accumulator of d zeros.",
                 "new m = max(m, tile's maximum); factor = exp(m - new m); l and the accumulator "
                 "times factor; then add the tile's exponentials and their products with V."},
       .points = 3},
  };
  return lab;
}

}  // namespace

constinit const LabDescription labs::lab_05_attention{
    .folder = "05-attention", .title = "online softmax and fused attention", .make = lab_attention};

}  // namespace fuseline::lab

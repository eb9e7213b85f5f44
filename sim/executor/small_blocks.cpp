#include "sim/executor/small_blocks.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "model/activation_formats/stored_activation.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/cache_formats/stored_cache.h"
#include "model/formats/stored_weight.h"

namespace fuseline::executor {

namespace {

// What stands around the layers is planned without what a layer before it would leave.
bool is_end(const std::string& block) {
  return std::ranges::any_of(std::array<std::string_view, 3>{"embed", "head", "final"},
                             [&](std::string_view end) { return block.starts_with(end); });
}

bool has_two_kinds(const std::string& block) {
  constexpr std::array<std::string_view, 4> kBoth{"jamba", "mla", "mamba", "mamba2"};
  return std::ranges::find(kBoth, block) != kBoth.end();
}

Workload small_work(Phase phase) {
  Workload work;
  work.phase = phase;
  work.batch = phase == Phase::decode ? 3 : 2;
  work.seq = phase == Phase::decode ? 2 : 37;
  work.context = phase == Phase::decode ? 70 : 0;
  return work;
}

// An encoder keeps no cache, and says so when it is built.
bool has_phase(const SmallBlock& block, const Workload& work) {
  try {
    static_cast<void>(build_block(block.config, work));
    return true;
  } catch (const InputError&) {
    return false;
  }
}

void add_formats(std::vector<SmallCase>& cases, const std::string& phase, const Workload& work) {
  for (const std::string& name : weight_format_names()) {
    cases.push_back({phase + ", weights " + name, work});
    cases.back().work.formats.weights = parse_stored_weight(name, "", "");
  }
  for (const std::string& name : activation_format_names()) {
    cases.push_back({phase + ", activations " + name, work});
    Formats& formats = cases.back().work.formats;
    formats.activations = parse_stored_activation(name, "", "");
    formats.weights = parse_stored_weight(weights_for(formats.activations), "", "");
  }
  if (work.phase != Phase::decode) return;
  for (const std::string& name : cache_format_names()) {
    cases.push_back({phase + ", cache " + name, work});
    cases.back().work.formats.cache = parse_stored_cache(name, "", "");
  }
}

}  // namespace

ModelConfig small_model(const std::string& block) {
  ModelConfig c;
  c.name = "small";
  c.blocks = {{.block = block}};
  c.layers = 32;
  c.D = 256;
  c.F = 384;
  c.H = 4;
  c.Hkv = 2;
  c.d = 64;
  c.V = 31;
  c.max_positions = 64;
  c.norm_eps = 1e-5;
  c.values = {{"text_tokens", std::int64_t{3}},
              {"qk_norm", false},
              {"biases", false},
              {"exact_gelu", false},
              {"E", std::int64_t{5}},
              {"k", std::int64_t{2}},
              {"all_scores", false},
              {"sigmoid_scores", true},
              {"factor", 2.5},
              {"N", std::int64_t{4}},
              {"P", std::int64_t{64}},
              {"groups", std::int64_t{1}},
              {"rank", std::int64_t{128}},
              {"chunk", std::int64_t{8}},
              {"attends", false},
              {"dn", std::int64_t{10}},
              {"dr", std::int64_t{4}},
              {"dv", std::int64_t{64}},
              {"rkv", std::int64_t{128}},
              {"rq", std::int64_t{128}},
              {"shared", std::int64_t{2}},
              {"source_tokens", std::int64_t{7}},
              {"patch_numbers", std::int64_t{128}},
              {"classes", std::int64_t{9}},
              {"text_width", std::int64_t{128}},
              {"pooled_width", std::int64_t{128}},
              {"time_width", std::int64_t{128}},
              {"parallel", true}};
  return c;
}

std::vector<SmallBlock> small_blocks() {
  std::vector<SmallBlock> all;
  for (const std::string& block : block_names()) {
    if (is_end(block)) continue;
    all.push_back({block, small_model(block)});
    if (!has_two_kinds(block)) continue;
    all.push_back({block + "-dense", small_model(block)});
    all.back().config.values["E"] = std::int64_t{0};
    all.back().config.values["attends"] = true;
  }
  return all;
}

std::vector<SmallCase> cases_of(const SmallBlock& block) {
  std::vector<SmallCase> cases;
  for (const Phase phase : {Phase::forward, Phase::decode, Phase::train}) {
    Workload work = small_work(phase);
    if (!has_phase(block, work)) continue;
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
      work.dtype = dtype;
      cases.push_back({fmt::format("{}, {}", name_of(phase), name_of(dtype)), work});
    }
    work.dtype = Dtype::bf16;
    if (phase != Phase::train) add_formats(cases, std::string(name_of(phase)), work);
  }
  return cases;
}

}  // namespace fuseline::executor

#include "model/blocks/block.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/backward.h"
#include "model/blocks/block_text.h"

namespace fuseline {

namespace {

// Shipped blocks do not change while the program runs, and every prediction asks for one.
std::shared_ptr<const BlockText> shipped(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const BlockText>> read;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const BlockText>& text = read[name];
  if (text == nullptr) text = load_block_text(name);
  return text;
}

Graph in_phase(Graph forward, const Workload& workload) {
  return workload.phase == Phase::train ? differentiate(forward) : std::move(forward);
}

// Embeddings and the LM head keep the workload's type, as quantisers leave them.
Workload in_own_type(Workload workload) {
  workload.formats = {};
  return workload;
}

// All that decides what graph a text becomes.
struct GraphSource {
  std::shared_ptr<const BlockText> text;
  ParameterValues values;
  Workload workload;

  friend bool operator==(const GraphSource& a, const GraphSource& b) {
    // By name, so that a workload's new member does not compile here until it is compared.
    const auto& [phase, batch, seq, context, dtype, formats, routing] = a.workload;
    const Workload& w = b.workload;
    return a.text == b.text && phase == w.phase && batch == w.batch && seq == w.seq &&
           context == w.context && dtype == w.dtype && formats == w.formats &&
           routing == w.routing && a.values == b.values;
  }
};

// The graphs built last. Every policy, GPU and claim asks for the same few, and to build one takes
// far longer than to copy it.
class LatestGraphs {
 public:
  std::shared_ptr<const Graph> of(const GraphSource& source) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(built_, source, &Built::source);
    if (found == built_.end()) return nullptr;
    std::rotate(built_.begin(), found, found + 1);
    return built_.front().graph;
  }
  void add(GraphSource source, std::shared_ptr<const Graph> graph) {
    constexpr std::size_t kMost = 32;
    const std::lock_guard lock(mutex_);
    if (built_.size() == kMost) built_.pop_back();
    built_.insert(built_.begin(), {std::move(source), std::move(graph)});
  }

 private:
  struct Built {
    GraphSource source;
    std::shared_ptr<const Graph> graph;
  };
  std::mutex mutex_;
  std::vector<Built> built_;  // the latest used first
};

Graph build(const ModelConfig& config, const BlockUse& use, const Workload& workload) {
  static LatestGraphs latest;
  GraphSource source{text_of(use), block_values(config, use), workload};
  if (const auto known = latest.of(source)) return *known;
  auto graph = std::make_shared<const Graph>(
      in_phase(build_graph(*source.text, source.values, workload), workload));
  latest.add(std::move(source), graph);
  return *graph;
}

}  // namespace

std::shared_ptr<const BlockText> text_of(const BlockUse& use) {
  return use.text != nullptr ? use.text : shipped(use.block);
}

bool keeps_cache(const BlockUse& use) {
  const auto text = text_of(use);
  return text->calls("cache") || text->calls("kept") || text->calls("recent");
}

bool has_experts(const BlockUse& use) { return text_of(use)->calls("expert_linear"); }

Workload workload_of(const ModelConfig& config, const BlockUse& use, Workload workload) {
  if (use.tokens.empty()) return workload;
  const ParameterValues values = block_values(config, use);
  const auto found = values.find(use.tokens);
  FUSELINE_ASSERT(found != values.end(), use.tokens);
  workload.seq = std::get<std::int64_t>(found->second);
  return workload;
}

bool has_parameter(const ModelConfig& config, const std::string& name) {
  return std::any_of(config.blocks.begin(), config.blocks.end(), [&](const BlockUse& use) {
    const std::vector<std::string> names = parameter_names(*text_of(use));
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

bool ends_have_parameter(const ModelConfig& config, const std::string& name) {
  return std::ranges::any_of(std::array{config.entry, config.exit}, [&](const std::string& end) {
    if (end.empty()) return false;
    const std::vector<std::string> names = parameter_names(*text_of({.block = end}));
    return std::ranges::find(names, name) != names.end();
  });
}

ParameterValues block_values(const ModelConfig& c, const BlockUse& use) {
  ParameterValues out;
  const std::pair<const char*, std::int64_t> letters[] = {{"D", c.D},
                                                          {"F", c.F},
                                                          {"H", c.H},
                                                          {"Hkv", c.Hkv},
                                                          {"d", c.d},
                                                          {"V", c.V},
                                                          {"max_positions", c.max_positions}};
  for (const auto& [letter, size] : letters)
    if (size > 0) out[letter] = size;
  out["sliding_window"] = c.sliding_window;
  out["norm_eps"] = c.norm_eps;
  out["qkv_bias"] = c.qkv_bias;
  out["out_bias"] = c.out_bias;
  out["mlp_bias"] = c.mlp_bias;
  for (const ParameterValues* more : {&c.values, &use.values})
    for (const auto& [name, value] : *more) out[name] = value;
  return out;
}

Graph build_block(const ModelConfig& config, const Workload& workload) {
  FUSELINE_ASSERT(!config.blocks.empty(), config.name);
  return build(config, config.blocks.front(), workload);
}

Graph build_block(const ModelConfig& config, const BlockUse& use, const Workload& workload) {
  return build(config, use, workload);
}

Graph build_end(const ModelConfig& config, const std::string& block, const Workload& workload) {
  FUSELINE_ASSERT(!block.empty(), config.name);
  return build(config, {.block = block}, in_own_type(workload));
}

Graph build_entry(const ModelConfig& config, const Workload& workload) {
  return build_end(config, config.entry, workload);
}

Graph build_exit(const ModelConfig& config, const Workload& workload) {
  return build_end(config, config.exit, workload);
}

}  // namespace fuseline

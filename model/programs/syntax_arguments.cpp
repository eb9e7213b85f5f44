#include "model/programs/syntax_arguments.h"

#include <string>

#include "model/activation_formats/stored_activation.h"

namespace fuseline {

void attention_arguments(Syntax& line, AttentionShape& s) {
  line.number("heads", s.heads);
  line.number("kv_heads", s.kv_heads);
  line.number("head_width", s.head_width);
  line.number("value_width", s.value_width, 0);
  line.number("batch", s.batch, 1);
  line.number("tokens", s.q_tokens);
  line.number("context", s.kv_tokens);
  line.flag("causal", s.causal);
  line.number("window", s.window, 0);
  line.number("prefix", s.prefix, 0);
  line.real("scale", s.scale, 0);
  line.real("softcap", s.softcap, 0);
  cache_argument(line, "cache", s.cache);
}

void scan_arguments(Syntax& line, ScanShape& s) {
  line.number("heads", s.heads);
  line.number("groups", s.groups);
  line.number("head_width", s.head_width);
  line.number("state_width", s.state_width);
  line.number("batch", s.batch, 1);
  line.number("tokens", s.tokens);
  line.number("chunk", s.chunk, 64);
}

void convolution_arguments(Syntax& line, ConvolutionShape& s) {
  line.number("batch", s.batch, 1);
  line.number("tokens", s.tokens);
  line.number("taps", s.taps);
}

void choice_arguments(Syntax& line, ExpertChoice& c) {
  static constexpr std::string_view kWeights[] = {"softmax", "softmax_of_all", "sigmoid"};
  line.number("count", c.count, 1);
  int weights = static_cast<int>(c.weights);
  line.choice("weights", weights, kWeights);
  c.weights = static_cast<GateWeights>(weights);
  line.real("factor", c.factor, 1);
  rows_arguments(line, c.loads);
}

void rows_arguments(Syntax& line, RaggedRows& r) {
  line.numbers("groups", r.groups);
  line.flag("assumed", r.assumed);
  line.flag("b_is_kn", r.b_is_kn);
  weight_argument(line, "weight", r.weight);
  activation_argument(line, "activation", r.activation);
}

void part_arguments(Syntax& line, ColumnPart& p) {
  line.number("group", p.group, 0);
  line.number("begin", p.begin, 0);
  line.number("step", p.step, 1);
  line.number("count", p.count, 0);
}

void weight_argument(Syntax& line, const char* name, StoredWeight& w) {
  line.text(name, w.name(), [&](const std::string& text) {
    const bool pairs = w.pairs;
    w = parse_stored_weight(text, name, "");
    w.pairs = pairs;
  });
  line.flag(std::string(name) + "_pairs", w.pairs);
}

void activation_argument(Syntax& line, const char* name, StoredWeight& a) {
  line.text(name, a.name(),
            [&](const std::string& text) { a = parse_stored_activation(text, name, ""); });
}

void cache_argument(Syntax& line, const char* name, StoredCache& cache) {
  line.text(name, cache.name(),
            [&](const std::string& text) { cache = parse_stored_cache(text, name, ""); });
}

}  // namespace fuseline

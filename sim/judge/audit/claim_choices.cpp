#include "sim/judge/audit/claim_choices.h"

#include <optional>
#include <utility>

#include "model/activation_formats/stored_activation.h"
#include "model/config/model_files.h"
#include "model/config/several_gpus.h"
#include "model/policy.h"
#include "sim/gpu/gpu.h"

namespace fuseline::audit {

namespace {

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const PolicyInfo& p : policies()) names.push_back(p.name);
  return names;
}

std::vector<std::string> gpu_words(const TomlTable& table) {
  const std::vector<std::string> names = gpu_names();
  try {
    return table.words("gpu", names);
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    const std::optional<std::string> one = counted_gpu(problem.value, names);
    if (!one) throw;
    problem.message = kSeveralGpusMessage;
    problem.nearest = nearest_name(*one, names);
    throw InputError(std::move(problem));
  }
}

// The word for weights without a number format of their own.
constexpr const char* kOwnType = "own";

// Reads one field of [setting] or [try] into the choices.
struct ChoiceField {
  const char* key;
  void (*read)(const TomlTable&, Choices&);
};

// "own" is no format.
template <class Format, class Parse>
void read_formats(const TomlTable& t, const char* key, const char* example, Parse parse,
                  std::vector<Format>& to) {
  for (const std::string& text : t.texts(key)) {
    try {
      to.push_back(parse(text, key, kOwnType));
    } catch (const InputError& error) {
      t.fail_at(error.problem());
    }
  }
  if (to.empty()) t.fail(key, "names no number format", example);
}

const std::vector<ChoiceField>& choice_fields() {
  static const IntegerRange sizes = {1, kLargestDimension};
  static const std::vector<ChoiceField> fields = {
      {"model", [](const TomlTable& t, Choices& c) { c.models = t.words("model", model_names()); }},
      {"gpu", [](const TomlTable& t, Choices& c) { c.gpus = gpu_words(t); }},
      {"phase",
       [](const TomlTable& t, Choices& c) {
         for (const std::string& word : t.words("phase", {"forward", "train", "decode"})) {
           c.phases.push_back(parse_phase(word, "phase"));
         }
       }},
      {"batch", [](const TomlTable& t, Choices& c) { c.batches = t.wholes("batch", sizes); }},
      {"seq", [](const TomlTable& t, Choices& c) { c.seqs = t.wholes("seq", sizes); }},
      {"context", [](const TomlTable& t, Choices& c) { c.contexts = t.wholes("context", sizes); }},
      {"dtype",
       [](const TomlTable& t, Choices& c) {
         for (const std::string& word : t.words("dtype", {"bf16", "fp16", "fp32"})) {
           c.dtypes.push_back(parse_dtype(word, "dtype"));
         }
       }},
      {"weights",
       [](const TomlTable& t, Choices& c) {
         read_formats(t, "weights", "\"int4\", \"own\"", parse_stored_weight, c.weights);
       }},
      {"activations",
       [](const TomlTable& t, Choices& c) {
         read_formats(t, "activations", "\"fp8\", \"own\"", parse_stored_activation, c.activations);
       }},
      {"kv",
       [](const TomlTable& t, Choices& c) {
         read_formats(t, "kv", "\"fp8\", \"own\"", parse_stored_cache, c.caches);
       }},
      {"baseline",
       [](const TomlTable& t, Choices& c) { c.baselines = t.words("baseline", policy_names()); }},
      {"policy",
       [](const TomlTable& t, Choices& c) { c.policies = t.words("policy", policy_names()); }},
      {"weight_bits",
       [](const TomlTable& t, Choices& c) {
         c.weight_bits = t.wholes("weight_bits", {1, 32});
       }},
      {"price_per_hour",
       [](const TomlTable& t, Choices& c) {
         c.prices = t.reals("price_per_hour", {1e-6, kMostPrice});
       }},
      {"level",
       [](const TomlTable& t, Choices& c) {
         c.levels = t.words("level", {"l2", "smem", "registers"});
       }},
  };
  return fields;
}

}  // namespace

void read_choices(const TomlTable& table, Claim& claim) {
  std::vector<std::string> keys;
  for (const ChoiceField& f : choice_fields()) keys.emplace_back(f.key);
  std::optional<TomlTable> setting, trial;
  if (table.has("setting")) setting = table.table("setting");
  if (table.has("try")) trial = table.table("try");
  for (const auto& part : {setting, trial}) {
    if (part) part->refuse_other_keys(keys);
  }
  for (const ChoiceField& f : choice_fields()) {
    const bool stated = setting && setting->has(f.key);
    if (stated) {
      f.read(*setting, claim.choices);
      claim.stated.emplace_back(f.key);
    }
    if (!trial || !trial->has(f.key)) continue;
    if (stated) trial->fail(f.key, "the source states it: [setting] has it too");
    f.read(*trial, claim.choices);
  }
}

void fill_defaults(Claim& claim) {
  Choices& c = claim.choices;
  const auto fill = [](auto& values, auto defaults) {
    if (values.empty()) values = std::move(defaults);
  };
  fill(c.gpus, gpu_names());
  fill(c.batches, std::vector<std::int64_t>{1});
  fill(c.seqs, std::vector<std::int64_t>{512, 2048, 8192});
  fill(c.contexts, std::vector<std::int64_t>{512, 2048, 8192});
  fill(c.dtypes, std::vector<Dtype>{Dtype::bf16});
  fill(c.weights, std::vector<StoredWeight>{{}});
  fill(c.caches, std::vector<StoredCache>{{}});
  fill(c.activations, std::vector<StoredWeight>{{}});
  // Without a baseline the question is whether it fits, not whether fusing makes it fit.
  if (claim.kind != Kind::fits_in_memory) {
    fill(c.baselines, std::vector<std::string>{"unfused", "composed", "eager", "torch-compile"});
  }
  fill(c.policies, std::vector<std::string>{"coda"});
  fill(c.weight_bits, std::vector<std::int64_t>{16});
  fill(c.levels, std::vector<std::string>{"l2", "smem", "registers"});
}

}  // namespace fuseline::audit

// Which architecture a config.json is of, and what all have in common. hf_families/ reads them.
#include "model/config/hf_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/json_text.h"
#include "model/config/hf_families.h"
#include "model/config/hf_quantisation.h"
#include "model/config/hf_refused.h"

namespace fuseline {
namespace {

// "Llama" + "ForCausalLM" is ours; "Llama4ForCausalLM" and "Qwen2MoeForCausalLM" are other models.
constexpr std::string_view kClassEndings[] = {"For", "Model", "LMHead", "DoubleHeads", "TextModel"};

std::string supported() {
  std::vector<std::string> words;
  for (const HfFamily* family : hf_families::kAll)
    words.push_back(fmt::format("{} ({}...)", family->model_type, family->architecture));
  return fmt::format("{}", fmt::join(words, ", "));
}

const HfFamily* family_of_type(std::string_view type) {
  for (const HfFamily* family : hf_families::kAll)
    if (type == family->model_type) return family;
  return nullptr;
}

// The family that a class name such as "LlamaForCausalLM" belongs to, if it is one of ours.
const HfFamily* family_of_class(std::string_view architecture) {
  for (const HfFamily* family : hf_families::kAll) {
    if (!architecture.starts_with(family->architecture)) continue;
    const std::string_view rest =
        architecture.substr(std::string_view(family->architecture).size());
    for (const std::string_view ending : kClassEndings)
      if (rest.starts_with(ending)) return family;
  }
  return nullptr;
}

// architectures decides where it is written, since it names the code that runs; model_type must
// agree. Files of the diffusers library have _class_name.
const HfFamily& read_family(const HfFields& fields) {
  if (const nlohmann::json* name = fields.find("_class_name")) {
    for (const HfFamily* family : hf_families::kAll)
      if (family->class_name != nullptr && *name == family->class_name) return *family;
    fields.fail("_class_name", *name, "unsupported architecture", supported());
  }
  const std::string type = fields.text_or("model_type", "");
  const HfFamily* const of_type = family_of_type(type);
  if (!type.empty() && of_type == nullptr) {
    fields.fail("model_type", *fields.find("model_type"), "unsupported architecture", supported());
  }
  const nlohmann::json* architectures = fields.find("architectures");
  if (architectures == nullptr || (architectures->is_array() && architectures->empty())) {
    if (of_type != nullptr) return *of_type;
    throw InputError({.file = fields.file(),
                      .field = "model_type",
                      .message = "neither model_type nor architectures says what the model is",
                      .allowed = supported()});
  }
  if (!architectures->is_array() || !architectures->front().is_string()) {
    fields.fail("architectures", *architectures, "is not a list of texts", supported());
  }
  const nlohmann::json& first = architectures->front();
  const HfFamily* named = family_of_class(first.get_ref<const std::string&>());
  if (named == nullptr)
    fields.fail("architectures", first, "unsupported architecture", supported());
  if (of_type != nullptr && of_type != named) {
    fields.fail("architectures", first, "disagrees with model_type = '" + type + "'", supported());
  }
  return *named;
}

// Our field names of check_config() as the file spells them.
std::string spelling(const HfFamily& family, const std::string& field) {
  for (const auto& [ours, theirs] : family.spellings)
    if (field == ours) return theirs;
  return field;
}

// "meta-llama/Llama-2-7b-hf" and ".../Llama-2-7b-hf/config.json" both give "Llama-2-7b-hf".
std::string model_name(const HfFields& fields, const std::string& type) {
  namespace fs = std::filesystem;
  std::string written = fs::path(fields.text_or("_name_or_path", "")).filename().string();
  if (!written.empty()) return written;
  const fs::path path(fields.file());
  if (path.filename() != "config.json") return path.stem().string();
  const std::string folder = path.parent_path().filename().string();
  return folder.empty() || folder == "." || folder == ".." ? type : folder;
}

}  // namespace

std::vector<std::string> hf_model_types() {
  std::vector<std::string> types;
  for (const HfFamily* family : hf_families::kAll) types.emplace_back(family->model_type);
  return types;
}

ModelConfig parse_hf_config(const std::string& text, const std::string& file) {
  const HfFields fields(parse_json(text, file), file);
  const HfFamily& family = read_family(fields);
  ModelConfig config = family.read(fields);
  refuse_unpredicted_fields(fields.object(), family, config.d, file);
  config.formats = read_hf_formats(fields.object(), file);
  config.name = model_name(fields, family.model_type);
  config.title = fmt::format("{} (Hugging Face {})", config.name, family.model_type);
  try {
    check_config(config, file);
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    problem.field = spelling(family, problem.field);
    throw InputError(std::move(problem));
  }
  return config;
}

}  // namespace fuseline

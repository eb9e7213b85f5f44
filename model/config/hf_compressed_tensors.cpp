#include "model/config/hf_compressed_tensors.h"

#include <fmt/format.h>

#include "model/activation_formats/stored_activation.h"
#include "model/config/hf_written.h"

namespace fuseline {
namespace {

using Json = nlohmann::json;

// "float8 channel", by which the kinds of weights and activations are told apart.
std::string kind_of(const QuantisationObject& q) {
  return fmt::format("{}{} {}", q.word("type"), q.whole("num_bits"), q.word("strategy"));
}

// Without a group in the file, in the place where one is meant.
StoredWeight read_weights(const QuantisationObject& q) {
  if (const Json* order = q.find("actorder"); order != nullptr)
    if (*order == "group" || *order == "dynamic" || *order == true)
      q.fail("actorder", written(*order),
             "columns in the order of their activations need gathers that are not predicted yet",
             "null, \"weight\" or \"static\"");
  const std::string kind = kind_of(q);
  const bool symmetric = q.flag("symmetric", true);
  const auto plain = [](const char* name) { return parse_stored_weight(name, "weights", ""); };
  if (kind == "int4 group") return q.format(symmetric ? "int4" : "int4-zero");
  if (!symmetric)
    q.fail("symmetric", "false", "zero points are predicted for int4 in groups alone", "true");
  if (kind == "float8 channel") return plain("fp8");
  if (kind == "int8 channel") return plain("int8");
  if (kind == "int4 channel") return plain("int4:0");
  if (kind == "int8 group") return q.format("int8");
  if (kind == "float4 tensor_group" && q.whole("group_size") == 16) return plain("nvfp4");
  if (kind == "float8 block") {
    const Json* block = q.find("block_structure");
    if (block == nullptr || *block != Json::array({128, 128}))
      q.fail("block_structure", block == nullptr ? "" : block->dump(),
             "blocks of another size are not predicted", "[128, 128]");
    return plain("fp8-block");
  }
  q.fail("strategy", kind, "weights of this kind are not predicted",
         "float 8 by channel or in blocks, int 8 by channel or group, int 4 by channel or group, "
         "float 4 by tensor_group of 16");
}

StoredWeight read_activations(const QuantisationObject& q, const StoredWeight& weights) {
  const Json* dynamic = q.find("dynamic");
  if (dynamic == nullptr || *dynamic != true)
    q.fail("dynamic", dynamic == nullptr ? "" : written(*dynamic),
           "scales that were found before the run are not predicted", "true");
  if (!q.flag("symmetric", true))
    q.fail("symmetric", "false", "activations with zero points are not predicted", "true");
  const std::string kind = kind_of(q);
  const auto of_kind = [&](const char* name) -> StoredWeight {
    const StoredWeight rows = parse_stored_activation(name, "input_activations", "");
    if (weights_for(rows) != weights.name())
      q.fail("strategy", kind,
             "is multiplied by weights in " + weights_for(rows) + ", not in " + weights.name(),
             "activations of the weights' kind, or null");
    return rows;
  };
  if (kind == "float8 token") return of_kind("fp8");
  if (kind == "int8 token") return of_kind("int8");
  if (kind == "float8 group" && q.whole("group_size") == 128) return of_kind("fp8-block");
  q.fail("strategy", kind, "activations of this kind are not predicted",
         "float 8 or int 8 by token, float 8 by group of 128, or null");
}

}  // namespace

Formats read_compressed_tensors(const QuantisationObject& object) {
  object.refuse_exceptions("ignore");
  const QuantisationObject groups = object.member("config_groups");
  const Json& all = *object.find("config_groups");
  if (all.size() != 1)
    object.fail("config_groups", fmt::format("{} groups", all.size()),
                "layers in several formats are not predicted yet", "one group");
  const QuantisationObject group = groups.member(all.begin().key());
  const Json* targets = group.find("targets");
  if (targets == nullptr || *targets != Json::array({"Linear"}))
    group.fail("targets", targets == nullptr ? "" : targets->dump(),
               "a choice of layers is not predicted yet", "[\"Linear\"]");
  Formats formats{.weights = read_weights(group.member("weights"))};
  if (group.find("input_activations") != nullptr)
    formats.activations = read_activations(group.member("input_activations"), formats.weights);
  return formats;
}

}  // namespace fuseline

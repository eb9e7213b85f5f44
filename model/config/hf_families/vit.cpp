#include "model/config/hf_families.h"

namespace fuseline {

namespace in_vit {
namespace {

// The classes are counted by their labels: a file without them has two, as transformers says.
std::int64_t classes_of(const HfFields& fields) {
  const nlohmann::json* labels = fields.find("id2label");
  const bool named = labels != nullptr && labels->is_object() && !labels->empty();
  return named ? static_cast<std::int64_t>(labels->size()) : fields.whole_or("num_labels", 2);
}

// An encoder of image patches.
ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_act", {"gelu", "gelu_new", "gelu_pytorch_tanh"});
  ModelConfig c;
  c.blocks = {{.block = "encoder"}};
  c.entry = "embed_patches";
  c.exit = "head_classes";
  c.layers = fields.whole("num_hidden_layers", kMostLayers);
  c.D = fields.whole("hidden_size");
  c.F = fields.whole("intermediate_size");
  c.H = fields.whole("num_attention_heads");
  c.Hkv = c.H;
  c.d = head_width(fields, "num_attention_heads", c.D, c.H);
  const std::int64_t patch = fields.whole_or("patch_size", 16);
  const std::int64_t across = fields.whole_or("image_size", 224) / patch;
  c.max_positions = across * across + 1;
  c.values["patch_numbers"] = fields.whole_or("num_channels", 3) * patch * patch;
  c.values["classes"] = classes_of(fields);
  c.norm_eps = fields.real_or("layer_norm_eps", 1e-12);
  c.qkv_bias = fields.flag_or("qkv_bias", true);
  c.out_bias = c.mlp_bias = true;
  c.values["exact_gelu"] = fields.text_or("hidden_act", "gelu") == "gelu";
  return c;
}

constexpr HfSpelling kSpellings[] = {{"layers", "num_hidden_layers"}, {"D", "hidden_size"},
                                     {"F", "intermediate_size"},      {"H", "num_attention_heads"},
                                     {"Hkv", "num_attention_heads"},  {"d", "num_attention_heads"},
                                     {"norm_eps", "layer_norm_eps"}};
constexpr HfRefused kRefused[] = {
    {"sliding_window", HfNeutral::zero, "the architecture has no sliding window"}};

}  // namespace
}  // namespace in_vit

constinit const HfFamily hf_families::vit{.model_type = "vit",
                                          .architecture = "ViT",
                                          .read = in_vit::read,
                                          .spellings = in_vit::kSpellings,
                                          .refused = in_vit::kRefused,
                                          .positions = "absolute"};

}  // namespace fuseline

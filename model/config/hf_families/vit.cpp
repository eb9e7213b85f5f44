#include "model/config/hf_families.h"

namespace fuseline {

namespace in_vit {
namespace {

// An encoder of image patches; the patches' own product and the classifier are not predicted.
ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_act", {"gelu", "gelu_new", "gelu_pytorch_tanh"});
  ModelConfig c;
  c.blocks = {{.block = "encoder"}};
  c.entry = c.exit = "";
  c.layers = fields.whole("num_hidden_layers", kMostLayers);
  c.D = fields.whole("hidden_size");
  c.F = fields.whole("intermediate_size");
  c.H = fields.whole("num_attention_heads");
  c.Hkv = c.H;
  c.d = head_width(fields, "num_attention_heads", c.D, c.H);
  c.max_positions = kLargestDimension;
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

#include <string>

#include "model/config/hf_families.h"

namespace fuseline {

namespace in_sd3 {
namespace {

// transformer/config.json of Stable Diffusion 3 as the diffusers library writes it.
ModelConfig read(const HfFields& fields) {
  ModelConfig c;
  c.blocks = {{.block = "mmdit"}};
  c.entry = "embed_latents";
  c.exit = "head_latents";
  c.layers = fields.whole("num_layers", kMostLayers);
  c.H = fields.whole("num_attention_heads");
  c.Hkv = c.H;
  c.d = fields.whole("attention_head_dim");
  c.D = c.H * c.d;
  c.F = 4 * c.D;
  c.max_positions = kLargestDimension;
  const std::int64_t patch = fields.whole_or("patch_size", 2);
  c.pixels_per_token = 8 * patch;  // a latent is 8 x 8 pixels
  const std::int64_t positions = fields.whole_or("pos_embed_max_size", 192);
  c.values["patch_numbers"] = fields.whole_or("in_channels", 16) * patch * patch;
  c.values["image_positions"] = positions * positions;
  c.values["text_width"] = fields.whole_or("joint_attention_dim", 4096);
  c.values["pooled_width"] = fields.whole_or("pooled_projection_dim", 2048);
  c.norm_eps = 1e-6;
  c.values["text_tokens"] = std::int64_t{154};  // 77 of CLIP and 77 of T5
  const std::int64_t text = fields.whole_or("caption_projection_dim", c.D);
  if (text != c.D)
    fields.fail("caption_projection_dim", nlohmann::json(text),
                "text and image have one width in the block that is built", std::to_string(c.D));
  const std::string norm = fields.text_or("qk_norm", "");
  if (!norm.empty() && norm != "rms_norm")
    fields.fail("qk_norm", nlohmann::json(norm), "unsupported norm of queries and keys",
                "null, rms_norm");
  c.values["qk_norm"] = !norm.empty();
  const nlohmann::json* dual = fields.find("dual_attention_layers");
  if (dual != nullptr && !(dual->is_array() && dual->empty()))
    fields.fail("dual_attention_layers", *dual, "layers with two attentions are not built", "[]");
  return c;
}

constexpr HfSpelling kSpellings[] = {{"layers", "num_layers"},       {"D", "num_attention_heads"},
                                     {"F", "num_attention_heads"},   {"H", "num_attention_heads"},
                                     {"Hkv", "num_attention_heads"}, {"d", "attention_head_dim"}};
constexpr const char* kReads[] = {"qk_norm"};

}  // namespace
}  // namespace in_sd3

constinit const HfFamily hf_families::sd3{.model_type = "sd3",
                                          .architecture = "SD3Transformer2D",
                                          .read = in_sd3::read,
                                          .spellings = in_sd3::kSpellings,
                                          .reads = in_sd3::kReads,
                                          .class_name = "SD3Transformer2DModel"};

}  // namespace fuseline

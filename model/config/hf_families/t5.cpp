#include "model/config/hf_families.h"

namespace fuseline {

namespace in_t5 {
namespace {

// The length of the texts that the models were trained on.
constexpr std::int64_t kSourceTokens = 512;

ModelConfig read(const HfFields& fields) {
  const std::string activation = fields.text_or("feed_forward_proj", "relu");
  if (activation != "relu")
    fields.fail("feed_forward_proj", nlohmann::json(activation), "unsupported activation", "relu");
  ModelConfig c;
  const std::int64_t encoder = fields.whole("num_layers", kMostLayers);
  const std::int64_t decoder = fields.whole_or("num_decoder_layers", encoder);
  c.layers = encoder + decoder;
  c.D = fields.whole("d_model");
  c.F = fields.whole("d_ff");
  c.H = fields.whole("num_heads");
  c.Hkv = c.H;
  c.d = fields.whole("d_kv");
  c.V = fields.whole("vocab_size");
  c.max_positions = kLargestDimension;
  c.norm_eps = fields.real_or("layer_norm_epsilon", 1e-6);
  c.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  c.blocks = {{.block = "t5_decoder", .layers = decoder, .name = "decoder"},
              {.block = "t5_encoder", .layers = encoder, .name = "encoder"}};
  BlockUse& encoder_layers = c.blocks.back();
  encoder_layers.decodes = false;
  encoder_layers.tokens = "source_tokens";
  encoder_layers.entry = "embed";
  encoder_layers.exit = "final_rms_norm";
  c.values["source_tokens"] = kSourceTokens;
  return c;
}

constexpr HfSpelling kT5Spellings[] = {{"layers", "num_layers"},
                                       {"D", "d_model"},
                                       {"F", "d_ff"},
                                       {"H", "num_heads"},
                                       {"d", "d_kv"},
                                       {"V", "vocab_size"},
                                       {"norm_eps", "layer_norm_epsilon"}};
constexpr const char* kReads[] = {"is_encoder_decoder"};

}  // namespace
}  // namespace in_t5

constinit const HfFamily hf_families::t5{.model_type = "t5",
                                         .architecture = "T5",
                                         .read = in_t5::read,
                                         .spellings = in_t5::kT5Spellings,
                                         .reads = in_t5::kReads};

}  // namespace fuseline

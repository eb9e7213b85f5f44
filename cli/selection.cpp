#include "cli/selection.h"

namespace fuseline {

void SelectionTexts::add_to(Options& options) {
  options.text("--model", "NAME|FILE", "a shipped model, a TOML file, or a config.json", model);
  options.text("--block", "NAME|FILE",
               "a block in the place of the model's; without --model, alone", block);
  options.text("--gpu", "NAME|FILE", "a shipped GPU or a TOML file", gpu);
  options.text("--phase", "forward|decode|train", "what the block does", phase);
  options.text("--batch", "B", "sequences", batch);
  options.text("--seq", "T", "tokens per sequence; in decode, new tokens (1)", seq);
  options.text("--context", "S", "decode: tokens in the cache, the new ones included", context);
  options.text("--dtype", "bf16|fp16|fp32", "storage type", dtype);
  options.text("--weights", "FORMAT[:GROUP]", "of the layers' weights: int4:64, fp8, nvfp4, ...",
               weights);
  options.text("--activations", "FORMAT",
               "of what meets those weights: fp8, fp8-block, int8, as theirs", activations);
  options.text("--kv", "FORMAT", "of the cache's keys and values: fp8 or int8", kv);
  options.text("--routing", "expected|uniform|FILE",
               "rows of each expert; a CSV of expert and share, or tokens", routing);
  options.text("--policy", "P,P,...", "policies, or 'all'", policy);
}

void SelectionTexts::add_plan_to(Options& options) {
  options.text("--plan", "FILE.fuse", "a plan as text, in the place of a policy's", plan);
}

void SelectionTexts::add_simulation_to(Options& options) {
  options.text("--fidelity", "roofline|hierarchy", "how closely memory is simulated", fidelity);
  options.text("--layers", "N|all", "blocks in a row; all: the whole model, with tokens/s", layers);
  options.text("--launch", "graph|overlap|stream",
               "in a CUDA graph, overlapping there, or one by one from the CPU", launch);
}

void SelectionTexts::add_image_to(Options& options) {
  options.text("--image", "P|WxH", "all layers over an image of so many pixels", image);
  options.text("--steps", "N", "with --image: steps that make it (28)", steps);
  options.text("--guidance", "yes|no", "with --image: two branches side by side (yes)", guidance);
}

}  // namespace fuseline

// Shipped models that have no plans in a phase, by name: one that is not listed here must have
// them.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/config/model_files.h"

namespace fuseline::test {

// Encoders and diffusion transformers do not decode; gradients of experts, of latent attention and
// of scans are not built.
inline bool is_refused(const std::string& model, const Workload& work) {
  static const std::map<Phase, std::set<std::string>> refused = {
      {Phase::decode, {"bert-large", "sd3-medium", "vit-l"}},
      {Phase::train,
       {"deepseek-v2-lite", "deepseek-v3", "jamba", "mixtral-8x7b", "qwen3-30b-a3b"}}};
  const auto found = refused.find(work.phase);
  if (found == refused.end() || !found->second.contains(model)) return false;
  EXPECT_THROW(build_block(load_model(model), work), InputError) << model << ": has plans now";
  return true;
}

}  // namespace fuseline::test

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

// Encoders and diffusion transformers do not decode.
inline bool is_refused(const std::string& model, const Workload& work) {
  static const std::map<Phase, std::set<std::string>> refused = {
      {Phase::decode, {"bert-large", "sd3-medium", "vit-l"}}};
  const auto found = refused.find(work.phase);
  if (found == refused.end() || !found->second.contains(model)) return false;
  EXPECT_THROW(build_block(load_model(model), work), InputError) << model << ": has plans now";
  return true;
}

}  // namespace fuseline::test

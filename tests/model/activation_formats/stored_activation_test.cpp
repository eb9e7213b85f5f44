#include "model/activation_formats/stored_activation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/activation_formats/activation_format.h"

namespace fuseline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(StoredActivation, HasTheFormatsOfItsFolder) {
  EXPECT_THAT(activation_format_names(), ElementsAre("fp8", "fp8-block", "int8"));
  for (const ActivationFormat* f : all_activation_formats()) {
    EXPECT_EQ(f->rows.group_rows, 1) << "a scale belongs to one token: " << f->rows.name.value;
    EXPECT_FALSE(f->rows.zero_points || f->rows.tensor_scale || f->rows.any_group);
    const StoredWeight weights = parse_stored_weight(f->weights.value, "", "");
    EXPECT_EQ(weights.element(), f->rows.element.value) << "codes of one type are multiplied";
    EXPECT_EQ(weights.group, f->rows.group.value) << "their scales change at the same columns";
  }
}

TEST(StoredActivation, IsParsedByNameAndNamesItsWeights) {
  for (const std::string& name : activation_format_names()) {
    const StoredWeight rows = parse_stored_activation(name, "--activations", "bf16");
    EXPECT_TRUE(rows.quantised());
    EXPECT_EQ(rows.name(), name);
    EXPECT_EQ(weights_for(rows), name);
  }
  EXPECT_FALSE(parse_stored_activation("bf16", "--activations", "bf16").quantised());
}

// [M, K] has a scale for each row, or for each 128 columns of it.
TEST(StoredActivation, HasItsScalesBesideIt) {
  const auto beside = [](const char* name) {
    return parse_stored_activation(name, "", "").beside(10, 300).front();
  };
  EXPECT_EQ(beside("fp8").rows, 10);
  EXPECT_EQ(beside("fp8").cols, 1);
  EXPECT_EQ(beside("fp8-block").rows, 10);
  EXPECT_EQ(beside("fp8-block").cols, 3);
  EXPECT_EQ(beside("int8").type, Dtype::fp32);
}

TEST(StoredActivation, RefusesOtherNames) {
  try {
    static_cast<void>(parse_stored_activation("fp9", "--activations", "bf16"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--activations = 'fp9': there is no such number format of "
                                        "activations; allowed: bf16, fp8, fp8-block, int8; did you "
                                        "mean 'fp8'?"));
  }
}

}  // namespace
}  // namespace fuseline

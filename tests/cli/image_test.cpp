// predict --image: a whole image of a diffusion model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

CliRun predict_image(std::vector<std::string> more) {
  std::vector<std::string> args = {"predict", "--model",  "sd3-medium",   "--gpu",
                                   "h200",    "--policy", "torch-compile"};
  args.insert(args.end(), more.begin(), more.end());
  return cli(args);
}

// 512 x 256 pixels are 32 x 16 tokens; 28 steps of two branches, which run side by side.
TEST(PredictImage, IsSoManyStepsOfAllLayers) {
  const CliRun run = predict_image({"--image", "512x256", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json whole = json::parse(run.out);
  EXPECT_EQ(whole.at("seq"), 512);
  EXPECT_EQ(whole.at("batch"), 2);
  const json& image = whole.at("predictions").at(0).at("image");
  EXPECT_EQ(image.at("steps"), 28);
  const CliRun step =
      predict_image({"--seq", "512", "--batch", "2", "--layers", "all", "--format", "json"});
  ASSERT_EQ(step.status, 0) << step.err;
  const double one =
      json::parse(step.out).at("predictions").at(0).at("total").at("time_us").get<double>() * 1e-6;
  EXPECT_NEAR(image.at("seconds").get<double>(), 28 * one, 1e-9 * 28 * one);
}

TEST(PredictImage, WithoutGuidanceRunsOneBranch) {
  const CliRun run = predict_image({"--image", "256", "--steps", "50", "--guidance", "no"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("an image of 256 x 256 pixels: 256 tokens each, 50 steps:"));
}

TEST(PredictImage, IsRefusedWhereItMakesNoSense) {
  const auto refused = [](const CliRun& run, const std::string& words) {
    EXPECT_EQ(run.status, 2) << run.out;
    EXPECT_THAT(run.err, HasSubstr(words));
  };
  refused(predict_image({"--image", "500"}), "multiples of 16 pixels");
  refused(predict_image({"--image", "512x"}), "--image");
  refused(predict_image({"--image", "x512"}), "--image");
  refused(predict_image({"--image", "512", "--seq", "7"}), "--seq");
  refused(predict_image({"--image", "512", "--steps", "0"}), "--steps");
  refused(predict_image({"--image", "512", "--guidance", "maybe"}), "--guidance");
  refused(predict_image({"--steps", "28"}), "with --image");
  refused(cli({"predict", "--model", "tinyllama", "--gpu", "h200", "--image", "512"}),
          "are no image");
}

}  // namespace
}  // namespace fuseline

// Saved predictions (diff A B).
#include "sim/selection/saved_prediction.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered prediction_json({.name = "prediction_json",
                                  .dictionary = "prediction",
                                  .seeds = {},
                                  .read = [](const std::string& bytes) {
                                    static_cast<void>(
                                        load_predictions(file_with(bytes, "fuzz.json")));
                                  }});

}  // namespace
}  // namespace fuseline::fuzz

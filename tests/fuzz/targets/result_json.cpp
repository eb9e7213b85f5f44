// A result that was kept of an earlier grading (course grade).
#include "lab/report.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered result_json({.name = "result_json",
                              .dictionary = "prediction",
                              .seeds = {},
                              .read = [](const std::string& bytes) {
                                static_cast<void>(lab::result_of_json(bytes, "result.json"));
                              }});

}  // namespace
}  // namespace fuseline::fuzz

// A student's answers (lab check).
#include "lab/answers.h"
#include "lab/student.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered answers_toml({.name = "answers_toml",
                               .dictionary = "answers",
                               .seeds = {},
                               .read = [](const std::string& bytes) {
                                 static const lab::Lab first =
                                     lab::make_lab(1, lab::Student("ada"));
                                 static_cast<void>(
                                     lab::read_answers(file_with(bytes, "answers.toml"), first));
                               }});

}  // namespace
}  // namespace fuseline::fuzz

// The students of a course.
#include "lab/course/course.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered students_csv({.name = "students_csv",
                               .dictionary = "csv",
                               .seeds = {},
                               .read = [](const std::string& bytes) {
                                 static_cast<void>(
                                     lab::read_students(file_with(bytes, "fuzz.csv")));
                               }});

}  // namespace
}  // namespace fuseline::fuzz

// A lecturer's course.toml, and the times of a learning platform for that course.
#include <filesystem>

#include "lab/course/course.h"
#include "lab/course/hand_in_times.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

// The folder of a course whose other files are good.
std::filesystem::path course_with(const std::string& text) {
  file_with("student\nada\nbob\n", "students.csv");
  const std::string secret = file_with("a secret that is long enough to be one\n", "secret.txt");
  std::filesystem::permissions(
      secret, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  return std::filesystem::path(file_with(text, lab::kCourseFile)).parent_path();
}

const Registered course_toml({.name = "course_toml",
                              .dictionary = "course",
                              .seeds = {},
                              .read = [](const std::string& bytes) {
                                static_cast<void>(lab::load_course(course_with(bytes)));
                              }});

const Registered hand_in_times({.name = "hand_in_times",
                                .dictionary = "csv",
                                .seeds = {},
                                .read = [](const std::string& bytes) {
                                  const lab::Course course = lab::load_course(
                                      course_with(lab::course_text({.labs = {{1, {}}, {2, {}}}})));
                                  static_cast<void>(lab::read_hand_in_times(
                                      file_with(bytes, "times.csv"), course));
                                }});

}  // namespace
}  // namespace fuseline::fuzz

#include "tests/lab/lab_support.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "lab/workspace.h"

namespace fuseline::lab::test {

namespace fs = std::filesystem;

fs::path new_folder() {
  static int count = 0;
  fs::path folder = fs::path(testing::TempDir()) /
                    ("lab_" + std::to_string(getpid()) + "_" + std::to_string(count++));
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string one_line(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  for (std::string word; in >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

LabResult check(const fs::path& folder) {
  return check_folder({.folder = folder, .lab = std::nullopt, .student = std::nullopt});
}

fs::path solutions(int number) {
  return source_dir() / "tests/lab/staff" / default_folder(number).substr(4);
}

std::string right_function(int number, const Student& student) {
  return with_factor(read_file(solutions(number) / "right.cpp.in"), make_lab(number, student));
}

}  // namespace fuseline::lab::test

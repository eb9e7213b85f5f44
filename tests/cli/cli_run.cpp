#include "tests/cli/cli_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/table.h"

namespace fuseline {

std::string temporary_file(const std::string& name, const std::string& text) {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  std::string folder = std::string("cli_") + info->test_suite_name() + "_" + info->name();
  for (char& c : folder) {
    if (c == '/') c = '_';
  }
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / folder / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void expect_fits_100_columns(const std::string& text) {
  for (const std::string& line : lines_of(text)) {
    EXPECT_LE(display_width(line), 100U) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << "ends in a space: " << line;
  }
}

}  // namespace fuseline

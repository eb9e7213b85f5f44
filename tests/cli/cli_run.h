// Calls the command line in-process and keeps what it wrote.
#pragma once

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "cli/app.h"

namespace fuseline {

struct CliRun {
  int status = -1;
  std::string out;
  std::string err;
};

inline CliRun cli(const std::vector<std::string>& args) {
  std::ostringstream out, err;
  CliRun run;
  run.status = run_cli(args, out, err);
  run.out = out.str();
  run.err = err.str();
  return run;
}

// A file of this test below the temporary folder, with the text in it.
std::string temporary_file(const std::string& name, const std::string& text);

std::string read_text(const std::filesystem::path& path);

// Lines without their ends.
std::vector<std::string> lines_of(const std::string& text);

// No line is longer than 100 characters (not bytes).
void expect_fits_100_columns(const std::string& text);

}  // namespace fuseline

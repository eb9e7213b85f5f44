// Kernels that compiled as expected where the ledger was written (scripts/list_kernels.sh).
#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace fuseline::test {

// A text file: a line for each kernel, and lines of comment that begin with #. A kernel's line is
// the beginning of its key's digest, which holds its text, the device headers that it includes,
// options, toolkit, and what is expected of it. A file that is not there lists nothing.
class KernelLedger {
 public:
  explicit KernelLedger(const std::filesystem::path& file) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
      if (!line.empty() && line.front() != '#') lines_.insert(line);
  }

  [[nodiscard]] bool lists(const std::string& digest) const {
    return lines_.contains(line_of(digest));
  }
  // 64 bits: two of a few thousand kernels share them once in 10^12 ledgers.
  static std::string line_of(const std::string& digest) { return digest.substr(0, 16); }

 private:
  std::set<std::string> lines_;
};

// Each listed kernel is compiled on one day of 32, so that a ledger that is wrong is found out.
inline bool is_of_day(const std::string& digest, unsigned long long day) {
  constexpr unsigned kDays = 32;
  return std::stoull(digest.substr(0, 8), nullptr, 16) % kDays == day % kDays;
}

}  // namespace fuseline::test

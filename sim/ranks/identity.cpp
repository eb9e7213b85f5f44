#include "sim/ranks/identity.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "base/data_dir.h"
#include "base/version.h"
#include "sim/ranks/ranks.h"

namespace fuseline {

namespace {

namespace fs = std::filesystem;

void add_file(TextHash& hash, const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> part(1 << 16);
  while (in.read(part.data(), static_cast<std::streamsize>(part.size())), in.gcount() > 0)
    hash.add({part.data(), static_cast<std::size_t>(in.gcount())});
}

}  // namespace

std::string TextHash::text() const { return fmt::format("{:016x}", value_); }

std::string program_identity() {
  TextHash program, data;
  add_file(program, "/proc/self/exe");
  std::vector<fs::path> files;
  // Whatever a prediction reads; measurements are only compared with.
  for (const char* folder : {"models", "gpus", "architectures", "blocks", "bands"}) {
    const fs::path in = data_dir() / folder;
    std::error_code none;
    for (fs::recursive_directory_iterator at(in, none), end; at != end; at.increment(none))
      if (at->is_regular_file()) files.push_back(at->path());
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    data.add(file.lexically_relative(data_dir()).string());
    add_file(data, file);
  }
  return fmt::format("fuseline {} {}, data {}", kVersion, program.text(), data.text());
}

}  // namespace fuseline

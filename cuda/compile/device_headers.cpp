#include "cuda/compile/device_headers.h"

#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline::cuda {

namespace {

namespace fs = std::filesystem;

const DeviceHeader* find(const std::string& path) {
  for (const DeviceHeader& header : device_headers())
    if (header.path == path) return &header;
  return nullptr;
}

// FILE of a line `#include "FILE"`; empty for every other line.
std::string_view included(std::string_view line) {
  constexpr std::string_view kDirective = "#include \"";
  if (!line.starts_with(kDirective)) return {};
  line.remove_prefix(kDirective.size());
  return line.substr(0, line.find('"'));
}

class Joiner {
 public:
  void add(const std::string& name, std::string_view text) {
    out_ += fmt::format("#line 1 \"{}\"\n", name);
    int number = 0;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      ++number;
      if (const std::string_view file = included(line); !file.empty()) {
        add_header(name, std::string(file));
        out_ += fmt::format("#line {} \"{}\"\n", number + 1, name);
      } else if (line != "#pragma once") {
        out_ += fmt::format("{}\n", line);
      } else {
        out_ += '\n';
      }
    }
  }
  [[nodiscard]] std::string text() && { return std::move(out_); }

 private:
  void add_header(const std::string& includer, const std::string& file) {
    std::string path = (fs::path(includer).parent_path() / file).lexically_normal().string();
    if (find(path) == nullptr) path = fs::path(file).lexically_normal().string();
    const DeviceHeader* header = find(path);
    if (header == nullptr)
      throw InternalError(
          fmt::format("{} includes \"{}\", which is no device header", includer, file));
    if (done_.insert(path).second) add(path, header->text);
  }

  std::string out_;
  std::set<std::string> done_;
};

}  // namespace

std::string join_headers(const std::string& name, std::string_view text) {
  Joiner joiner;
  joiner.add(name, text);
  return std::move(joiner).text();
}

}  // namespace fuseline::cuda

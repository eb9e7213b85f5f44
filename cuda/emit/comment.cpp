#include "cuda/emit/comment.h"

#include <sstream>

#include <fmt/format.h>

namespace fuseline::cuda {

std::string as_comment(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    out += line.empty() ? "//\n" : fmt::format("// {}\n", line);
  return out;
}

std::string_view without_comment(std::string_view source) {
  while (source.starts_with("//")) {
    const std::size_t end = source.find('\n');
    source.remove_prefix(end == std::string_view::npos ? source.size() : end + 1);
  }
  return source;
}

}  // namespace fuseline::cuda

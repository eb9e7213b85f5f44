#include "base/wrap.h"

#include <algorithm>

namespace fuseline {

std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

std::vector<std::string> broken(const std::string& text, std::size_t width, std::size_t first) {
  std::vector<std::string> lines(1);
  std::string word;
  const auto place = [&] {
    if (word.empty()) return;
    std::string& line = lines.back();
    const std::size_t limit = lines.size() == 1 ? first : width;
    if (!line.empty() && display_width(line) + 1 + display_width(word) > limit) {
      lines.push_back(word);
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
    word.clear();
  };
  for (const char c : text) {
    if (c == ' ') {
      place();
    } else {
      word += c;
    }
  }
  place();
  return lines;
}

std::vector<std::string> broken(const std::string& text, std::size_t width) {
  return broken(text, width, width);
}

}  // namespace fuseline

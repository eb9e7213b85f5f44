#include "model/programs/resized.h"

#include <algorithm>

namespace fuseline {

namespace {

std::string letter_in(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c != ' ') out += c;
  return out;
}

// "D = 64" with the letter's other number, where it has one.
std::string resized_part(const std::string& part, const std::map<std::string, std::int64_t>& sizes,
                         std::set<std::string>* used) {
  const std::size_t sign = part.find('=');
  if (sign == std::string::npos) return part;
  const std::string letter = letter_in(part.substr(0, sign));
  const auto found = sizes.find(letter);
  if (found == sizes.end()) return part;
  if (used != nullptr) used->insert(letter);
  return " " + letter + " = " + std::to_string(found->second);
}

}  // namespace

std::string resized(const std::string& text, const std::map<std::string, std::int64_t>& sizes,
                    std::set<std::string>* used) {
  constexpr std::size_t kWord = 4;  // "size"
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    const std::string line = text.substr(begin, end - begin);
    if (line.starts_with("size ")) {
      const std::size_t remark = std::min(line.find('#'), line.size());
      out += line.substr(0, kWord);
      for (std::size_t at = kWord; at < remark;) {
        const std::size_t comma = std::min(line.find(',', at), remark);
        out += (at > kWord ? "," : "") + resized_part(line.substr(at, comma - at), sizes, used);
        at = comma + 1;
      }
      out += line.substr(remark);
    } else {
      out += line;
    }
    if (end < text.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

}  // namespace fuseline

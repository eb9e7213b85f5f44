#include "model/programs/lettered_text.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/wrap.h"
#include "model/primitives/basics.h"

namespace fuseline {

namespace {

using Letters = std::vector<std::pair<std::string, std::int64_t>>;  // in the order of their mention

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, end + 1 - begin);
}

std::vector<std::string> parts_of(const std::string& shape) {
  std::vector<std::string> parts;
  std::istringstream in(shape);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(trimmed(part));
  return parts;
}

std::optional<std::int64_t> number_of(const std::string& part) {
  const bool digits = std::ranges::all_of(
      part, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  if (part.empty() || part.size() > 15 || !digits) return std::nullopt;
  return std::stoll(part);
}

bool is_letter(const std::string& part) {
  return !part.empty() && std::isalpha(static_cast<unsigned char>(part[0])) != 0 &&
         std::ranges::all_of(part, [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
         });
}

// "[M,D] = [2048, 4096]" of a declaration: where the shapes are.
struct Shapes {
  std::size_t letters = 0, numbers = 0, end = 0;  // of "[", " = [" and behind the last "]"
};
std::optional<Shapes> shapes_of(const std::string& line) {
  const std::size_t middle = line.find("] = [");
  if (line.starts_with(" ") || middle == std::string::npos) return std::nullopt;
  const std::size_t open = line.rfind('[', middle), close = line.find(']', middle + 5);
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  return Shapes{open, middle + 1, close + 1};
}

// Whether all letters have one size each.
bool collect(const std::string& line, Letters& known) {
  const std::optional<Shapes> at = shapes_of(line);
  if (!at) return true;
  const auto letters = parts_of(line.substr(at->letters + 1, at->numbers - at->letters - 2));
  const auto numbers = parts_of(line.substr(at->numbers + 4, at->end - at->numbers - 5));
  for (std::size_t i = 0; i < letters.size() && i < numbers.size(); ++i) {
    const std::optional<std::int64_t> size = number_of(numbers[i]);
    if (!is_letter(letters[i]) || !size) continue;
    const auto there = std::ranges::find(known, letters[i], &Letters::value_type::first);
    if (there == known.end())
      known.emplace_back(letters[i], *size);
    else if (there->second != *size)
      return false;
  }
  return true;
}

// What a number stands for; itself where nothing or several letters may be meant.
std::string named(std::int64_t number, const Letters& known) {
  std::vector<std::string> whole, blocks;
  for (const auto& [letter, size] : known) {
    if (size == number) whole.push_back(letter);
    if (ceil_div(size, partial_tile) == number)
      blocks.push_back("⌈" + letter + "/" + std::to_string(partial_tile) + "⌉");
  }
  if (whole.size() == 1) return whole.front();
  if (whole.empty() && blocks.size() == 1 && number > 1) return blocks.front();
  return std::to_string(number);
}

// The shapes of a line that are numbers alone.
std::string with_named_numbers(const std::string& code, const Letters& known) {
  std::string out;
  for (std::size_t begin = 0; begin < code.size();) {
    const std::size_t open = code.find('[', begin), close = code.find(']', open);
    if (open == std::string::npos || close == std::string::npos) return out + code.substr(begin);
    out += code.substr(begin, open + 1 - begin);
    const std::string shape = code.substr(open + 1, close - open - 1);
    const std::vector<std::string> parts = parts_of(shape);
    const bool numbers =
        std::ranges::all_of(parts, [](const std::string& p) { return number_of(p).has_value(); });
    if (numbers && parts.size() == 2) {
      const char* between = open > 0 && code[open - 1] == ' ' ? ", " : ",";  // a space, or a tensor
      out += named(*number_of(parts[0]), known) + between + named(*number_of(parts[1]), known);
    } else {
      out += shape;
    }
    out += "]";
    begin = close + 1;
  }
  return out;
}

// A remark stays in its column.
std::string with_remark(const std::string& line, const std::string& code) {
  const std::size_t sign = line.find("  #");
  if (sign == std::string::npos) return code;
  const std::size_t at = line.find('#', sign);
  const std::string bare = code.substr(0, code.find_last_not_of(' ') + 1);
  const std::size_t column = display_width(line.substr(0, at)), width = display_width(bare);
  return bare + std::string(column > width + 2 ? column - width : 2, ' ') + line.substr(at);
}

}  // namespace

std::string lettered_text(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  Letters known;
  for (const std::string& line : lines)
    if (!collect(line, known)) return text;
  if (known.empty() || lines.empty()) return text;
  std::string out = lines.front() + "\nsize ";
  for (std::size_t i = 0; i < known.size(); ++i)
    out += (i == 0 ? "" : ", ") + known[i].first + " = " + std::to_string(known[i].second);
  out += "\n";
  for (std::size_t i = 1; i < lines.size(); ++i) {
    std::string code = lines[i];
    if (const std::optional<Shapes> at = shapes_of(code))
      code.erase(at->numbers, at->end - at->numbers);
    else
      code = with_remark(code, with_named_numbers(code.substr(0, code.find("  #")), known));
    out += code + "\n";
  }
  return out;
}

}  // namespace fuseline

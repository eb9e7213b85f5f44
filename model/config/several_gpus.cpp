#include "model/config/several_gpus.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace fuseline {

namespace {

// What the usual serving and training tools call it.
constexpr std::array<std::string_view, 19> kWordsOfGpus = {"gpus",
                                                           "ngpus",
                                                           "numgpus",
                                                           "gpucount",
                                                           "devices",
                                                           "nodes",
                                                           "nnodes",
                                                           "nprocpernode",
                                                           "worldsize",
                                                           "tp",
                                                           "tpsize",
                                                           "tensorparallel",
                                                           "tensorparallelsize",
                                                           "pp",
                                                           "pipelineparallelsize",
                                                           "dp",
                                                           "dataparallelsize",
                                                           "ep",
                                                           "expertparallelsize"};

bool is_ascii_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_space(char c) { return c == ' '; }

std::string without_spaces(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (!is_space(c)) out += c;
  }
  return out;
}

// Length of the times sign at the front: "x", "X", "*", or the two bytes of "×"; 0 without one.
std::size_t times_sign(std::string_view text) {
  if (text.empty()) return 0;
  if (text.front() == 'x' || text.front() == 'X' || text.front() == '*') return 1;
  return text.starts_with("\xC3\x97") ? 2 : 0;
}

}  // namespace

bool asks_for_several_gpus(std::string_view word) {
  std::string plain;
  for (const char c : word) {
    if (c != '-' && c != '_') {
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return std::find(kWordsOfGpus.begin(), kWordsOfGpus.end(), plain) != kWordsOfGpus.end();
}

std::optional<std::string> counted_gpu(const std::string& text,
                                       const std::vector<std::string>& known) {
  const std::string plain = without_spaces(text);
  const auto digits_end = std::find_if_not(plain.begin(), plain.end(), is_ascii_digit);
  const auto digits = static_cast<std::size_t>(digits_end - plain.begin());
  if (digits > 0) {
    const std::string_view rest = std::string_view(plain).substr(digits);
    const std::size_t sign = times_sign(rest);
    if (sign > 0 && rest.size() > sign) return std::string(rest.substr(sign));
  }
  // The count may follow; "rtx3090" counts nothing, as no GPU is called "rt".
  for (const std::string& name : known) {
    if (!plain.starts_with(name)) continue;
    const std::string_view rest = std::string_view(plain).substr(name.size());
    const std::size_t sign = times_sign(rest);
    const std::string_view count = rest.substr(sign);
    if (sign > 0 && !count.empty() && std::all_of(count.begin(), count.end(), is_ascii_digit)) {
      return name;
    }
  }
  return std::nullopt;
}

}  // namespace fuseline

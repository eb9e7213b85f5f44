#include "gui/model/code_links.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace fuseline::gui {

namespace {

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool in_name(char c) { return begins_name(c) || is_digit(c); }

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

struct Token {
  std::string text;
  std::size_t begin = 0, end = 0;
};

// Names and numbers: "m1", "1e-05".
std::vector<Token> tokens_of(std::string_view line) {
  std::vector<Token> all;
  for (std::size_t at = 0; at < line.size();) {
    if (!in_name(line[at])) {
      ++at;
      continue;
    }
    const bool number = is_digit(line[at]);
    std::size_t end = at;
    while (end < line.size() &&
           (in_name(line[end]) ||
            (number && (line[end] == '.' ||
                        ((line[end] == '-' || line[end] == '+') && line[end - 1] == 'e')))))
      ++end;
    all.push_back({std::string(line.substr(at, end - at)), at, end});
    at = end;
  }
  return all;
}

// The source calls a second m "m_1" where the program's text calls it "m1".
std::string plain_name(const std::string& name) {
  std::size_t digits = name.size();
  while (digits > 0 && is_digit(name[digits - 1])) --digits;
  if (digits == name.size() || digits < 2 || name[digits - 1] != '_') return name;
  return name.substr(0, digits - 1) + name.substr(digits);
}

struct ProgramLine {
  std::string_view text;          // without its remark
  std::set<std::string> defined;  // values
  std::set<std::string> named;    // tensors and numbers
  bool is_product = false;
};

ProgramLine read_program_line(std::string_view line) {
  ProgramLine out;
  line = line.substr(0, std::min(line.find("//"), line.size()));
  out.text = without_blanks(line);
  out.is_product =
      line.find("·") != std::string_view::npos || line.find("attention(") != std::string_view::npos;
  const std::vector<Token> all = tokens_of(line);
  if (all.empty()) return out;
  std::size_t first = 0;
  if (all[0].end < line.size() && line[all[0].end] == ':') first = 1;  // the program's name
  const std::size_t equals = line.find(" = ");
  const bool stores = first < all.size() && all[first].text.starts_with("store");
  int depth = 0;
  std::size_t read = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (; read < all[i].begin; ++read) depth += line[read] == '[' ? 1 : line[read] == ']' ? -1 : 0;
    const bool left = equals != std::string_view::npos && all[i].begin < equals;
    const bool is_tensor = all[i].end < line.size() && line[all[i].end] == '[';
    if (i < first || depth > 0) continue;
    if (left && !stores)
      out.defined.insert(plain_name(all[i].text));
    else if (is_tensor || is_digit(all[i].text.front()))
      out.named.insert(all[i].text);
    else if (stores && !left)
      out.defined.erase(all[i].text);
  }
  return out;
}

struct CudaLine {
  std::set<std::string> values;      // that it makes
  std::set<std::string> parameters;  // that it declares or takes
  bool is_mainloop = false;
};

CudaLine read_cuda_line(std::string_view line) {
  CudaLine out;
  const std::string_view text = without_blanks(line);
  if (text.starts_with('#')) return out;
  const std::vector<Token> all = tokens_of(text);
  const auto behind = [&](const Token& t) {
    return without_blanks(text.substr(t.end)).substr(0, 1);
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Token& t = all[i];
    const char before = t.begin > 0 ? text[t.begin - 1] : ' ';
    const std::string owner = before == '.' && i > 0 ? all[i - 1].text : std::string();
    if (owner == "p") out.parameters.insert(t.text);
    if (owner == "state" && behind(t) == "=") out.values.insert(plain_name(t.text));
    if (i >= 2 && all[i - 1].text == "auto" && all[i - 2].text == "const")
      out.values.insert(plain_name(t.text));
  }
  const bool declares = text.ends_with(';') && text.find('(') == std::string_view::npos &&
                        text.find('=') == std::string_view::npos && all.size() >= 2;
  if (declares) {
    out.parameters.insert(all.back().text);
    out.values.insert(plain_name(all.back().text));
  }
  out.is_mainloop = text.starts_with("using Config") || text.starts_with("using Shape") ||
                    text.starts_with("using Gemm") ||
                    text.find("gemm_sm") != std::string_view::npos ||
                    text.find("gemm_codes") != std::string_view::npos ||
                    text.find("attention_forward") != std::string_view::npos;
  return out;
}

bool share_a_name(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::ranges::any_of(a, [&](const std::string& x) { return b.contains(x); });
}

}  // namespace

std::vector<std::vector<int>> code_links(const std::vector<std::string>& program,
                                         const std::vector<std::string>& cuda) {
  std::vector<ProgramLine> lines;
  for (const std::string& line : program) lines.push_back(read_program_line(line));
  std::map<std::string, std::string> stands_for;  // parameters: "in0" for "x", "c0" for a number
  std::vector<std::vector<int>> links(cuda.size());
  for (std::size_t i = 0; i < cuda.size(); ++i) {
    std::string_view text = without_blanks(cuda[i]);
    const bool remark = text.starts_with("//");
    CudaLine code;
    if (remark) {
      text = without_blanks(text.substr(2));
      const std::size_t equals = text.find(" = ");
      const bool is_alias = equals != std::string_view::npos &&
                            std::ranges::all_of(text.substr(0, equals), in_name) &&
                            std::ranges::none_of(lines, [&](const ProgramLine& p) {
                              return !p.text.empty() && text.starts_with(p.text);
                            });
      if (is_alias) {
        const std::string name(text.substr(0, equals));
        stands_for[name] = std::string(without_blanks(text.substr(equals + 3)));
        code.parameters.insert(name);
      }
    } else {
      code = read_cuda_line(text);
    }
    std::set<std::string> named;
    for (const std::string& name : code.parameters) {
      const auto found = stands_for.find(name);
      named.insert(found == stands_for.end() ? name : found->second);
    }
    for (std::size_t k = 0; k < lines.size(); ++k) {
      const ProgramLine& p = lines[k];
      const bool same = remark && !p.text.empty() && text.starts_with(p.text);
      if (same || share_a_name(p.defined, code.values) ||
          (!p.is_product && share_a_name(p.named, named)) || (p.is_product && code.is_mainloop))
        links[i].push_back(static_cast<int>(k) + 1);
    }
  }
  return links;
}

std::vector<WordSpan> words_of_code_line(std::string_view line) {
  static const std::set<std::string, std::less<>> kWords = {"auto",
                                                            "const",
                                                            "constexpr",
                                                            "extern",
                                                            "float",
                                                            "if",
                                                            "int",
                                                            "namespace",
                                                            "return",
                                                            "static",
                                                            "struct",
                                                            "template",
                                                            "using",
                                                            "void",
                                                            "typename",
                                                            "class",
                                                            "__global__",
                                                            "__constant__",
                                                            "__grid_constant__",
                                                            "sizeof",
                                                            "static_assert",
                                                            "bool",
                                                            "for"};
  std::vector<WordSpan> words;
  const std::size_t remark = std::min(line.find("//"), line.size());
  for (const Token& t : tokens_of(line.substr(0, remark))) {
    const std::size_t length = t.end - t.begin;
    if (is_digit(t.text.front()))
      words.push_back({t.begin, length, WordRole::number});
    else if (kWords.contains(t.text))
      words.push_back({t.begin, length, WordRole::keyword});
    else if (t.end < line.size() && line[t.end] == '(')
      words.push_back({t.begin, length, WordRole::function});
  }
  if (remark < line.size()) words.push_back({remark, line.size() - remark, WordRole::comment});
  return words;
}

}  // namespace fuseline::gui

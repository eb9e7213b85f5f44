// The one way that we write a block file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "model/blocks/syntax.h"

namespace fuseline {

namespace {

std::string text_of(const ExpressionPtr& e) { return expression_text(*e); }

std::string list_of(const std::vector<ExpressionPtr>& parts) {
  std::vector<std::string> texts;
  for (const ExpressionPtr& part : parts) texts.push_back(text_of(part));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string bare(const Expression& e) {
  switch (e.kind) {
    case ExpressionKind::number:
    case ExpressionKind::name:
      return e.text;
    case ExpressionKind::quoted:
      return "\"" + e.text + "\"";
    case ExpressionKind::tensor:
      return fmt::format("{}[{}]", e.text, list_of(e.parts));
    case ExpressionKind::call: {
      std::vector<std::string> texts;
      for (const Argument& a : e.arguments)
        texts.push_back(a.name.empty() ? text_of(a.value)
                                       : fmt::format("{} = {}", a.name, text_of(a.value)));
      return fmt::format("{}({})", e.text, fmt::join(texts, ", "));
    }
    case ExpressionKind::negate:
      return "-" + text_of(e.parts[0]);
    case ExpressionKind::invert:
      return "not " + text_of(e.parts[0]);
    case ExpressionKind::binary: {
      const std::string sign = e.text == "·" ? " " : " " + e.text + " ";
      return text_of(e.parts[0]) + sign + text_of(e.parts[1]);
    }
    case ExpressionKind::choice: {
      std::string out = text_of(e.parts[0]) + " if " + text_of(e.parts[1]);
      if (e.parts.size() > 2) out += " else " + text_of(e.parts[2]);
      return out;
    }
  }
  return {};
}

class Printer {
 public:
  std::string file(const BlockFile& file) {
    line(0, "fuseline.block/1");
    if (!file.remarks.empty()) line(0, "");
    remarks(0, file.remarks);
    if (!file.uses.empty()) line(0, "");
    for (const Use& use : file.uses) {
      const bool plain = std::all_of(use.file.begin(), use.file.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
      });
      line(0, plain ? "use " + use.file : "use \"" + use.file + "\"");
    }
    for (const Definition& d : file.definitions) {
      line(0, "");
      remarks(0, d.remarks);
      definition(d);
    }
    if (!file.remarks_below.empty()) line(0, "");
    remarks(0, file.remarks_below);
    return out_;
  }

 private:
  void line(int level, const std::string& text) {
    if (!text.empty()) out_.append(static_cast<std::size_t>(level) * 2, ' ');
    out_ += text + "\n";
  }
  // A statement too long for a line is broken behind commas, below its first bracket.
  void broken_line(int level, const std::string& text, const std::string& end) {
    const std::size_t indent = static_cast<std::size_t>(level) * 2;
    const std::size_t bracket = text.find_first_of("([");
    if (indent + text.size() + end.size() <= kWidth || bracket == std::string::npos)
      return line(level, text + end);
    std::string out;
    std::string rest = text;
    std::size_t before = indent;
    for (;;) {
      std::size_t cut = std::string::npos;
      for (std::size_t at = rest.find(", "); at != std::string::npos && before + at + 1 <= kWidth;
           at = rest.find(", ", at + 1))
        if (!out.empty() || at > bracket) cut = at;
      if (before + rest.size() + end.size() <= kWidth || cut == std::string::npos) break;
      out += rest.substr(0, cut + 1) + "\n" + std::string(indent + bracket + 1, ' ');
      rest = rest.substr(cut + 2);
      before = indent + bracket + 1;
    }
    line(level, out + rest + end);
  }
  void remarks(int level, const std::vector<std::string>& lines) {
    for (const std::string& l : lines) line(level, l.empty() ? "#" : "# " + l);
  }

  void definition(const Definition& d) {
    const std::string head = fmt::format("{} {}(", d.is_part ? "part" : "block", d.name);
    std::string text = head;
    std::size_t width = head.size();
    for (std::size_t i = 0; i < d.parameters.size(); ++i) {
      const Parameter& p = d.parameters[i];
      std::string word = p.name;
      if (p.absent) word += " = " + text_of(p.absent);
      word += i + 1 < d.parameters.size() ? "," : ")";
      if (i > 0 && width + 1 + word.size() > kWidth) {
        text += "\n" + std::string(head.size(), ' ');
        width = head.size();
      } else if (i > 0) {
        text += " ";
        ++width;
      }
      text += word;
      width += word.size();
    }
    if (d.parameters.empty()) text += ")";
    line(0, text);
    statements(1, d.body);
  }

  void statements(int level, const std::vector<Statement>& all) {
    for (const Statement& s : all) statement(level, s);
  }

  static std::string label(const Statement& s) {
    if (s.site.empty()) return {};
    return s.op.empty() ? s.site + ": " : s.site + "/" + s.op + ": ";
  }

  void statement(int level, const Statement& s) {
    remarks(level, s.remarks);
    const std::string end = s.remark.empty() ? "" : "  # " + s.remark;
    switch (s.kind) {
      case StatementKind::assign: {
        broken_line(level,
                    label(s) + fmt::format("{} = {}", fmt::join(s.targets, ", "), text_of(s.value)),
                    end);
        return;
      }
      case StatementKind::input:
      case StatementKind::table:
      case StatementKind::output: {
        std::vector<std::string> words;
        for (const Declared& d : s.declared) {
          std::string word = d.name;
          if (!d.sizes.empty()) word += "[" + list_of(d.sizes) + "]";
          if (d.numbers) word += " of numbers";
          if (!d.next.empty()) word += " -> " + d.next;
          words.push_back(word);
        }
        const char* keyword = s.kind == StatementKind::input   ? "input"
                              : s.kind == StatementKind::table ? "table"
                                                               : "output";
        line(level, fmt::format("{} {}", keyword, fmt::join(words, ", ")) + end);
        return;
      }
      case StatementKind::require:
        line(level, fmt::format("require {}, \"{}\"", text_of(s.value), s.message) + end);
        return;
      case StatementKind::computed:
        line(level,
             fmt::format("computed {} by \"{}\"", fmt::join(s.targets, ", "), s.message) + end);
        return;
      case StatementKind::give:
        line(level, "give " + list_of(s.given) + end);
        return;
      case StatementKind::choose:
        choose(level, s, "if ");
        return;
    }
  }

  void choose(int level, const Statement& s, const std::string& keyword) {
    line(level, keyword + text_of(s.value));
    statements(level + 1, s.body);
    if (s.otherwise.empty()) return;
    if (s.otherwise.size() == 1 && s.otherwise[0].kind == StatementKind::choose &&
        s.otherwise[0].remarks.empty())
      return choose(level, s.otherwise[0], "else if ");
    line(level, "else");
    statements(level + 1, s.otherwise);
  }

  static constexpr std::size_t kWidth = 100;
  std::string out_;
};

}  // namespace

std::string expression_text(const Expression& e) {
  return e.in_brackets ? "(" + bare(e) + ")" : bare(e);
}

std::string block_file_text(const BlockFile& file) { return Printer().file(file); }

}  // namespace fuseline

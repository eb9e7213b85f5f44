#include "tests/cli/programs_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "model/programs/known_functions.h"
#include "model/programs/known_lines.h"
#include "model/programs/mainloop_syntax.h"
#include "model/programs/program_file.h"
#include "model/programs/rules.h"
#include "model/programs/value_function.h"

namespace fuseline {

namespace {

// Writes how a line stands: values are x, tensors t[M,N], and arguments that may be left out are in
// brackets with their usual value.
class LineShape final : public MainloopSyntax {
 public:
  std::string shape, said;

  void makes(std::span<Value* const> results) override {
    for (std::size_t i = 0; i < results.size(); ++i)
      shape += (i == 0 ? "" : ", ") + std::string(i == 0 ? "o" : fmt::format("o{}", i + 1));
    shape += " = ";
  }
  void stores(std::string_view keyword, Operand&, bool* add) override {
    shape += fmt::format("{} t[M,N] {} ", keyword, add != nullptr ? "= or +=" : "=");
  }
  void word(std::string_view word) override {
    if (!shape.empty() && shape.back() != ' ') shape += " ";
    shape += word;
    spaced_ = true;
  }
  void open() override {
    shape += "(";
    first_ = true;
    spaced_ = false;
  }
  void close() override { shape += ")"; }
  void value(Value&) override { item(next_value()); }
  void operand(Operand&) override { item(next_tensor()); }
  void slice(Value&, std::int64_t&, std::int64_t&) override { shape += "x[:, BEGIN:END]"; }
  void pattern(std::string_view pattern, std::vector<Value>& in, double* constant) override {
    const std::string second = constant != nullptr ? "C" : in.size() > 1 ? "z" : "";
    shape += fmt::format(fmt::runtime(pattern), "x", second);
  }
  void more(std::vector<Operand>&) override { item("t[M,N], ..."); }
  void more(std::vector<Value>&) override { shape += "[, z]"; }
  void number(std::string_view name, std::int64_t&, std::int64_t usual) override {
    if (usual == kNeeded)
      item(fmt::format("{} = N", name));
    else
      left_out(fmt::format("{} = {}", name, usual));
  }
  void real(std::string_view name, double&, double usual) override {
    left_out(fmt::format("{} = {}", name, usual));
  }
  void numbers(std::string_view name, std::vector<std::int64_t>&) override {
    left_out(fmt::format("{} = [N, ...]", name));
  }
  void flag(std::string_view name, bool&) override { left_out(std::string(name)); }
  void named(std::string_view name, std::optional<Operand>&) override {
    left_out(fmt::format("{} = t[M,N]", name));
  }
  void named(std::string_view name, std::vector<Operand>&) override {
    left_out(fmt::format("{} = [t[M,N], ...]", name));
  }
  void named(std::string_view name, Value&) override { left_out(fmt::format("{} = x", name)); }
  void choice(std::string_view name, int&, std::span<const std::string_view> words) override {
    left_out(fmt::format("{} = {}", name, fmt::join(words, "|")));
  }
  void text(std::string_view name, const std::string&,
            const std::function<void(const std::string&)>&) override {
    left_out(fmt::format("{} = FORMAT", name));
  }
  void remark(const std::string& words) override { said = words; }
  void transposed(bool& on) override { shape += on ? "ᵀ" : ""; }
  void times() override {
    shape += " · ";
    first_ = true;
  }
  void space(std::int64_t&, std::int64_t&) override { item("[M, N]"); }
  void named_value_of(Value&, Operand&) override { item(next_tensor()); }
  void makes_some(Value&, Value&) override { shape += "o[, o2] = "; }
  using Syntax::makes;
  using Syntax::number;

 private:
  void item(const std::string& what) {
    if (!first_) shape += ", ";
    if (first_ && spaced_) shape += " ";
    shape += what;
    first_ = false;
    spaced_ = false;
  }
  void left_out(const std::string& what) {
    shape += (first_ ? (spaced_ ? " [" : "[") : "[, ") + what + "]";
    first_ = false;
    spaced_ = false;
  }
  std::string next_value() {
    static constexpr const char* kNames[] = {"x", "z", "c", "s", "d"};
    return kNames[std::min<std::size_t>(values_++, 4)];
  }
  std::string next_tensor() {
    static constexpr const char* kNames[] = {"t", "u", "v", "w"};
    return std::string(kNames[std::min<std::size_t>(tensors_++, 3)]) + "[M,N]";
  }

  bool first_ = true, spaced_ = false;
  std::size_t values_ = 0, tensors_ = 0;
};

// One cell of a Markdown table, as code.
std::string code_cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return "`" + text + "`";
}

std::string row(const LineShape& line, const std::string& more = "") {
  return fmt::format("| {} | {}{} |\n", code_cell(line.shape), line.said, more);
}

// What a wrong text of one line is told to be allowed.
std::string allowed_in(const std::string& text) {
  const ProgramFile file = read_program_text(text, "wrong.fuse");
  return file.diagnoses.empty() ? "" : file.diagnoses.front().problem.allowed;
}

std::string coded(const std::string& list) {
  std::string out;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(", ", begin), list.size());
    out += (out.empty() ? "`" : ", `") + list.substr(begin, end - begin) + "`";
    begin = end + 2;
  }
  return out;
}

std::string mainloops() {
  std::string out;
  Value y = 0;
  const auto add = [&](auto mainloop, auto walk, const std::string& ahead) {
    LineShape line;
    line.shape = ahead;
    walk(mainloop, line);
    out += row(line);
  };
  const auto with = [&y](auto walk) {
    return [&y, walk](auto& m, LineShape& l) { walk(m, y, l); };
  };
  add(GemmMainloop{}, with(gemm_syntax), "");
  add(AttentionMainloop{}, with(attention_syntax), "");
  add(AttentionMainloop{}, with(attention_gradient_syntax), "");
  add(ScanMainloop{}, with(scan_syntax), "");
  add(ScanMainloop{}, with(scan_gradient_syntax), "");
  add(StreamMainloop{}, stream_syntax, "for each tile of ");
  add(RowMainloop{}, row_syntax, "for each row of ");
  return out;
}

// `stores`, `pattern`: which lines.
std::string lines(bool stores, bool pattern) {
  std::string out;
  for (const LineForm& form : known_lines()) {
    if (form.keyword.empty() == stores || form.pattern.empty() == pattern) continue;
    LineShape line;
    const LineKind& kind = known_kinds()[form.kind];
    (void)kind.walk(form.filled, line);
    out += row(line, kind.meaning        ? ""
                     : line.said.empty() ? "no fp64 meaning"
                                         : "; no fp64 meaning");
  }
  return out;
}

}  // namespace

std::string programs_page(const char* made) {
  std::string out = fmt::format(
      "# Programs\n\n{}\n`*.fuse`, read by `fuseline program` and by `--plan`. The handbook's "
      "chapter [Write an epilogue](../handbook/10-write-an-epilogue.md)\nexplains them, and [ten "
      "mistakes](program-mistakes.md) are shown with what is said of them.\n\nThe first line is "
      "`fuse {}`. A remark begins with `#`. Statements begin with {}.\n",
      made, kProgramVersion, coded(allowed_in(fmt::format("fuse {}\nwrong\n", kProgramVersion))));
  out += fmt::format(
      "\nA tensor is declared by its role, its name and its shape in letters or numbers, then its "
      "number format where that is not bf16:\n`activation s[M,⌈D/128⌉], fp32`. Formats and other "
      "words behind a shape: {}.\n",
      coded(allowed_in(fmt::format("fuse {}\ninput x[1,1], wrong\n", kProgramVersion))));
  out += fmt::format(
      "\n`let NAME(x) = formula`, or of two parameters, makes a map of values. Formulas have `+`, "
      "`-`, `*`, `/`, brackets, numbers, `pi` and\n{}, and functions of lines above.\n",
      coded(fmt::format("{}", fmt::join(value_function_names(), ", "))));
  const std::string table = "\n| line | |\n|---|---|\n";
  out +=
      "\nIn the tables `o` is what a line makes, `x` and `z` are values of lines above, `t[M,N]` "
      "is a tensor, `C` a number, and what stands in\nbrackets may be left out; the number there "
      "is the usual one. `verify` needs the fp64 meaning of every line of a program.\n";
  out += "\n## Mainloops\n\nThe first line of a program.\n" + table + mainloops();
  out += "\n## Maps\n" + table + lines(false, true);
  out += "\n## Lines that make values\n" + table + lines(false, false);
  out += "\n## Lines that store\n" + table + lines(true, false);
  out += "\n## Rules\n\n| rule | reason |\n|---|---|\n";
  for (const ProgramRule& rule : program_rules())
    out += fmt::format("| `{}` | {} |\n", rule.name, rule.reason);
  return out;
}

}  // namespace fuseline

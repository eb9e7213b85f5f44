// A draft as the text of a block.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/wrap.h"
#include "model/blocks/syntax.h"
#include "model/import/step_names.h"
#include "model/import/widths.h"

namespace fuseline {

namespace {

// Words that a tensor cannot be called.
const std::set<std::string> kTakenWords = {
    "B",       "T",    "S",       "M",      "forward", "decode",    "train",
    "yes",     "no",   "block",   "part",   "input",   "output",    "table",
    "numbers", "of",   "use",     "give",   "if",      "else",      "and",
    "or",      "not",  "require", "causal", "none",    "min",       "max",
    "sqrt",    "rows", "cache",   "split",  "linear",  "attention", "sliding_window",
    "norm_eps"};

std::string number_text(double number) {
  std::string text = fmt::format("{}", number);
  // 1e-05 is written 1e-5.
  const std::size_t at = text.find("e-0");
  if (at != std::string::npos) text.erase(at + 2, 1);
  return text;
}

class TextOfDraft {
 public:
  explicit TextOfDraft(const Draft& draft)
      : draft_(draft), widths_(draft, letters_), names_(draft, widths_, taken(draft)) {}

  std::string text(const std::string& name, const std::vector<std::string>& remarks) {
    inputs();
    for (std::size_t i = 0; i < draft_.steps.size(); ++i)
      if (draft_.steps[i].live) step(i);
    outputs();
    std::string out = "fuseline.block/1\n\n";
    for (const std::string& remark : remarks) {
      constexpr std::size_t kWidth = 98;
      for (const std::string& line : broken(remark, kWidth)) out += "# " + line + "\n";
    }
    out += fmt::format("\nblock {}({})\n{}", name, parameters(), body_);
    return block_file_text(parse_block_file(out, name));
  }

 private:
  static std::set<std::string> taken(const Draft& draft) {
    std::set<std::string> all = kTakenWords;
    for (const DraftStep& step : draft.steps)
      if (step.live && step.call == "choose_experts") all.insert({"E", "k"});
    for (const char* letter : {"D", "F", "H", "Hkv", "d", "dv", "rotated", "Tt"}) {
      all.insert(letter);
      for (int n = 2; n < 10; ++n) all.insert(letter + std::to_string(n));
    }
    return all;
  }

  void line(const std::string& text) { body_ += "  " + text + "\n"; }

  // Sequences and their tokens are the workload's; another stream has tokens of its own.
  std::string row_words(std::int64_t rows) {
    if (rows == draft_.rows()) return "M";
    if (rows == draft_.batch) return "B";
    if (rows % draft_.batch == 0) return "B " + letters_.word({"Tt", rows / draft_.batch});
    return std::to_string(rows);
  }

  void inputs() {
    std::set<std::size_t> read;
    for (const DraftStep& step : draft_.steps)
      if (step.live)
        for (const MatrixColumns& range : step.reads) read.insert(range.matrix);
    std::vector<std::string> words;
    for (std::size_t i = 0; i < draft_.matrices.size(); ++i) {
      const DraftMatrix& matrix = draft_.matrices[i];
      if (matrix.kind != MatrixKind::input || !read.contains(i)) continue;
      words.push_back(fmt::format("{}[{}, {}]", names_.of(draft_.all_of(i)), row_words(matrix.rows),
                                  widths_.words(draft_.all_of(i))));
      inputs_.push_back(i);
    }
    line(fmt::format("input {}", fmt::join(words, ", ")));
    for (const std::size_t i : inputs_) split(i);
  }

  void split(std::size_t matrix) {
    const std::vector<MatrixColumns> parts = widths_.parts(matrix);
    if (parts.empty()) return;
    std::vector<std::string> names, sizes;
    for (const MatrixColumns& part : parts) {
      names.push_back(names_.of(part));
      sizes.push_back(widths_.words(part));
    }
    line(fmt::format("{} = split({}, {})", fmt::join(names, ", "), names_.of(draft_.all_of(matrix)),
                     fmt::join(sizes, ", ")));
  }

  void tables(const DraftStep& step) {
    std::vector<std::string> words;
    for (const MatrixColumns& read : step.reads) {
      if (draft_.matrices[read.matrix].kind != MatrixKind::table ||
          !declared_.insert(read.matrix).second)
        continue;
      words.push_back(fmt::format("{}[T, {}]", names_.of(read), widths_.words(read)));
    }
    if (!words.empty()) line(fmt::format("table {}", fmt::join(words, ", ")));
  }

  std::string value(const DraftValue& value) {
    std::string text;
    if (const auto* letter = std::get_if<Letter>(&value.value)) text = letters_.word(*letter);
    if (const auto* number = std::get_if<double>(&value.value)) text = number_text(*number);
    if (const auto* word = std::get_if<std::string>(&value.value)) text = *word;
    if (const auto* setting = std::get_if<Setting>(&value.value)) {
      const auto [known, added] = settings_.emplace(setting->name, setting->number);
      text = known->second == setting->number ? setting->name : number_text(setting->number);
    }
    return value.name.empty() ? text : value.name + " = " + text;
  }

  // A weight is written with its sizes: those of the result and of what is read, or of its columns.
  std::string operand(const DraftStep& step, const MatrixColumns& read) {
    const DraftMatrix& matrix = draft_.matrices[read.matrix];
    if (matrix.kind != MatrixKind::weight) return names_.of(read);
    const std::string out = widths_.words(draft_.all_of(step.writes.front()));
    if (matrix.each_of)
      return fmt::format("{}[{}, {}, {}]", names_.of(read), letters_.word(*matrix.each_of), out,
                         widths_.words(step.reads.front()));
    if (step.call != "linear") return fmt::format("{}[{}]", names_.of(read), widths_.words(read));
    if (matrix.rows == 1) return fmt::format("{}[{}]", names_.of(read), out);
    return fmt::format("{}[{}, {}]", names_.of(read), out, widths_.words(step.reads.front()));
  }

  void step(std::size_t at) {
    const DraftStep& step = draft_.steps[at];
    tables(step);
    std::vector<std::string> operands;
    for (std::size_t i = 0; i < step.reads.size(); ++i) {
      const std::string name = i < step.read_names.size() ? step.read_names[i] + " = " : "";
      operands.push_back(name + operand(step, step.reads[i]));
    }
    std::string right;
    if (step.call == "+" || step.call == "*") {
      right = operands[0] + " " + step.call + " " + operands[1];
    } else if (step.call == "scale") {
      right = value(step.values.front()) + " * " + operands[0];
    } else {
      for (const DraftValue& v : step.values) operands.push_back(value(v));
      right = fmt::format("{}({})", step.call, fmt::join(operands, ", "));
    }
    const NamedStep& named = names_.step(at);
    line(fmt::format("{}{} = {}", named.label.empty() ? "" : named.label + ": ",
                     fmt::join(named.results, ", "), right));
    for (const std::size_t matrix : step.writes) split(matrix);
  }

  // A result of the stream's form is the next layer's stream.
  void outputs() {
    std::vector<std::string> words;
    std::set<std::size_t> next;
    std::set<MatrixColumns> given;
    for (const MatrixColumns& output : draft_.outputs) {
      if (!given.insert(output).second) continue;
      const DraftMatrix& matrix = draft_.matrices[output.matrix];
      std::string word = names_.of(output);
      for (const std::size_t input : inputs_) {
        const DraftMatrix& x = draft_.matrices[input];
        if (x.rows != matrix.rows || x.columns != output.count || next.contains(input)) continue;
        next.insert(input);
        word += " -> " + names_.of(draft_.all_of(input));
        break;
      }
      words.push_back(word);
    }
    line(fmt::format("output {}", fmt::join(words, ", ")));
  }

  // D, F, ... with the example's numbers, then heads, then what steps share.
  std::string parameters() {
    std::vector<Letter> letters = letters_.all();
    const auto rank = [](const Letter& letter) {
      const std::string order[] = {"D", "F", "Tt", "H", "Hkv", "d", "dv", "rotated"};
      for (std::size_t i = 0; i < std::size(order); ++i)
        if (letter.name.substr(0, letter.name.find_first_of("23456789")) == order[i]) return i;
      return std::size(order);
    };
    std::stable_sort(letters.begin(), letters.end(),
                     [&](const Letter& a, const Letter& b) { return rank(a) < rank(b); });
    std::vector<std::string> words;
    for (const Letter& letter : letters) {
      const std::int64_t heads = letters_.number("H");
      const std::int64_t stream = letters_.number("D");
      const std::int64_t head = letters_.number("d");
      std::string number = std::to_string(letter.number);
      if (letter.name == "Hkv" && letter.number == heads) number = "H";
      if (letter.name == "d" && heads > 0 && heads * letter.number == stream) number = "D / H";
      if (letter.name == "rotated" && head == 2 * letter.number) number = "d / 2";
      words.push_back(letter.name + " = " + number);
    }
    for (const auto& [name, number] : settings_)
      if (name != "norm_eps") words.push_back(name + " = " + number_text(number));
    if (const auto eps = settings_.find("norm_eps"); eps != settings_.end())
      words.push_back("norm_eps = " + number_text(eps->second));
    return fmt::format("{}", fmt::join(words, ", "));
  }

  const Draft& draft_;
  Letters letters_;
  Widths widths_;
  StepNames names_;
  std::map<std::string, double> settings_;
  std::vector<std::size_t> inputs_;
  std::set<std::size_t> declared_;
  std::string body_;
};

}  // namespace

std::string draft_text(const Draft& draft, const std::string& name,
                       const std::vector<std::string>& remarks) {
  return TextOfDraft(draft).text(name, remarks);
}

}  // namespace fuseline

// What a person mistypes, whatever the programs mean.
#include <utility>

#include "tests/error/mistake_maker.h"

namespace fuseline::test {

using Rules = std::set<std::string>;

void MistakeMaker::typing_errors() {
  for (const Place& p : right_.programs)
    for (std::size_t i = p.begin(); i < p.end; ++i) {
      const std::string code = right_.code(i);
      const auto typed = [&](const std::string& what, const std::string& wrong, Rules rules) {
        if (wrong == code) return;
        Text text = right_;
        text.set(i, wrong);
        add(what, text, std::move(rules), {i}, true);
      };
      const std::string tensor = right_.tensor(i);
      if (!tensor.empty() && right_.declaration(tensor))
        typed("a tensor's name is misspelt", replaced(code, tensor + "[", tensor + "q["),
              {"unknown-tensor"});
      if (right_.stores(i)) {
        typed("a keyword is misspelt", replaced(code, "store", "stroe"), {"syntax"});
        typed("the sign is left out", replaced(code, " = ", " "), {"syntax"});
        const std::size_t last = code.rfind(' ');
        if (!right_.stores_partials(i))
          typed("a value's name is misspelt", code.substr(0, last + 1) + "nothing",
                {"undefined-value"});
      }
      for (const char* word : {"load_rows", "load_cols", "load", "row_sum", "row_max", "rsqrt",
                               "swiglu", "geglu", "rope"})
        if (code.find(std::string("= ") + word) != std::string::npos) {
          typed("a primitive's word is misspelt",
                replaced(code, std::string("= ") + word, std::string("= ") + word + "e"),
                {"unknown-primitive"});
          break;
        }
      if (code.find(']') != std::string::npos)
        typed("a bracket is left out", replaced(code, "]", ""), {"syntax", "shape"});
      if (code.ends_with(")") && code.find('(') != std::string::npos)
        typed("the last bracket is left out", code.substr(0, code.size() - 1),
              {"syntax", "arguments", "unknown-primitive"});
      if (code.find(", pairs") != std::string::npos)
        typed("an argument's name is misspelt", replaced(code, ", pairs", ", pares"),
              {"arguments"});
      if (i == p.mainloop && right_.is_product(p)) {
        typed("the sign of the product is another one", replaced(code, " · ", " x "), {"syntax"});
        typed("an argument that is no argument", code + ", fast", {"arguments"});
        typed("an argument is given twice", code + ", M = 1, M = 1", {"arguments"});
      }
      if (code.starts_with("for each")) {
        typed("the mainloop's word is misspelt", replaced(code, "each", "every"), {"syntax"});
        typed("a comma is left out", replaced(code, ", ", " "), {"syntax", "shape"});
      }
      if (i > p.mainloop && !right_.stores(i)) {
        const std::string made = right_.result(i);
        if (!made.empty())
          typed("a result more than there is", made + ", " + made + "2" + code.substr(made.size()),
                {"results"});
      }
      if (i > p.mainloop) {
        Text text = right_;
        text.lines[i] = "  " + text.lines[i];
        add("a line stands too far in", text, {"syntax"}, {i}, true);
      }
    }
  for (std::size_t i = 0; i < right_.lines.size(); ++i) {
    const std::string code = right_.code(i);
    if (right_.indent(i) > 0) continue;
    const auto typed = [&](const std::string& what, const std::string& wrong, Rules rules) {
      if (wrong == code) return;
      Text text = right_;
      text.set(i, wrong);
      add(what, text, std::move(rules), {i}, true);
    };
    for (const char* role : {"input", "weight", "activation", "output"})
      if (code.starts_with(std::string(role) + " ")) {
        typed("a role is misspelt", replaced(code, role, std::string(role) + "s"), {"statement"});
        typed("a shape has a third size", replaced(code, "]", ",2]"), {"syntax"});
      }
    if (code.find(", fp32") != std::string::npos)
      typed("a number format is misspelt", replaced(code, ", fp32", ", f32"), {"number-format"});
    if (code.starts_with("size ")) {
      typed("a size is a word", replaced(code, "= ", "= many"), {"syntax"});
      typed("a size of nothing", code.substr(0, code.find('=') + 1), {"syntax"});
    }
    if (code.starts_with("program "))
      typed("a statement's word is misspelt", replaced(code, "program", "programme"),
            {"statement"});
    if (code.starts_with("kernel "))
      typed("a kind of kernel is misspelt", replaced(code, ": ", ": x"), {"arguments"});
    if (i == 0) {
      typed("a version that there is not", "fuse 9", {"version"});
      // What stands in its place is to blame: the first statement.
      std::size_t next = 1;
      while (next < right_.lines.size() && right_.code(next).empty()) ++next;
      Text text = right_;
      text.set(0, "");
      add("no version", text, {"version"}, {0, next}, true);
    }
  }
}

}  // namespace fuseline::test

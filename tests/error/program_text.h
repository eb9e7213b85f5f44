// A text of programs by its statements, to be changed line by line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace fuseline::test {

std::string trimmed(const std::string& line);  // without its remark
bool in_name(char c);
// The first `what` of the text; where it has none, nothing changes.
std::string replaced(std::string text, const std::string& what, const std::string& by);

// A program of the text, by line numbers from 0.
struct Place {
  std::size_t head = 0, mainloop = 0, end = 0;  // [head, end)
  [[nodiscard]] std::size_t begin() const { return head + 1; }
};

class Text {
 public:
  // Broken lines are joined, and remarks left out, so that a line is a statement.
  explicit Text(const std::string& text);

  [[nodiscard]] std::string code(std::size_t i) const { return trimmed(lines[i]); }
  [[nodiscard]] std::size_t indent(std::size_t i) const;
  [[nodiscard]] bool is_mainloop(std::size_t i) const;
  [[nodiscard]] bool is_product(const Place& p) const;
  [[nodiscard]] bool stores(std::size_t i) const { return code(i).starts_with("store"); }
  [[nodiscard]] bool stores_partials(std::size_t i) const;
  // The operand "t[...]" of a line, from its n-th bracket.
  [[nodiscard]] std::string operand(std::size_t i) const;
  [[nodiscard]] std::string tensor(std::size_t i) const;
  // What stands ahead of "=" in a line that makes one value.
  [[nodiscard]] std::string result(std::size_t i) const;
  // A tile that the program has where its last store is.
  [[nodiscard]] std::string last_tile(const Place& p) const;
  [[nodiscard]] std::optional<std::size_t> declaration(const std::string& name) const;
  [[nodiscard]] std::string role(const std::string& name) const;
  // The declaration of another tensor of that shape.
  [[nodiscard]] std::string declared_as(const std::string& name, const std::string& new_role,
                                        const std::string& new_name) const;

  [[nodiscard]] std::string joined() const;
  void set(std::size_t i, const std::string& code);
  void insert(std::size_t i, std::size_t spaces, const std::string& code);
  void erase(std::size_t begin, std::size_t end);

  std::vector<std::string> lines;
  std::vector<Place> programs;
};

}  // namespace fuseline::test

#include "tests/error/program_text.h"

#include <cctype>
#include <sstream>

namespace fuseline::test {

std::string trimmed(const std::string& line) {
  std::string code = line.substr(0, line.find('#'));
  while (!code.empty() && code.back() == ' ') code.pop_back();
  const std::size_t begin = code.find_first_not_of(' ');
  return begin == std::string::npos ? "" : code.substr(begin);
}

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  if (at != std::string::npos) text.replace(at, what.size(), by);
  return text;
}
Text::Text(const std::string& text) {
  std::istringstream in(text);
  int depth = 0;
  for (std::string line; std::getline(in, line);) {
    const std::string code = trimmed(line);
    if (code.starts_with("hash ")) continue;
    if (depth > 0)
      lines.back() += " " + code;
    else
      lines.push_back(std::string(line.find_first_not_of(' ') == std::string::npos
                                      ? 0
                                      : line.find_first_not_of(' '),
                                  ' ') +
                      code);
    for (const char c : code) {
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
    }
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!code(i).starts_with("program ")) continue;
    Place p{.head = i, .mainloop = i + 1, .end = i + 1};
    while (p.end < lines.size() && !code(p.end).empty() && indent(p.end) > indent(i)) ++p.end;
    while (p.mainloop < p.end && !is_mainloop(p.mainloop)) ++p.mainloop;
    if (p.mainloop < p.end) programs.push_back(p);
  }
}

std::size_t Text::indent(std::size_t i) const {
  return std::min(lines[i].find_first_not_of(' '), lines[i].size());
}

bool Text::is_mainloop(std::size_t i) const {
  const std::string c = code(i);
  return c.starts_with("for each ") || c.find(" · ") != std::string::npos ||
         c.find("= attention") != std::string::npos || c.find("= scan") != std::string::npos;
}

bool Text::is_product(const Place& p) const {
  return code(p.mainloop).find(" · ") != std::string::npos;
}

bool Text::stores_partials(std::size_t i) const {
  const std::string c = code(i);
  return c.starts_with("store ") && c.find("= ") != std::string::npos && c.back() == ')';
}

std::string Text::operand(std::size_t i) const {
  const std::string c = code(i);
  const std::size_t open = c.find('[');
  if (open == std::string::npos) return "";
  std::size_t begin = open;
  while (begin > 0 && in_name(c[begin - 1])) --begin;
  return c.substr(begin, c.find(']', open) + 1 - begin);
}

std::string Text::tensor(std::size_t i) const {
  const std::string o = operand(i);
  return o.substr(0, o.find('['));
}

std::string Text::result(std::size_t i) const {
  const std::string c = code(i);
  const std::size_t sign = c.find(" = ");
  if (stores(i) || sign == std::string::npos || c.find(',') < sign) return "";
  return c.substr(0, sign);
}

std::string Text::last_tile(const Place& p) const {
  for (std::size_t i = p.end; i-- > p.begin();)
    if (code(i).starts_with("store ") && !stores_partials(i))
      return code(i).substr(code(i).rfind(' ') + 1);
  return is_product(p) ? result(p.mainloop) : "";
}

std::optional<std::size_t> Text::declaration(const std::string& name) const {
  for (std::size_t i = 0; i < lines.size(); ++i)
    for (const char* role : {"input ", "weight ", "table ", "cache ", "activation ", "output "})
      if (indent(i) == 0 && code(i).starts_with(role + name + "[")) return i;
  return std::nullopt;
}

std::string Text::role(const std::string& name) const {
  const auto at = declaration(name);
  return at ? code(*at).substr(0, code(*at).find(' ')) : "";
}

std::string Text::declared_as(const std::string& name, const std::string& new_role,
                              const std::string& new_name) const {
  const std::string c = code(*declaration(name));
  return new_role + " " + new_name + c.substr(c.find('['));
}

std::string Text::joined() const {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

void Text::set(std::size_t i, const std::string& code) {
  lines[i] = std::string(indent(i), ' ') + code;
}

void Text::insert(std::size_t i, std::size_t spaces, const std::string& code) {
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(i), std::string(spaces, ' ') + code);
}

void Text::erase(std::size_t begin, std::size_t end) {
  lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(begin),
              lines.begin() + static_cast<std::ptrdiff_t>(end));
}

}  // namespace fuseline::test

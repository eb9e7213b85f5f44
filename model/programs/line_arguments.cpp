// The arguments of a line that have names: "group = 128", "add". A walk asks for them in any order,
// so their places are found first.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/programs/line_reader.h"

namespace fuseline {

void LineReader::end_arguments() {
  index_arguments();
  refuse_unused();
  cursor_.go_to(end_);
}

void LineReader::index_arguments() {
  if (indexed_) return;
  indexed_ = true;
  const auto at_end = [&] {
    return cursor_.kind() == TokenKind::line_end || cursor_.kind() == TokenKind::end ||
           cursor_.is(")") || cursor_.is("->");
  };
  while (!at_end()) {
    if (!first_) cursor_.need(",");
    first_ = false;
    const Position at = cursor_.here();
    if (cursor_.kind() != TokenKind::name ||
        !(cursor_.is("=", 1) || cursor_.is(",", 1) || cursor_.is(")", 1) || cursor_.is("->", 1) ||
          cursor_.token(1).kind == TokenKind::line_end))
      refuse(at, "arguments",
             {.value = std::string(cursor_.token().text),
              .message = "the line takes no further value or tensor",
              .allowed = "arguments by name, as group = 128"});
    const std::string name(cursor_.next().text);
    Argument a{.at = at, .flag = !cursor_.take("=")};
    a.begin = cursor_.place();
    for (int depth = 0;;) {
      if (depth == 0 && (at_end() || cursor_.is(","))) break;
      if (cursor_.kind() == TokenKind::line_end || cursor_.kind() == TokenKind::end) break;
      if (cursor_.is("(") || cursor_.is("[")) ++depth;
      if (cursor_.is(")") || cursor_.is("]")) --depth;
      cursor_.next();
    }
    a.end = cursor_.place();
    if (!arguments_.emplace(name, a).second)
      refuse(at, "arguments", {.value = name, .message = "is given twice"});
  }
  end_ = cursor_.place();
}

LineReader::Argument* LineReader::argument(std::string_view name) {
  index_arguments();
  asked_.emplace_back(name);
  const auto found = arguments_.find(name);
  if (found == arguments_.end()) return nullptr;
  found->second.used = true;
  cursor_.go_to(found->second.begin);
  return &found->second;
}

void LineReader::end_of(const Argument& a) const {
  if (cursor_.place() != a.end) cursor_.expected("the end of the argument");
}

void LineReader::refuse_unused() {
  for (const auto& [name, a] : arguments_) {
    if (a.used) continue;
    refuse(a.at, "arguments",
           {.value = name,
            .message = "the line takes no argument of this name",
            .allowed =
                asked_.empty() ? std::string("none") : fmt::format("{}", fmt::join(asked_, ", ")),
            .nearest = nearest_name(name, asked_)});
  }
}

void LineReader::number(std::string_view name, std::int64_t& n, std::int64_t usual) {
  const Argument* a = argument(name);
  if (a == nullptr) {
    if (usual == kNeeded) {
      cursor_.go_to(end_);
      refuse(cursor_.here(), "arguments",
             {.value = std::string(name),
              .message = "the argument is missing",
              .allowed = fmt::format("{} = a whole number", name)});
    }
    n = usual;
    return;
  }
  n = sizes_.read(cursor_);
  end_of(*a);
}
void LineReader::real(std::string_view name, double& x, double usual) {
  const Argument* a = argument(name);
  x = usual;
  if (a == nullptr) return;
  x = read_real();
  end_of(*a);
}
void LineReader::numbers(std::string_view name, std::vector<std::int64_t>& all) {
  const Argument* a = argument(name);
  all.clear();
  if (a == nullptr) return;
  cursor_.need("[");
  do all.push_back(sizes_.read(cursor_));
  while (cursor_.take(","));
  cursor_.need("]");
  end_of(*a);
}
void LineReader::flag(std::string_view name, bool& on) {
  const Argument* a = argument(name);
  on = a != nullptr;
  if (a != nullptr && !a->flag)
    refuse(a->at, "arguments",
           {.value = std::string(name), .message = "is a flag, without \"=\" and a value"});
}
void LineReader::named(std::string_view name, std::optional<Operand>& o) {
  const Argument* a = argument(name);
  o.reset();
  if (a == nullptr) return;
  o = read_operand(cursor_, graph_, sizes_);
  end_of(*a);
}
void LineReader::named(std::string_view name, std::vector<Operand>& all) {
  const Argument* a = argument(name);
  all.clear();
  if (a == nullptr) return;
  cursor_.need("[");
  do all.push_back(read_operand(cursor_, graph_, sizes_));
  while (cursor_.take(","));
  cursor_.need("]");
  end_of(*a);
}
void LineReader::named(std::string_view name, Value& v) {
  const Argument* a = argument(name);
  v = -1;
  if (a == nullptr) return;
  v = read_value();
  end_of(*a);
}
void LineReader::choice(std::string_view name, int& which,
                        std::span<const std::string_view> words) {
  const Argument* a = argument(name);
  which = 0;
  if (a == nullptr) return;
  const std::vector<std::string> allowed(words.begin(), words.end());
  const Position at = cursor_.here();
  const std::string word = read_any_name(cursor_, "a word");
  for (std::size_t i = 0; i < words.size(); ++i)
    if (word == words[i]) {
      which = static_cast<int>(i);
      return end_of(*a);
    }
  refuse(at, "arguments",
         {.field = std::string(name),
          .value = word,
          .message = "is none of the words",
          .allowed = fmt::format("{}", fmt::join(allowed, ", ")),
          .nearest = nearest_name(word, allowed)});
}
void LineReader::text(std::string_view name, const std::string&,
                      const std::function<void(const std::string&)>& set) {
  const Argument* a = argument(name);
  if (a == nullptr) return;
  const Position at = cursor_.here();
  try {
    set(read_any_name(cursor_, "a name, in quotes where it is no word"));
  } catch (const InputError& e) {
    if (e.problem().line > 0) throw;
    refuse(at, "number-format", e.problem());
  }
  end_of(*a);
}

}  // namespace fuseline

#include "model/programs/program_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "model/programs/defined_map.h"
#include "model/programs/known_lines.h"

namespace fuseline {

namespace {

bool is_store_word(std::string_view word) {
  return std::ranges::any_of(known_lines(), [&](const LineForm& f) { return f.keyword == word; });
}

// Whether the text of the pattern beside its places stands ahead; a place is a name or a number.
bool may_match(const TokenCursor& cursor, std::string_view pattern) {
  std::size_t ahead = 0;
  for (std::size_t i = 0; i < pattern.size();) {
    if (pattern[i] == ' ') {
      ++i;
      continue;
    }
    if (pattern.substr(i, 2) == "{}") {
      if (cursor.is("-", ahead)) ++ahead;
      const TokenKind kind = cursor.token(ahead).kind;
      if (kind != TokenKind::name && kind != TokenKind::number && kind != TokenKind::quoted)
        return false;
      ++ahead;
      i += 2;
      continue;
    }
    std::size_t end = i + 1;
    if (std::isalnum(static_cast<unsigned char>(pattern[i])) != 0)
      while (end < pattern.size() &&
             (std::isalnum(static_cast<unsigned char>(pattern[end])) != 0 || pattern[end] == '_'))
        ++end;
    if (cursor.token(ahead).text != pattern.substr(i, end - i)) return false;
    ++ahead;
    i = end;
  }
  return cursor.token(ahead).kind == TokenKind::line_end;
}

// "gelu" of "gelu({})"; empty for one that does not begin with a word.
std::string word_of_pattern(std::string_view pattern) {
  const std::size_t end = pattern.find('(');
  if (end == std::string_view::npos || end == 0 || pattern[0] == '{') return "";
  return std::string(pattern.substr(0, end));
}

constexpr std::string_view kMainloops[] = {"attention", "attention_gradient", "scan",
                                           "scan_gradient"};

}  // namespace

void skip_statement(TokenCursor& cursor) {
  while (cursor.kind() != TokenKind::line_end && cursor.kind() != TokenKind::end) cursor.next();
  if (cursor.kind() == TokenKind::line_end) cursor.next();
  int depth = 0;
  while (cursor.kind() != TokenKind::end) {
    if (cursor.kind() == TokenKind::indent) ++depth;
    if (depth == 0) return;
    if (cursor.kind() == TokenKind::dedent) --depth;
    cursor.next();
  }
}

Diagnosis diagnosis_of(const InputError& error) {
  if (const auto* refused = dynamic_cast<const RefusedLine*>(&error)) return refused->diagnosis();
  return {.rule = "syntax", .problem = error.problem(), .mend = line_with_nearest(error.problem())};
}

Program ProgramReader::read(const std::string& name, ProgramPlaces& places,
                            std::vector<Diagnosis>& diagnoses) {
  program_ = {};
  program_.name = name;
  values_ = {};
  has_mainloop_ = tried_mainloop_ = false;
  LineReader reader(cursor_, graph_, sizes_, values_);
  while (cursor_.kind() != TokenKind::dedent && cursor_.kind() != TokenKind::end) {
    const Position at = cursor_.here();
    const std::size_t prologue = program_.prologue.size(), body = program_.body.size();
    const bool had = has_mainloop_;
    failed_ = {};
    try {
      if (cursor_.kind() == TokenKind::indent)
        cursor_.fail(at, {.message = "a line further in",
                          .allowed = "the column of the program's first line"});
      line(reader);
    } catch (const InputError& e) {
      Diagnosis d = diagnosis_of(e);
      if (!d.rule.empty()) diagnoses.push_back(std::move(d));
      for (const auto& [result, place] : failed_.results) values_.spoilt.insert(result);
      skip_statement(cursor_);
    }
    if (program_.prologue.size() > prologue) places.prologue.push_back(at);
    if (program_.body.size() > body) places.body.push_back(at);
    if (has_mainloop_ && !had) places.mainloop = at;
  }
  program_.names = values_.names;
  // A mainloop that could not be read was said already.
  if (!has_mainloop_ && !tried_mainloop_) {
    InputProblem problem{.file = cursor_.source()->file,
                         .message = "program " + name + " has no mainloop",
                         .allowed =
                             "y = a[M,K] · b[N,K]ᵀ, attention(...), scan(...), "
                             "for each tile of [M, N], for each row of [M, N]",
                         .line = places.head.line,
                         .column = places.head.column,
                         .shown = cursor_.source()->line(places.head.line)};
    diagnoses.push_back({.rule = "mainloop", .problem = std::move(problem)});
  }
  return std::move(program_);
}

LineHead ProgramReader::head() {
  LineHead head{.at = cursor_.here()};
  if (cursor_.kind() == TokenKind::name && is_store_word(cursor_.token().text) &&
      cursor_.is("[", 2)) {
    head.keyword = cursor_.next().text;
    head.stored = read_operand(cursor_, graph_, sizes_);
    head.add = cursor_.take("+=");
    if (!head.add) cursor_.need("=");
    return head;
  }
  do {
    const Position at = cursor_.here();
    head.results.emplace_back(read_any_name(cursor_, "a line: o = ..., or store h[M,N] = ..."), at);
  } while (cursor_.take(","));
  cursor_.need("=");
  return head;
}

void ProgramReader::line(LineReader& reader) {
  if (cursor_.is_name("for")) {
    LineHead none{.at = cursor_.here()};
    (void)mainloop(reader, none);
    return;
  }
  failed_ = head();
  LineHead h = failed_;
  if (h.keyword.empty() && mainloop(reader, h)) return;
  Primitive made = primitive(reader, h);
  reader.finish();
  (has_mainloop_ ? program_.body : program_.prologue).push_back(std::move(made));
}

bool ProgramReader::mainloop(LineReader& reader, LineHead& head) {
  const bool loop = cursor_.is_name("for");
  const bool gemm = at_operand(cursor_) && !cursor_.is(":", 2);
  const bool called = cursor_.is("(", 1) && std::ranges::any_of(kMainloops, [&](auto word) {
                        return cursor_.is_name(word);
                      });
  if (!loop && !gemm && !called) return false;
  tried_mainloop_ = true;
  if (has_mainloop_)
    refuse_at(*cursor_.source(), head.at, "second-mainloop",
              {.message = "the program has a mainloop already: a tile of a second product needs "
                          "columns that other thread blocks make",
               .allowed = "another program, behind this one"});
  reader.begin(head, true);
  Value y = 0;
  if (loop) {
    cursor_.next();
    if (!cursor_.take_name("each")) cursor_.expected("'each'");
    const bool rows = cursor_.is_name("row");
    if (!rows && !cursor_.is_name("tile")) cursor_.expected("'tile' or 'row'");
    cursor_.next();
    if (!cursor_.take_name("of")) cursor_.expected("'of'");
    if (rows) {
      RowMainloop m;
      row_syntax(m, reader);
      program_.mainloop = m;
    } else {
      StreamMainloop m;
      stream_syntax(m, reader);
      program_.mainloop = m;
    }
  } else if (gemm) {
    GemmMainloop m;
    gemm_syntax(m, y, reader);
    program_.mainloop = std::move(m);
  } else if (cursor_.is_name("attention")) {
    AttentionMainloop m;
    attention_syntax(m, y, reader);
    program_.mainloop = std::move(m);
  } else if (cursor_.is_name("attention_gradient")) {
    AttentionMainloop m;
    attention_gradient_syntax(m, y, reader);
    program_.mainloop = std::move(m);
  } else if (cursor_.is_name("scan")) {
    ScanMainloop m;
    scan_syntax(m, y, reader);
    program_.mainloop = std::move(m);
  } else {
    ScanMainloop m;
    scan_gradient_syntax(m, y, reader);
    program_.mainloop = std::move(m);
  }
  values_.known.clear();  // what a prologue made is behind the mainloop
  reader.finish();
  has_mainloop_ = true;
  return true;
}

Primitive ProgramReader::primitive(LineReader& reader, const LineHead& head) {
  if (head.keyword.empty()) {
    if (cursor_.is("[", 1) && cursor_.is(":", 2)) {
      for (const LineForm& f : known_lines())
        if (f.word == "[") {
          reader.begin(head, false);
          return known_kinds()[f.kind].walk(f.filled, reader);
        }
    }
    if (cursor_.is("(", 1))
      for (const DefinedFunction& f : functions_)
        if (cursor_.is_name(f.name)) {
          reader.begin(head, false);
          Map map{.out = 0,
                  .fn = defined_map(f.name, f.function),
                  .in = std::vector<Value>(f.function.parameters().size())};
          reader.makes(map.out);
          reader.pattern(map.fn->text, map.in, nullptr);
          return map;
        }
  }
  const bool store_of_value = !head.keyword.empty() && !cursor_.is("(", 1);
  const std::string word = store_of_value ? "" : std::string(cursor_.token().text);
  for (const LineForm& f : known_lines()) {
    if (f.keyword != head.keyword || f.word != word || !f.pattern.empty()) continue;
    reader.begin(head, false);
    return known_kinds()[f.kind].walk(f.filled, reader);
  }
  if (!head.keyword.empty()) unknown(head);
  return by_pattern(reader, head);
}

Primitive ProgramReader::by_pattern(LineReader& reader, const LineHead& head) {
  const std::size_t place = cursor_.place();
  std::optional<RefusedLine> best;
  for (const LineForm& f : known_lines()) {
    if (f.pattern.empty() || !may_match(cursor_, f.pattern)) continue;
    try {
      reader.begin(head, false);
      Primitive made = known_kinds()[f.kind].walk(f.filled, reader);
      if (cursor_.kind() == TokenKind::line_end) return made;
    } catch (const RefusedLine& e) {
      if (!best) best = e;  // "h = y + xx": xx is no value; that it is no number either is no news
    } catch (const InputError&) {  // a number is wanted where a name stands
    }
    cursor_.go_to(place);
  }
  if (best) throw RefusedLine(*best);
  unknown(head);
}

void ProgramReader::unknown(const LineHead& head) const {
  std::vector<std::string> words, fitting;
  const std::string word(cursor_.token().text);
  for (const DefinedFunction& f : functions_) words.push_back(f.name);
  for (const LineForm& f : known_lines()) {
    if (f.keyword != head.keyword) continue;
    if (!f.pattern.empty() && word_of_pattern(f.pattern) == word) fitting.push_back(f.pattern);
    const std::string known = f.pattern.empty() ? f.word : word_of_pattern(f.pattern);
    if (!known.empty() && known != "[") words.push_back(known);
  }
  std::ranges::sort(words);
  if (!fitting.empty())
    refuse_at(
        *cursor_.source(), cursor_.here(), "arguments",
        {.value = word,
         .message = "does not take what stands in the brackets",
         .allowed = fmt::format("{}, with a value in place of {{}}", fmt::join(fitting, " or "))});
  refuse_at(*cursor_.source(), cursor_.here(), "unknown-primitive",
            {.value = word,
             .message = "no primitive and no function has this name",
             .allowed = "a primitive's word, let, or a formula of one step, as y + x",
             .nearest = nearest_name(word, words)});
}

}  // namespace fuseline

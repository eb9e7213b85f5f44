// Recursive descent, one function a rule. Every rule's first token decides.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "model/blocks/syntax.h"
#include "model/text/token_cursor.h"

namespace fuseline {

namespace {

constexpr std::string_view kVersion = "fuseline.block/1";
// Words that no tensor, size or part can be called by.
constexpr std::array<std::string_view, 14> kBlockWords = {
    "block", "part", "use",     "input", "table", "output", "give",
    "if",    "else", "require", "and",   "or",    "not",    "computed"};
// What one expression may hold, and one chain of cases: no block comes near, and no nonsense fills
// the stack.
constexpr int kMostWords = 2'000;
constexpr int kMostCases = 200;

class Parser : private TokenCursor {
 public:
  explicit Parser(std::shared_ptr<const SourceText> source)
      : TokenCursor(std::move(source), kBlockWords) {}

  BlockFile file() {
    BlockFile out;
    out.source = source();
    version();
    out.remarks = remarks_above(here().line, true);
    while (is_name("use")) out.uses.push_back(use());
    while (kind() != TokenKind::end) out.definitions.push_back(definition());
    out.remarks_below = remarks_above(std::numeric_limits<int>::max());
    check_definitions(out);
    return out;
  }

 private:
  // The file ------------------------------------------------------------------------------------

  void version() {
    std::string written;
    const Position at = here();
    while (kind() == TokenKind::name || kind() == TokenKind::sign || kind() == TokenKind::number)
      written += next().text;
    if (written == kVersion) return need_line_end();
    InputProblem problem{.message = "the file does not begin with its version",
                         .allowed = std::string(kVersion)};
    if (written.starts_with("fuseline.block/")) {
      problem.value = written;
      problem.message = "is a version that this program does not read";
    }
    fail(at, std::move(problem));
  }

  Use use() {
    Use out{.at = here()};
    next();
    if (kind() == TokenKind::quoted) {
      out.file = next().text;
    } else {
      out.file = need_name("a file of parts");
    }
    need_line_end();
    return out;
  }

  Definition definition() {
    Definition out;
    out.at = here();
    out.remarks = remarks_above(here().line);
    if (take_name("part"))
      out.is_part = true;
    else if (!take_name("block"))
      expected("'block', or 'part' for a piece that blocks use");
    out.name = need_name("a name");
    need("(");
    std::set<std::string> names;
    while (!is(")")) {
      Parameter p{.at = here()};
      p.name = need_name("a size or an option");
      if (!names.insert(p.name).second) fail(p.at, {.value = p.name, .message = "is there twice"});
      if (take("=")) p.absent = whole_expression();
      out.parameters.push_back(std::move(p));
      if (!take(",")) break;
    }
    need(")");
    need_line_end();
    out.body = indented("the statements of '" + out.name + "', further in");
    return out;
  }

  void check_definitions(const BlockFile& file) const {
    const Definition* block = nullptr;
    std::set<std::string> names;
    for (const Definition& d : file.definitions) {
      if (!names.insert(d.name).second) fail(d.at, {.value = d.name, .message = "is there twice"});
      if (d.is_part) continue;
      if (block != nullptr)
        fail(d.at, {.value = d.name,
                    .message = "is a second block of one file",
                    .allowed = "one block a file, and parts that it uses"});
      block = &d;
    }
    if (file.definitions.empty())
      fail(here(), {.message = "the file holds no block", .allowed = "block NAME(SIZES)"});
  }

  // Statements ----------------------------------------------------------------------------------

  std::vector<Statement> indented(const std::string& what) {
    if (kind() != TokenKind::indent) expected(what);
    next();
    std::vector<Statement> statements;
    while (kind() != TokenKind::dedent && kind() != TokenKind::end)
      statements.push_back(statement());
    if (kind() == TokenKind::dedent) next();
    return statements;
  }

  Statement statement() {
    if (kind() == TokenKind::indent)
      fail(here(), {.message = "the line is further in than those around it",
                    .allowed = "the same column"});
    Statement out;
    out.at = here();
    out.remarks = remarks_above(here().line);
    if (take_name("input"))
      declare(out, StatementKind::input);
    else if (take_name("table"))
      declare(out, StatementKind::table);
    else if (take_name("output"))
      outputs(out);
    else if (take_name("give"))
      give(out);
    else if (take_name("require"))
      require(out);
    else if (take_name("computed"))
      computed(out);
    else if (take_name("if"))
      return choose(std::move(out));
    else
      assign(out);
    const int line = last().at.line;
    need_line_end();
    out.remark = remark_behind(line);
    return out;
  }

  void declare(Statement& out, StatementKind as) {
    out.kind = as;
    do {
      Declared d{.at = here()};
      d.name = need_name("a name");
      need("[");
      d.sizes = sizes();
      if (as == StatementKind::input && take_name("of")) {
        if (!take_name("numbers")) expected("'numbers'");
        d.numbers = true;
      }
      out.declared.push_back(std::move(d));
    } while (take(","));
  }

  void outputs(Statement& out) {
    out.kind = StatementKind::output;
    do {
      Declared d{.at = here()};
      d.name = need_name("a tensor");
      if (take("->")) d.next = need_name("the input of the next layer that it is");
      out.declared.push_back(std::move(d));
    } while (take(","));
  }

  void give(Statement& out) {
    out.kind = StatementKind::give;
    do {
      out.given.push_back(whole_expression());
    } while (take(","));
  }

  void require(Statement& out) {
    out.kind = StatementKind::require;
    out.value = whole_expression();
    need(",");
    if (kind() != TokenKind::quoted) expected("the reason in quotes");
    out.message = next().text;
  }

  // computed act, gate by "act.fuse"
  void computed(Statement& out) {
    out.kind = StatementKind::computed;
    do {
      out.targets.push_back(need_name("an operator, or a step of the block"));
    } while (take(","));
    if (!take_name("by")) expected("'by' and the programs' file in quotes");
    if (kind() != TokenKind::quoted) expected("the programs' file in quotes");
    out.message = next().text;
  }

  // `before`: cases of the same chain, each of which is a case of the other side of the last.
  Statement choose(Statement out, int before = 0) {
    if (before >= kMostCases)
      fail(out.at, {.message = "too many cases behind each other",
                    .allowed = fmt::format("at most {}", kMostCases)});
    out.kind = StatementKind::choose;
    out.value = whole_expression();
    need_line_end();
    out.body = indented("the statements of this case, further in");
    if (take_name("else")) {
      if (is_name("if")) {
        Statement other;
        other.at = here();
        next();
        out.otherwise.push_back(choose(std::move(other), before + 1));
      } else {
        need_line_end();
        out.otherwise = indented("the statements of the other case, further in");
      }
    }
    return out;
  }

  void assign(Statement& out) {
    if (kind() != TokenKind::name)
      expected("a statement: NAME = ..., input, table, output, require, if" +
               std::string(", give"));
    if (is_free_name() && (is(":", 1) || (is("/", 1) && is_free_name(2) && is(":", 3)))) {
      out.site = need_name("a site");
      if (take("/")) out.op = need_name("an operator's name");
      need(":");
    }
    do {
      out.targets.push_back(need_name("a name"));
    } while (take(","));
    need("=");
    out.value = whole_expression();
  }

  // Expressions ---------------------------------------------------------------------------------

  std::vector<ExpressionPtr> sizes() {
    std::vector<ExpressionPtr> out;
    do {
      out.push_back(whole_expression());
    } while (take(","));
    need("]");
    return out;
  }

  ExpressionPtr whole_expression() {
    if (depth_ == 0) nodes_ = 0;
    ++depth_;
    ExpressionPtr out = choice();
    --depth_;
    return out;
  }

  ExpressionPtr make(Expression e) {
    if (++nodes_ > kMostWords)
      fail(e.at, {.message = "the expression is too long",
                  .allowed = fmt::format("at most {} words", kMostWords)});
    return std::make_shared<const Expression>(std::move(e));
  }
  ExpressionPtr binary(ExpressionPtr a, const std::string& sign, ExpressionPtr b) {
    const Position at = a->at;
    return make({.kind = ExpressionKind::binary,
                 .at = at,
                 .text = sign,
                 .parts = {std::move(a), std::move(b)}});
  }

  ExpressionPtr choice() {
    ExpressionPtr value = either();
    if (!is_name("if")) return value;
    next();
    std::vector<ExpressionPtr> parts{value, either()};
    if (take_name("else")) parts.push_back(choice());
    return make({.kind = ExpressionKind::choice, .at = value->at, .parts = std::move(parts)});
  }

  ExpressionPtr either() {
    ExpressionPtr value = both();
    while (take_name("or")) value = binary(std::move(value), "or", both());
    return value;
  }

  ExpressionPtr both() {
    ExpressionPtr value = opposite();
    while (take_name("and")) value = binary(std::move(value), "and", opposite());
    return value;
  }

  ExpressionPtr opposite() {
    const Position at = here();
    bool inverted = false;
    int count = 0;
    while (take_name("not")) {
      inverted = !inverted;
      ++count;
    }
    ExpressionPtr value = compared();
    if (count == 0) return value;
    if (!inverted) return value;
    return make({.kind = ExpressionKind::invert, .at = at, .parts = {std::move(value)}});
  }

  ExpressionPtr compared() {
    ExpressionPtr value = sum();
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!is(sign)) continue;
      next();
      return binary(std::move(value), std::string(sign), sum());
    }
    return value;
  }

  ExpressionPtr sum() {
    ExpressionPtr value = product();
    while (is("+") || is("-")) {
      const std::string sign(next().text);
      value = binary(std::move(value), sign, product());
    }
    return value;
  }

  // "2 Hkv d": what stands side by side is multiplied.
  ExpressionPtr product() {
    ExpressionPtr value = negated();
    for (;;) {
      if (is("*") || is("/")) {
        const std::string sign(next().text);
        value = binary(std::move(value), sign, negated());
      } else if (is_free_name() || kind() == TokenKind::number || is("(")) {
        value = binary(std::move(value), "·", primary());
      } else {
        return value;
      }
    }
  }

  ExpressionPtr negated() {
    const Position at = here();
    bool negative = false;
    bool any = false;
    while (take("-")) {
      negative = !negative;
      any = true;
    }
    ExpressionPtr value = primary();
    if (!any || !negative) return value;
    return make({.kind = ExpressionKind::negate, .at = at, .parts = {std::move(value)}});
  }

  ExpressionPtr primary() {
    const Position at = here();
    if (kind() == TokenKind::number)
      return make({.kind = ExpressionKind::number, .at = at, .text = std::string(next().text)});
    if (kind() == TokenKind::quoted)
      return make({.kind = ExpressionKind::quoted, .at = at, .text = std::string(next().text)});
    if (take("(")) {
      Expression inner = *whole_expression();
      need(")");
      inner.in_brackets = true;
      return make(std::move(inner));
    }
    if (!is_free_name()) expected("a name, a number, a call or a bracket");
    std::string name(next().text);
    if (take("(")) return call(std::move(name), at);
    if (take("["))
      return make(
          {.kind = ExpressionKind::tensor, .at = at, .text = std::move(name), .parts = sizes()});
    return make({.kind = ExpressionKind::name, .at = at, .text = std::move(name)});
  }

  ExpressionPtr call(std::string name, Position at) {
    Expression out{.kind = ExpressionKind::call, .at = at, .text = std::move(name)};
    std::set<std::string> names;
    while (!is(")")) {
      Argument argument{.at = here()};
      if (is_free_name() && is("=", 1)) {
        argument.name = std::string(token().text);
        next();
        next();
        if (!names.insert(argument.name).second)
          fail(argument.at, {.value = argument.name, .message = "is given twice"});
      } else if (!names.empty()) {
        fail(argument.at, {.message = "an argument without a name behind one with a name",
                           .allowed = "NAME = VALUE"});
      }
      argument.value = whole_expression();
      out.arguments.push_back(std::move(argument));
      if (!take(",")) break;
    }
    need(")");
    return make(std::move(out));
  }

  int depth_ = 0;
  int nodes_ = 0;
};

}  // namespace

std::span<const std::string_view> block_words() { return kBlockWords; }

BlockFile parse_block_file(const std::string& text, const std::string& file) {
  return Parser(std::make_shared<const SourceText>(SourceText{file, text})).file();
}

}  // namespace fuseline

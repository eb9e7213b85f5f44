#include "model/programs/graph_statements.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/operators/operator_table.h"
#include "model/programs/attributes_syntax.h"
#include "model/programs/file_words.h"
#include "model/programs/line_reader.h"
#include "model/programs/own_plan.h"

namespace fuseline {

namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 44;

class GraphStatements {
 public:
  explicit GraphStatements(FileReading& file) : file_(file), cursor_(file.cursor), out_(file.out) {}

  void tensor(Graph& graph, std::vector<Home>* homes) {
    Tensor t;
    const Position at = cursor_.here();
    t.role = *words::role(std::string(cursor_.next().text));
    const Position name_at = cursor_.here();
    t.name = read_any_name(cursor_, "the name of a tensor");
    if (graph.find_tensor(t.name))
      refuse(name_at, "defined-twice",
             {.value = t.name, .message = "is declared already", .allowed = "another name"});
    cursor_.need("[");
    const std::size_t begin = cursor_.place();
    std::string symbol = "[";
    int commas = 0;
    while (!cursor_.is("]") && cursor_.kind() != TokenKind::line_end) {
      commas += cursor_.is(",") ? 1 : 0;
      if (commas > 1) cursor_.expected("']': a tensor has rows and columns");
      symbol += cursor_.next().text;
    }
    cursor_.need("]");
    symbol += "]";
    const std::size_t behind = cursor_.place();
    const bool given = cursor_.take("=");
    if (given)
      cursor_.need("[");
    else
      cursor_.go_to(begin);
    const Position shape_at = cursor_.here();
    t.rows = out_.sizes.read(cursor_);
    cursor_.need(",");
    t.cols = out_.sizes.read(cursor_);
    cursor_.need("]");
    if (!given) cursor_.go_to(behind);
    if (t.rows < 1 || t.cols < 1 || t.rows > kMostElements / t.cols)
      refuse(shape_at, "shape",
             {.message = fmt::format("a tensor of [{}, {}]", t.rows, t.cols),
              .allowed = "sizes from 1, and at most 2^44 elements"});
    const bool letters = std::ranges::any_of(
        symbol, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
    if (given || letters) t.symbol = spaced(symbol);
    bool on_chip = false;
    while (cursor_.take(",")) tensor_argument(t, on_chip);
    cursor_.need_line_end();
    graph.add_tensor(std::move(t));
    if (homes == nullptr) return;
    homes->push_back(on_chip ? Home::on_chip : Home::hbm);
    out_.tensors.push_back(at);
  }

  void op(Graph& graph, std::vector<Position>* places = nullptr) {
    const Position line_at = cursor_.here();
    cursor_.next();
    Op op;
    op.name = read_any_name(cursor_, "the name of an operator");
    cursor_.need("=");
    const Position at = cursor_.here();
    const std::string kind = read_any_name(cursor_, "an operator");
    const OpKind own = own_program_kind();
    const Operator* known = kind == name_of(own) ? &*own : find_operator(kind);
    if (known == nullptr) {
      std::vector<std::string> names;
      for (const Operator* o : all_operators()) names.emplace_back(o->name.value);
      refuse(at, "unknown-operator",
             {.value = kind,
              .message = "there is no such operator",
              .allowed = "see docs/reference",
              .nearest = nearest_name(kind, names)});
    }
    op.kind = *known;
    op.reads = operands(graph);
    cursor_.need("->");
    op.writes = operands(graph);
    if (op.writes.empty()) refuse(at, "arguments", {.value = op.name, .message = "writes nothing"});
    ValueNames none;
    LineReader reader(cursor_, graph, out_.sizes, none);
    const std::vector<std::string> words = attribute_words();
    while (cursor_.take(",")) {
      const Position word_at = cursor_.here();
      const std::string word = read_any_name(cursor_, "attributes, site, backward or inlined");
      if (std::ranges::find(words, word) != words.end()) {
        reader.begin({.at = word_at}, false);
        reader.open();
        op.attributes = attributes_syntax(word, {}, reader);
        reader.close();
      } else if (word == "site") {
        cursor_.need("=");
        op.site = read_any_name(cursor_, "a block's step");
      } else if (word == "backward") {
        op.pass = Pass::backward;
      } else if (word == "inlined") {
        op.inlined = true;
      } else {
        refuse(word_at, "arguments",
               {.value = word,
                .message = "no attributes are called so",
                .allowed = fmt::format("{}, site, backward, inlined", fmt::join(words, ", ")),
                .nearest = nearest_name(word, words)});
      }
    }
    cursor_.need_line_end();
    graph.add_op(std::move(op));
    if (places != nullptr) places->push_back(line_at);
  }

  void relate(Graph& graph) {
    cursor_.next();
    const TensorId tensor = file_.tensor_of(graph, "a tensor");
    const Position at = cursor_.here();
    const std::optional<Relation> relation = words::relation(read_any_name(cursor_, "a relation"));
    if (!relation)
      refuse(at, "arguments",
             {.message = "there is no such relation",
              .allowed = "gradient_of, carried_to, recomputed_from"});
    graph.relate(tensor, *relation, file_.tensor_of(graph, "a tensor"));
    cursor_.need_line_end();
  }

  void forward(Graph& graph) {
    cursor_.next();
    Graph inner;
    section(inner, [] { return false; });
    graph.derived_from(std::move(inner));
  }

  template <class More>
  void section(Graph& graph, More more) {
    cursor_.need_line_end();
    if (cursor_.kind() != TokenKind::indent) return;
    cursor_.next();
    while (cursor_.kind() != TokenKind::dedent && cursor_.kind() != TokenKind::end)
      file_.guarded([&] {
        const std::string word(cursor_.token().text);
        if (words::role(word)) return tensor(graph, nullptr);
        if (word == "op") return op(graph);
        if (word == "relate") return relate(graph);
        if (word == "forward") return forward(graph);
        if (!more()) cursor_.expected("a tensor, op, relate or forward");
      });
    if (cursor_.kind() == TokenKind::dedent) cursor_.next();
  }

  bool interleaving(Preparation& p) {
    const bool result = cursor_.is_name("comes_interleaved");
    if (!result && !cursor_.is_name("interleave")) return false;
    cursor_.next();
    Interleaving i;
    i.tensor = read_any_name(cursor_, "a tensor's name");
    cursor_.need(",");
    i.columns = cursor_.is_name("columns");
    if (!i.columns && !cursor_.is_name("rows")) cursor_.expected("'rows' or 'columns'");
    cursor_.next();
    for (const auto& [word, to] :
         {std::pair{"begin", &i.begin}, {"count", &i.count}, {"group", &i.group}}) {
      cursor_.need(",");
      if (!cursor_.take_name(word)) cursor_.expected(std::string("'") + word + "'");
      cursor_.need("=");
      *to = out_.sizes.read(cursor_);
    }
    cursor_.need_line_end();
    (result ? p.results : p.interleavings).push_back(std::move(i));
    return true;
  }

 private:
  [[noreturn]] void refuse(Position at, const char* rule, InputProblem problem) const {
    file_.refuse(at, rule, std::move(problem));
  }

  // "[M,3D]" -> "[M, 3D]", as symbols are written elsewhere.
  static std::string spaced(const std::string& symbol) {
    const std::size_t comma = symbol.find(',');
    if (comma == std::string::npos) return symbol;
    return symbol.substr(0, comma + 1) + " " + symbol.substr(comma + 1);
  }

  void tensor_argument(Tensor& t, bool& on_chip) {
    const Position at = cursor_.here();
    const std::string word = read_any_name(cursor_, "a number format, outer, next or on_chip");
    if (word == "on_chip") {
      on_chip = true;
    } else if (word == "outer") {
      cursor_.need("=");
      cursor_.need("[");
      do t.outer.push_back(out_.sizes.read(cursor_));
      while (cursor_.take(","));
      cursor_.need("]");
    } else if (word == "next") {
      cursor_.need("=");
      t.of_next_layer = read_any_name(cursor_, "a weight's name");
    } else if (const std::optional<Dtype> type = words::dtype(word)) {
      t.dtype = *type;
    } else {
      std::vector<std::string> all = words::dtypes();
      all.insert(all.end(), {"on_chip", "outer", "next"});
      refuse(at, "number-format",
             {.value = word,
              .message = "is no number format and no argument of a tensor",
              .allowed = fmt::format("{}", fmt::join(all, ", ")),
              .nearest = nearest_name(word, all)});
    }
  }

  std::vector<Operand> operands(const Graph& graph) {
    std::vector<Operand> all;
    cursor_.need("(");
    while (!cursor_.is(")")) {
      all.push_back(read_operand(cursor_, graph, out_.sizes));
      if (!cursor_.take(",")) break;
    }
    cursor_.need(")");
    return all;
  }

  FileReading& file_;
  TokenCursor& cursor_;
  ProgramFile& out_;
};

}  // namespace

bool read_graph_statement(FileReading& file, const std::string& word) {
  GraphStatements statements(file);
  Plan& plan = file.out.plan;
  if (words::role(word))
    statements.tensor(plan.graph, &plan.homes);
  else if (word == "op")
    statements.op(plan.graph, &file.out.operators);
  else if (word == "relate")
    statements.relate(plan.graph);
  else if (word == "forward")
    statements.forward(plan.graph);
  else
    return false;
  return true;
}

void read_block(FileReading& file) {
  GraphStatements(file).section(file.out.plan.block, [] { return false; });
}

void read_preparation(FileReading& file) {
  GraphStatements statements(file);
  Preparation& p = file.out.plan.preparation;
  statements.section(p.graph, [&] { return statements.interleaving(p); });
}

}  // namespace fuseline

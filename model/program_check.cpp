// The checker of programs: an abstract execution that tracks the shape of every value.
#include <algorithm>
#include <map>
#include <string>
#include <variant>

#include "model/program.h"
#include "model/program_space.h"

namespace fuseline {

namespace {

// per_score_row: one number for each row of each head's scores, [B·H·T].
enum class Form : std::uint8_t { tile, per_row, per_col, table, per_score_row };

struct Shape {
  Form form = Form::tile;
  std::int64_t cols = 0;  // tile: columns; per_col: length; table: d
};

bool is_unary(MapFn fn) { return fn != MapFn::add && fn != MapFn::sub && fn != MapFn::mul; }

class Checker {
 public:
  Checker(const Graph& graph, const Program& program) : graph_(graph), program_(program) {}

  std::vector<std::string> run() {
    space_ = index_space_of(graph_, program_, problems_);
    const bool attention = std::holds_alternative<AttentionMainloop>(program_.mainloop);
    if (!program_.prologue.empty() && !attention) {
      problem("only an attention mainloop has a prologue");
    }
    for (const Primitive& p : program_.prologue) {
      std::visit([this](const auto& q) { check(q); }, p);
    }
    if (attention) prologue_values(std::get<AttentionMainloop>(program_.mainloop));
    const bool has_result = attention || std::holds_alternative<GemmMainloop>(program_.mainloop);
    if (has_result) values_[0] = {Form::tile, space_.cols};
    if (attention) attention_results(std::get<AttentionMainloop>(program_.mainloop));
    for (const Primitive& p : program_.body) std::visit([this](const auto& q) { check(q); }, p);
    if (stores(program_).empty()) problem("stores nothing");
    return problems_;
  }

 private:
  void problem(const std::string& text) { problems_.push_back(program_.name + ": " + text); }
  std::string name(const Operand& o) const { return graph_.tensor(o.tensor).name; }
  static std::string text(Value v) { return "value " + std::to_string(v); }

  void expect(const Operand& o, std::int64_t rows, std::int64_t cols, const char* what) {
    const std::string wrong = wrong_shape(graph_, o, rows, cols, what);
    if (!wrong.empty()) problem(wrong);
  }

  void prologue_values(const AttentionMainloop& m) {
    for (const auto& [value, operand] :
         {std::pair{m.q_value, &m.q}, {m.k_value, &m.k}, {m.v_value, &m.v}}) {
      if (value < 0) continue;
      const Shape* s = use(value);
      if (s != nullptr && (s->form != Form::tile || s->cols != operand->cols))
        problem(text(value) + " does not have the shape of " + name(*operand));
    }
    values_.clear();  // the mainloop consumes its operands; the body sees its result only
  }

  void attention_results(const AttentionMainloop& m) {
    if (m.log_sum_exp >= 0) define(m.log_sum_exp, {Form::per_score_row, 0});
    if (!m.gradient) return;
    const AttentionGradient& g = *m.gradient;
    const std::int64_t score_rows = m.shape.batch * m.shape.heads * m.shape.q_tokens;
    expect(g.dy, space_.rows, space_.cols, "gradient of the result");
    expect(g.log_sum_exp, score_rows, 1, "log-sum-exp");
    expect(g.delta, score_rows, 1, "delta");
    const std::int64_t kv = (g.per_query_head ? m.shape.heads : m.shape.kv_heads);
    define(g.dk, {Form::tile, kv * m.shape.head_width});
    define(g.dv, {Form::tile, kv * m.shape.head_width});
  }

  const Shape* use(Value v) {
    const auto it = values_.find(v);
    if (it != values_.end()) return &it->second;
    problem(text(v) + " is used before it is defined");
    return nullptr;
  }

  void define(Value v, Shape shape) {
    if (v < 0 || !values_.emplace(v, shape).second) problem(text(v) + " is defined twice");
  }

  // Widths that tiles of this program can have: the index space, one of a pair, a slice.
  bool width_known(std::int64_t cols) const {
    if (cols == space_.cols || cols * 2 == space_.cols) return true;
    if (space_.interleaved && cols == space_.cols * 2)
      return true;  // the pairs of a pair map's gradient
    if (space_.columns_resident && cols < space_.cols)
      return true;  // a part, with the columns that it has
    return std::any_of(values_.begin(), values_.end(), [&](const auto& v) {
      return v.second.form == Form::tile && v.second.cols == cols;
    });
  }

  void tile_operand(const Operand& o, std::int64_t cols) {
    if (o.rows * o.cols == space_.rows * cols && space_.batch > 1)
      return;  // heads lie side by side
    if (space_.heads > 1 && o.rows * space_.heads == space_.rows && o.cols == space_.heads * cols)
      return;
    expect(o, space_.rows, cols, "tile");
  }

  // In an attention prologue K and V have rows of their own.
  bool in_prologue() const {
    return std::holds_alternative<AttentionMainloop>(program_.mainloop) && !values_.contains(0);
  }

  void check(const LoadTile& p) {
    if (space_.batch > 1) problem("a batched GEMM loads no tiles");
    if (!in_prologue()) {
      const std::int64_t cols = space_.heads > 1 ? p.from.cols / space_.heads : p.from.cols;
      if (!width_known(cols))
        problem("tile " + name(p.from) + " is " + std::to_string(p.from.cols) +
                " columns wide, the index space " + std::to_string(space_.cols));
      tile_operand(p.from, cols);
      define(p.out, {Form::tile, cols});
      return;
    }
    define(p.out, {Form::tile, p.from.cols});
  }

  void check(const LoadHalves& p) {
    if (!space_.tiles_of_pairs) problem("halves of " + name(p.from) + " are not in one tile");
    if (p.group < 2 || p.group % 2 != 0 || p.from.cols % p.group != 0)
      problem("halves of groups of " + std::to_string(p.group) + " columns of " + name(p.from));
    if (p.from.rows != space_.rows) expect(p.from, space_.rows, p.from.cols, "tile");
    define(p.out, {Form::tile, p.from.cols / 2});
  }

  void check(const ConcatHalves& p) {
    const Shape* lower = use(p.lower);
    const Shape* upper = use(p.upper);
    if (lower == nullptr || upper == nullptr) return;
    if (lower->cols != upper->cols || p.group < 2 || lower->cols * 2 % p.group != 0)
      problem("the halves of " + text(p.out) + " do not match");
    define(p.out, {Form::tile, lower->cols + upper->cols});
  }

  void check(const LoadVector& p) {
    if (p.axis == Axis::rows) {
      expect(p.from, space_.rows, 1, "vector along rows");
      define(p.out, {Form::per_row, 0});
    } else {
      if (p.from.rows != 1) expect(p.from, 1, p.from.cols, "vector along columns");
      define(p.out, {Form::per_col, p.from.cols});
    }
  }

  void check(const LoadTable& p) {
    if (space_.rows % p.from.rows != 0)
      problem("table " + name(p.from) + " of " + std::to_string(p.from.rows) +
              " rows does not divide " + std::to_string(space_.rows) + " rows");
    define(p.out, {Form::table, p.from.cols});
  }

  void check(const Gather& p) {
    expect(p.ids, space_.rows, 1, "row ids");
    define(p.out, {Form::tile, p.from.cols});
  }

  void check(const GatherSum& p) {
    if (!space_.columns_resident) problem("a sum of gathered rows needs a stream");
    if (p.ids)
      expect(*p.ids, p.from.rows, 1, "row ids");
    else if (p.period < 1 || p.from.rows % p.period != 0)
      problem("rows of " + name(p.from) + " in periods of " + std::to_string(p.period));
    define(p.out, {Form::tile, p.from.cols});
  }

  void check(const OneHot& p) {
    expect(p.ids, space_.rows, 1, "column ids");
    define(p.out, {Form::tile, p.cols});
  }

  void check(const Map& p) {
    const std::size_t arity = is_unary(p.fn) ? 1 : 2;
    if (p.in.size() != arity) {
      problem(text(p.out) + ": a map of " + std::to_string(p.in.size()) + " values, not " +
              std::to_string(arity));
      return;
    }
    const Shape* a = use(p.in[0]);
    const Shape* b = arity == 2 ? use(p.in[1]) : a;
    if (a == nullptr || b == nullptr) return;
    define(p.out, combine(*a, *b, p.out));
  }

  Shape combine(const Shape& a, const Shape& b, Value out) {
    if (b.form == Form::tile && a.form != Form::tile) return combine(b, a, out);
    if (a.form == Form::tile) {
      const bool fits = b.form == Form::per_row ||
                        (b.form == Form::table ? a.cols % b.cols == 0 : a.cols == b.cols);
      if (!fits)
        problem(text(out) + ": widths " + std::to_string(a.cols) + " and " +
                std::to_string(b.cols) + " do not match");
      return a;
    }
    if (a.form == b.form && a.cols == b.cols) return a;
    if (a.form == Form::per_row && b.form == Form::per_col) return {Form::tile, b.cols};
    if (b.form == Form::per_row && a.form == Form::per_col) return {Form::tile, a.cols};
    problem(text(out) + ": operands do not broadcast to each other");
    return a;
  }

  void check(const PairMap& p) {
    const bool rotation = p.fn == PairFn::rope || p.fn == PairFn::rope_inverse;
    const std::size_t ins = rotation ? 3 : p.fn == PairFn::swiglu ? 1 : 2;
    const std::size_t outs = p.fn == PairFn::swiglu_backward ? 2 : 1;
    if (p.in.size() != ins || p.out.size() != outs) {
      problem("a pair map of the wrong number of values");
      return;
    }
    std::vector<Shape> in;
    for (const Value v : p.in) {
      const Shape* s = use(v);
      if (s == nullptr) return;
      in.push_back(*s);
    }
    const std::int64_t width = in[0].cols;
    if (in[0].form != Form::tile) problem("a pair map needs a tile");
    if (width % 2 != 0) problem("pairs of " + std::to_string(width) + " columns: the width is odd");
    if (p.distance < 1 || (p.distance > 1 && width % (2 * p.distance) != 0))
      problem("pairs " + std::to_string(p.distance) + " columns apart do not fill " +
              std::to_string(width) + " columns");
    if (!space_.tiles_of_pairs && !in_prologue()) {
      if (p.distance != 1)
        problem("the pairs are " + std::to_string(p.distance) +
                " columns apart, not adjacent: a GEMM tile does not hold both");
      else if (!space_.interleaved)
        problem("adjacent columns are no pairs: the weight's rows are not interleaved");
    }
    if (rotation) {
      for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
        if (in[i].form != Form::table || width % in[i].cols != 0)
          problem("a rotation needs tables whose width divides " + std::to_string(width));
      define(p.out[0], in[0]);
    } else if (p.fn == PairFn::swiglu) {
      define(p.out[0], {Form::tile, width / 2});
    } else {
      if (in[1].form != Form::tile || in[1].cols * 2 != width)
        problem("the gradient of a pair's result must be half as wide as the pairs");
      define(p.out[0], {Form::tile, width});
      define(p.out[1], {Form::tile, width / 2});
    }
  }

  void check(const RowReduce& p) {
    if (p.fn == ReduceFn::sum_and_squares) problem("a row reduction makes one number");
    if (!space_.rows_resident)
      problem("a row reduction needs a full row, but tiles hold a part of it");
    if (use(p.in) != nullptr) define(p.out, {Form::per_row, 0});
  }

  void check(const ColumnReduce& p) {
    const Shape* s = use(p.in);
    if (s == nullptr) return;
    if (!space_.columns_resident)
      problem("a column reduction needs whole columns: a stream of them");
    if (s->form != Form::tile) problem("a column reduction needs a tile");
    if (p.fn != ReduceFn::sum) problem("a column reduction is a sum");
    define(p.out, {Form::per_col, s->cols});
  }

  void check(const HeadSum& p) {
    const Shape* s = use(p.in);
    if (s == nullptr) return;
    if (!space_.rows_resident) problem("the heads of a row are in different tiles");
    if (p.count < 1 || p.width < 1 || s->cols % (p.count * p.width) != 0)
      problem("sums over " + std::to_string(p.count) + " heads of " + std::to_string(p.width) +
              " columns in " + std::to_string(s->cols));
    define(p.out, {Form::tile, s->cols / std::max<std::int64_t>(1, p.count)});
  }

  void check(const TileReduce& p) {
    const Shape* s = use(p.in);
    if (s == nullptr) return;
    if (s->form != Form::tile) problem("partials come from a tile");
    const bool by_row = p.axis == Axis::rows;
    const std::int64_t length = by_row ? s->cols : space_.rows;
    const std::int64_t numbers = p.fn == ReduceFn::sum_and_squares || p.second >= 0 ? 2 : 1;
    if (p.second >= 0) {
      const Shape* second = use(p.second);
      if (second != nullptr && (second->form != s->form || second->cols != s->cols))
        problem("partials of two values of different shapes");
      if (p.fn != ReduceFn::sum) problem("partials of two values are sums");
    }
    expect(p.partial, by_row ? space_.rows : s->cols, numbers * ceil_div(length, partial_tile),
           "partials");
    if (graph_.tensor(p.partial.tensor).dtype != Dtype::fp32)
      problem("partials " + name(p.partial) + " are not fp32");
    stored(p.partial);
  }

  void check(const OnlineLogSumExp& p) {
    const Shape* s = use(p.in);
    if (s == nullptr) return;
    if (s->form != Form::tile) problem("a log-sum-exp needs a tile");
    expect(p.targets, space_.rows, 1, "targets");
    expect(p.partial, space_.rows, 3 * ceil_div(s->cols, partial_tile), "partials");
    if (graph_.tensor(p.partial.tensor).dtype != Dtype::fp32)
      problem("partials " + name(p.partial) + " are not fp32");
    stored(p.partial);
  }

  void check(const Columns& p) {
    const Shape* s = use(p.in);
    if (s == nullptr) return;
    if (s->form != Form::tile || p.begin < 0 || p.cols < 1 || p.begin + p.cols > s->cols)
      problem("columns " + std::to_string(p.begin) + " to " + std::to_string(p.begin + p.cols) +
              " of " + text(p.in) + " with " + std::to_string(s->cols));
    define(p.out, {Form::tile, p.cols});
  }

  void check(const Mask& p) {
    const Shape* s = use(p.in);
    if (s != nullptr) define(p.out, *s);
  }

  void check(const StoreTile& p) {
    const Shape* s = use(p.in);
    if (s == nullptr) return;
    const bool repeated = s->form == Form::per_row || s->form == Form::per_col;
    if (s->form != Form::tile && !repeated)
      problem("what is stored to " + name(p.to) + " is no tile");
    if (s->form == Form::per_row) {
      tile_operand(p.to, space_.cols);
      stored(p.to);
      return;
    }
    if (!in_prologue()) tile_operand(p.to, s->cols);
    if (p.to.cols != s->cols && space_.batch == 1 && space_.heads == 1)
      problem(name(p.to) + " is " + std::to_string(p.to.cols) + " columns wide, the value " +
              std::to_string(s->cols));
    stored(p.to);
  }

  void check(const StoreVector& p) {
    const Shape* s = use(p.in);
    if (s == nullptr) return;
    if (s->form == Form::tile) problem("what is stored to " + name(p.to) + " is no vector");
    if (s->form == Form::per_score_row) {
      const AttentionShape& a = std::get<AttentionMainloop>(program_.mainloop).shape;
      expect(p.to, a.batch * a.heads * a.q_tokens, 1, "vector along the rows of scores");
    } else if (p.axis == Axis::rows && p.to.rows == 1 && p.to.cols == space_.rows) {
      // a column result that the finisher found row by row
    } else if (p.axis == Axis::rows)
      expect(p.to, space_.rows, 1, "vector along rows");
    else
      expect(p.to, 1, s->cols, "vector along columns");
    stored(p.to);
  }

  void stored(const Operand& o) {
    for (const Operand& other : stored_)
      if (other.tensor == o.tensor && other.col_begin < o.col_begin + o.cols &&
          o.col_begin < other.col_begin + other.cols)
        problem(name(o) + " is stored twice");
    stored_.push_back(o);
  }

  const Graph& graph_;
  const Program& program_;
  std::vector<std::string> problems_;
  std::map<Value, Shape> values_;
  std::vector<Operand> stored_;
  IndexSpace space_;
};

}  // namespace

std::vector<std::string> check_program(const Graph& graph, const Program& program) {
  return Checker(graph, program).run();
}

}  // namespace fuseline

// Programs as text that a person reads as code: names and symbols of maths.md, one primitive a
// line.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "model/program.h"

namespace fuseline {

namespace {

constexpr std::size_t comment_column = 56;
constexpr std::size_t line_width = 97;  // explain indents by 2, a report has 100 columns

// Characters that a terminal shows: UTF-8 continuation bytes do not count.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

const char* symbol_of(MapFn fn) {
  switch (fn) {
    case MapFn::add:
      return "+";
    case MapFn::sub:
      return "-";
    case MapFn::mul:
    case MapFn::scale_by_constant:
      return "*";
    case MapFn::add_constant:
      return "+";
    case MapFn::square:
      return "square";
    case MapFn::rsqrt:
      return "rsqrt";
    case MapFn::silu:
      return "silu";
    case MapFn::sigmoid:
      return "sigmoid";
    case MapFn::gelu_tanh:
      return "gelu";
    case MapFn::negate:
      return "-";
    case MapFn::copy:
      return "copy";
    case MapFn::exp:
      return "exp";
    case MapFn::reciprocal:
      return "1/";
    case MapFn::log:
      return "log";
    case MapFn::gelu_tanh_slope:
      return "gelu_slope";
  }
  FUSELINE_ASSERT(false, "unknown map");
}

const char* name_of(PairFn fn) {
  switch (fn) {
    case PairFn::rope:
      return "rope";
    case PairFn::rope_inverse:
      return "rope_inverse";
    case PairFn::swiglu:
      return "swiglu";
    case PairFn::swiglu_backward:
      return "swiglu_backward";
  }
  FUSELINE_ASSERT(false, "unknown pair map");
}

const char* name_of(ReduceFn fn) {
  switch (fn) {
    case ReduceFn::sum:
      return "sum";
    case ReduceFn::sum_squares:
      return "sum_squares";
    case ReduceFn::max:
      return "max";
    case ReduceFn::mean:
      return "mean";
    case ReduceFn::sum_and_squares:
      return "sum, sum_squares";
  }
  FUSELINE_ASSERT(false, "unknown reduction");
}

class Printer {
 public:
  Printer(const Graph& graph, const Program& program) : graph_(graph), program_(program) {}

  std::string run() {
    const std::string head = program_.name + ":  ";
    indent_ = "  ";
    if (!program_.prologue.empty()) {
      text_ += program_.name + ":\n";
      for (const Primitive& p : program_.prologue)
        std::visit([this](const auto& q) { print(q); }, p);
      std::visit([this](const auto& m) { mainloop(m, ""); }, program_.mainloop);
    } else {
      indent_ = "";
      std::visit([&](const auto& m) { mainloop(m, head); }, program_.mainloop);
      indent_ = "  ";
    }
    for (const Primitive& p : program_.body) std::visit([this](const auto& q) { print(q); }, p);
    return text_;
  }

 private:
  void line(const std::string& code, const std::string& comment = "") {
    std::string all = indent_ + code;
    if (!comment.empty()) {
      const std::size_t used = width_of(all);
      const std::size_t column = std::max(comment_column, used + 2);
      if (column + 3 + width_of(comment) > line_width)
        all += "\n" + std::string(comment_column, ' ');
      else
        all.append(column - used, ' ');
      all += "// " + comment;
    }
    text_ += all + "\n";
  }

  std::string name(Value v) const {
    const auto i = static_cast<std::size_t>(v);
    if (v >= 0 && i < program_.names.size() && !program_.names[i].empty()) return program_.names[i];
    return v == 0 ? "y" : fmt::format("v{}", v);
  }

  // "qkv[M,3D]", or for a slice "qkv[M, 4096:8192]".
  std::string text(const Operand& o) const {
    const Tensor& t = graph_.tensor(o.tensor);
    std::string shape;
    for (const char c : t.symbol)
      if (c != ' ') shape += c;
    if (shape.empty()) shape = fmt::format("[{},{}]", t.rows, t.cols);
    if (o.cols == t.cols && o.rows == t.rows) return t.name + shape;
    const std::size_t comma = shape.find(',');
    std::string rows = shape.substr(1, comma - 1);
    std::string cols = shape.substr(comma + 1, shape.size() - comma - 2);
    if (o.rows != t.rows) rows = fmt::format("{} of {}", o.rows, rows);
    if (o.cols != t.cols) cols = fmt::format("{}:{}", o.col_begin, o.col_begin + o.cols);
    return fmt::format("{}[{}, {}]", t.name, rows, cols);
  }

  void mainloop(const GemmMainloop& m, const std::string& head) {
    std::string comment = "mainloop, fp32 accumulate";
    if (m.batch > 1) comment = fmt::format("{} mainloops, fp32 accumulate", m.batch);
    if (m.summed > 1) comment += fmt::format(", {} in a sum", m.summed);
    if (m.interleaved) comment += ", pairs";
    line(fmt::format("{}y = {}{} · {}{}", head, text(m.a), m.a_is_km ? "ᵀ" : "", text(m.b),
                     m.b_is_kn ? "" : "ᵀ"),
         comment);
  }

  void mainloop(const AttentionMainloop& m, const std::string& head) {
    const auto operand = [this](Value v, const Operand& o) { return v >= 0 ? name(v) : text(o); };
    const std::string mask = !m.shape.causal && m.shape.window == 0 ? "no mask"
                             : m.shape.window > 0
                                 ? fmt::format("window of {} tokens", m.shape.window)
                                 : "causal";
    const std::string inputs = fmt::format("{}, {}, {}", operand(m.q_value, m.q),
                                           operand(m.k_value, m.k), operand(m.v_value, m.v));
    if (m.gradient) {
      const AttentionGradient& g = *m.gradient;
      line(fmt::format("{}{}, {}, {} = attention_gradient(", head, name(0), name(g.dk), name(g.dv)),
           mask);
      line(fmt::format("    {}, {},", inputs, text(g.dy)));
      line(fmt::format("    {}, {})", text(g.log_sum_exp), text(g.delta)),
           g.per_query_head ? "dK, dV of every query head" : "");
      return;
    }
    const std::string results = m.log_sum_exp >= 0 ? "y, " + name(m.log_sum_exp) : "y";
    line(fmt::format("{}{} = attention({})", head, results, inputs), "online softmax, " + mask);
  }

  void mainloop(const StreamMainloop& m, const std::string& head) {
    line(fmt::format("{}for each tile of [{}, {}]", head, m.rows, m.cols));
  }

  void mainloop(const RowMainloop& m, const std::string& head) {
    line(fmt::format("{}for each row of [{}, {}]", head, m.rows, m.cols),
         m.heads > 1 ? fmt::format("{} heads side by side", m.heads) : "");
  }

  void print(const LoadTile& p) { line(fmt::format("{} = load {}", name(p.out), text(p.from))); }
  void print(const LoadVector& p) {
    const bool rows = p.axis == Axis::rows;
    line(fmt::format("{} = {} {}", name(p.out), rows ? "load_rows" : "load_cols", text(p.from)),
         rows ? "one per row" : "one per column");
  }
  void print(const LoadTable& p) {
    line(fmt::format("{} = load_table {}", name(p.out), text(p.from)), "row mod T, column mod d");
  }
  void print(const LoadHalves& p) {
    line(fmt::format("{} = load_halves {}", name(p.out), text(p.from)),
         fmt::format("{} half of every {} columns", p.upper ? "upper" : "lower", p.group));
  }
  void print(const ConcatHalves& p) {
    line(fmt::format("{} = concat({}, {})", name(p.out), name(p.lower), name(p.upper)),
         fmt::format("halves of every {} columns", p.group));
  }
  void print(const Gather& p) {
    line(fmt::format("{} = gather {}", name(p.out), text(p.from)), "rows " + text(p.ids));
  }
  void print(const GatherSum& p) {
    line(fmt::format("{} = gather_sum {}", name(p.out), text(p.from)),
         p.ids ? "rows where " + text(*p.ids) + " is the row"
               : fmt::format("rows m with m mod {} = row", p.period));
  }
  void print(const OneHot& p) {
    line(fmt::format("{} = one_hot {}", name(p.out), text(p.ids)),
         fmt::format("1 in its column of {}", p.cols));
  }
  void print(const Columns& p) {
    line(fmt::format("{} = {}[:, {}:{}]", name(p.out), name(p.in), p.begin, p.begin + p.cols));
  }
  void print(const Mask& p) {
    line(fmt::format("{} = mask({})", name(p.out), name(p.in)), "hidden keys become -inf");
  }

  void print(const Map& p) {
    const char* symbol = symbol_of(p.fn);
    const std::string in = name(p.in.at(0));
    if (p.in.size() == 2)
      line(fmt::format("{} = {} {} {}", name(p.out), in, symbol, name(p.in[1])));
    else if (p.fn == MapFn::scale_by_constant || p.fn == MapFn::add_constant)
      line(fmt::format("{} = {} {} {:.6g}", name(p.out), in, symbol, p.constant));
    else if (p.fn == MapFn::negate)
      line(fmt::format("{} = -{}", name(p.out), in));
    else if (p.fn == MapFn::reciprocal)
      line(fmt::format("{} = 1 / {}", name(p.out), in));
    else
      line(fmt::format("{} = {}({})", name(p.out), symbol, in));
  }

  void print(const PairMap& p) {
    std::string out;
    for (const Value v : p.out) out += (out.empty() ? "" : ", ") + name(v);
    std::string in = name(p.in.at(0)) + " pairs";
    for (std::size_t i = 1; i < p.in.size(); ++i) in += ", " + name(p.in[i]);
    const bool gated = p.fn == PairFn::swiglu || p.fn == PairFn::swiglu_backward;
    std::string comment =
        p.distance == 1 ? "adjacent columns" : fmt::format("columns {} apart", p.distance);
    if (gated) comment += " (gate, up)";
    line(fmt::format("{} = {}({})", out, name_of(p.fn), in), comment);
  }

  void print(const RowReduce& p) {
    line(fmt::format("{} = row_{}({})", name(p.out), name_of(p.fn), name(p.in)), "full row");
  }
  void print(const ColumnReduce& p) {
    line(fmt::format("{} = column_{}({})", name(p.out), name_of(p.fn), name(p.in)), "full column");
  }
  void print(const HeadSum& p) {
    line(fmt::format("{} = head_sum({})", name(p.out), name(p.in)),
         fmt::format("{} heads of {} columns that share a key", p.count, p.width));
  }
  void print(const TileReduce& p) {
    const bool rows = p.axis == Axis::rows;
    const std::string second =
        p.second >= 0 ? fmt::format(", {}({})", name_of(p.fn), name(p.second)) : "";
    line(fmt::format("store {} = {}({}){}", text(p.partial), name_of(p.fn), name(p.in), second),
         rows ? "fp32 partials, one per row and tile" : "fp32 partials, one per column and tile");
  }
  void print(const OnlineLogSumExp& p) {
    line(
        fmt::format("store {} = log_sum_exp({}, {})", text(p.partial), name(p.in), text(p.targets)),
        "online: max, sum, target per row and tile");
  }
  void print(const StoreTile& p) {
    line(fmt::format("store {} {} {}", text(p.to), p.accumulate ? "+=" : "=", name(p.in)));
  }
  void print(const StoreVector& p) {
    line(fmt::format("{} {} = {}", p.axis == Axis::rows ? "store_rows" : "store_cols", text(p.to),
                     name(p.in)));
  }

  const Graph& graph_;
  const Program& program_;
  std::string text_;
  std::string indent_;
};

}  // namespace

std::string print_program(const Graph& graph, const Program& program) {
  return Printer(graph, program).run();
}

}  // namespace fuseline

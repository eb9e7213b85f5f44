#include "sim/nests/program_nest.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "model/primitives/values.h"
#include "model/program_space.h"

namespace fuseline {

namespace {

template <class... F>
struct Cases : F... {
  using F::operator()...;
};
template <class... F>
Cases(F...) -> Cases<F...>;

// v0[m, n] = sum over k.
void add_product(LoopNest& nest, const GemmMainloop& g) {
  nest.loops = {{"m", g.M}, {"n", g.N}, {"k", g.K}};
  nest.statements.push_back(
      {"product", {"m", "n", "k"}, {{"a", "m, k"}, {"b", "n, k"}, {"v0", "m, n", true}}, true});
}

// The sums of probabilities and of context are sums over keys; the division by the first waits for
// all of them. (Online softmax also multiplies both by the same number now and then.)
void add_attention(LoopNest& nest, const AttentionShape& a) {
  nest.loops = {{"m", a.q_tokens}, {"s", a.kv_tokens}, {"k", a.head_width}, {"n", a.v_width()}};
  nest.statements.push_back(
      {"scores", {"m", "s", "k"}, {{"q", "m, k"}, {"k", "s, k"}, {"x", "m, s", true}}, true});
  nest.statements.push_back({"exponent", {"m", "s"}, {{"x", "m, s"}, {"p", "m, s", true}}});
  nest.statements.push_back({"sum", {"m", "s"}, {{"p", "m, s"}, {"l", "m", true}}, true});
  nest.statements.push_back(
      {"context", {"m", "n", "s"}, {{"p", "m, s"}, {"v", "s, n"}, {"y", "m, n", true}}, true});
  nest.statements.push_back(
      {"divide", {"m", "n"}, {{"y", "m, n"}, {"l", "m"}, {"v0", "m, n", true}}});
}

// S_t = a_t S_{t-1} + x_t k_t^T, y_t = S_t q_t.
void add_scan(LoopNest& nest, const ScanShape& s) {
  nest.loops = {{"m", s.tokens}, {"n", s.head_width}, {"s", s.state_width}};
  nest.statements.push_back(
      {"step",
       {"m", "n", "s"},
       {{"state", "m, n, s"}, {"x", "m, n"}, {"k", "m, s"}, {"state", "m + 1, n, s", true}}});
  nest.statements.push_back({"output",
                             {"m", "n", "s"},
                             {{"state", "m + 1, n, s"}, {"q", "m, s"}, {"v0", "m, n", true}},
                             true});
}

class Body {
 public:
  explicit Body(LoopNest& nest) : nest_(nest) {}

  void add(const Primitive& p, const ValueAnalysis& values) {
    const TileDemands demands = p.demands();
    const std::vector<Value> made = p.defines();
    bool numbers_of_rows = demands.whole_rows && !made.empty();
    for (const Value v : made) numbers_of_rows = numbers_of_rows && values.form(v) == Form::per_row;
    bool numbers_of_columns = demands.whole_columns && !made.empty();
    for (const Value v : made)
      numbers_of_columns = numbers_of_columns && values.form(v) == Form::per_col;
    NestStatement s{fmt::format("{}_{}", p.name(), nest_.statements.size()), {"m", "n"}, {}};
    if (numbers_of_rows) s.loops = {"m"};
    if (numbers_of_columns) s.loops = {"n"};
    for (const Value v : p.uses()) s.accesses.push_back(read(v, demands));
    for (const Access& a : p.accesses()) touch(s, a);
    for (const Value v : made) {
      if (numbers_of_rows) of_row_.insert(v);
      if (numbers_of_columns) of_column_.insert(v);
      s.accesses.push_back({name_of(v),
                            numbers_of_rows      ? "m"
                            : numbers_of_columns ? "n"
                                                 : "m, n",
                            true});
    }
    nest_.statements.push_back(std::move(s));
  }

 private:
  static std::string name_of(Value v) { return fmt::format("v{}", v); }

  [[nodiscard]] NestAccess read(Value v, const TileDemands& d) const {
    if (of_row_.contains(v)) return {name_of(v), "m"};
    if (of_column_.contains(v)) return {name_of(v), "n"};
    if (d.whole_rows) return {name_of(v), "m, j : 0 <= j < N"};
    if (d.whole_columns) return {name_of(v), "i, n : 0 <= i < M"};
    if (d.rows_of_tile > 0)
      return {name_of(v),
              fmt::format("i, n : 0 <= i < M and floor(i/{0}) = floor(m/{0})", d.rows_of_tile)};
    if (d.column_group > 1)
      return {name_of(v),
              fmt::format("m, j : 0 <= j < N and floor(j/{0}) = floor(n/{0})", d.column_group)};
    return {name_of(v), "m, n"};
  }

  // Loads of what the program does not store bring no dependence: only stores matter, and what is
  // loaded and stored.
  static void touch(NestStatement& s, const Access& a) {
    const std::string array = fmt::format("t{}", a.operand.tensor.index);
    const bool rows = std::ranges::find(s.loops, "m") != s.loops.end();
    const bool columns = std::ranges::find(s.loops, "n") != s.loops.end();
    if (a.reach == Reach::partials) {
      // Every term is added to the partial of the tile's columns (or rows).
      s.sums = true;
      s.accesses.push_back({array,
                            a.along == Axis::rows ? fmt::format("m, floor(n/{})", partial_tile)
                                                  : fmt::format("floor(m/{}), n", partial_tile),
                            true});
      return;
    }
    if (!rows || !columns) {
      s.accesses.push_back({array, rows ? "m" : "n", a.store});
      return;
    }
    if (a.reach == Reach::tile || a.reach == Reach::part_columns)
      s.accesses.push_back({array, "m, n", a.store});
  }

  LoopNest& nest_;
  std::set<Value> of_row_, of_column_;
};

}  // namespace

LoopNest nest_of(const Program& program) {
  LoopNest nest{program.name, {}, {}};
  std::visit(Cases{[&](const GemmMainloop& g) { add_product(nest, g); },
                   [&](const AttentionMainloop& a) { add_attention(nest, a.shape); },
                   [&](const ScanMainloop& s) { add_scan(nest, s.shape); },
                   [&](const StreamMainloop& s) {
                     nest.loops = {{"m", s.rows}, {"n", s.cols}};
                   },
                   [&](const RowMainloop& r) {
                     nest.loops = {{"m", r.rows}, {"n", r.cols}};
                   }},
             program.mainloop);
  const ValueAnalysis values = analyse(program);
  Body body(nest);
  for (const Primitive& p : program.body) body.add(p, values);
  return nest;
}

LoopNest nest_of_chain(std::int64_t m, std::int64_t f, std::int64_t k, std::int64_t n) {
  return {"chain",
          {{"m", m}, {"f", f}, {"k", k}, {"n", n}},
          {{"first", {"m", "f", "k"}, {{"a", "m, k"}, {"b", "f, k"}, {"h", "m, f", true}}, true},
           {"between", {"m", "f"}, {{"h", "m, f"}, {"g", "m, f", true}}},
           {"second", {"m", "n", "f"}, {{"g", "m, f"}, {"c", "n, f"}, {"y", "m, n", true}}, true}}};
}

}  // namespace fuseline

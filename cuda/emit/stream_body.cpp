#include "cuda/emit/stream_body.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/device_functions.h"
#include "cuda/emit/stream_parameters.h"
#include "cuda/emit/stream_scopes.h"

namespace fuseline::cuda {

namespace {

class Emitter {
 public:
  Emitter(const Graph& graph, const Program& program, const StreamValues& values,
          const StreamShape& shape)
      : program_(program),
        values_(values),
        shape_(shape),
        parameters_(graph, shape.odd),
        scopes_(program, parameters_, shape.cols) {}

  StreamBody emit() {
    for (std::size_t i = 0; i < program_.body.size(); ++i) {
      scopes_.part = scopes_.parts().home[i];
      FUSELINE_ASSERT(scopes_.part < 0 || shape_.loop != StreamLoop::rows,
                      program_.name + ": parts of the columns in a row mainloop");
      std::visit([this](const auto& p) { effect(p); }, program_.body[i]);
    }
    if (!scopes_.last_walk.text.empty()) scopes_.run.text += walk_text(scopes_.last_walk);
    body_.run = std::move(scopes_.run.text);
    body_.finish = std::move(scopes_.finish.text);
    body_.fields = parameters_.take();
    return std::move(body_);
  }

 private:
  // [&](const auto& half) { ...; return VALUE; } of a value at a place of its own.
  std::string computed_at(const char* place, std::int64_t cols, Value v) {
    FUSELINE_ASSERT(scopes_.part < 0, program_.name + ": other columns of a part");
    StreamScope scope = scopes_.inner(place, cols);
    const std::string result = scopes_.at(scope, [&] { return use(v); });
    return fmt::format("[&](const auto& {}) {{\n{}{:{}}return {};\n{:{}}}}", scope.place,
                       scope.text, "", scope.indent, result, "", scope.indent - 2);
  }
  std::string place_of(Value v) { return scopes_.place_of(value(v).cols, value(v).each); }
  std::string here() { return scopes_.here(); }
  void line(const std::string& text) { scopes_.line(text); }
  template <class F>
  auto at(StreamScope& scope, F&& f) {
    return scopes_.at(scope, f);
  }

  // ---- values ----

  [[nodiscard]] const StreamValue& value(Value v) const { return values_.at(v); }
  // The program's name without its number, which depends on the tensors' names.
  [[nodiscard]] std::string wanted_name(Value v) const {
    const auto i = static_cast<std::size_t>(v);
    std::string name = i < program_.names.size() ? program_.names[i] : "";
    while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.pop_back();
    return name.empty() ? "v" : name;
  }

  // How statements of this scope name the value; computes it first if need be.
  std::string use(Value v) {
    const bool per_row = value(v).form == StreamForm::row;
    const int part = part_of(v);
    StreamScope* home = &scopes_.current();
    while (per_row && home->outer != nullptr) home = home->outer;
    if (const auto found = home->names.find({v, part}); found != home->names.end())
      return found->second;
    return at(*home, [&] {
      const int before = std::exchange(scopes_.part, part);
      std::visit([this](const auto& p) { make(p); }, *value(v).made);
      scopes_.part = before;
      return home->names.at({v, part});
    });
  }
  // Numbers per row are the same at all parts, and in all scopes.
  [[nodiscard]] int part_of(Value v) const {
    return value(v).form == StreamForm::row ? -1 : scopes_.part;
  }
  void name(Value v, const std::string& text) { scopes_.current().names[{v, part_of(v)}] = text; }
  void define(Value v, const std::string& wanted, const std::string& code) {
    name(v, scopes_.variable(wanted, code));
  }
  void define(Value v, const std::string& code) { define(v, wanted_name(v), code); }
  void step(const std::string& what) { body_.steps.push_back(what); }

  void make(const LoadTile& p) {
    const std::string f = parameters_.of(p.out, StreamFieldKind::tile, "in", p.from);
    const int each = value(p.out).each;
    define(p.out, f,
           fmt::format("load_tile{}(p.{}, {})", each == 8 ? "" : fmt::format("<{}>", each), f,
                       here()));
  }
  void make(const LoadVector& p) {
    if (p.axis == Axis::rows) {
      const std::string f = parameters_.of(p.out, StreamFieldKind::rows, "row", p.from);
      define(p.out, f, fmt::format("load_rows(p.{}, {})", f, scopes_.current().place));
      return;
    }
    const std::string f = parameters_.of(p.out, StreamFieldKind::cols, "col", p.from);
    define(p.out, f, fmt::format("load_cols(p.{}, {})", f, place_of(p.out)));
  }
  void make(const LoadTable& p) {
    const std::string f = parameters_.of(p.out, StreamFieldKind::table, "table", p.from);
    define(p.out, f, fmt::format("load_table(p.{}, {})", f, here()));
  }
  void make(const Map& p) {
    std::string arguments;
    for (const Value v : p.in) arguments += (arguments.empty() ? "" : ", ") + use(v);
    if (p.fn == MapFn::scale_by_constant || p.fn == MapFn::add_constant)
      arguments += ", p." + parameters_.constant(p.out, p.constant);
    step(p.fn == MapFn::scale_by_constant ? "scale"
         : p.fn == MapFn::add_constant    ? "shift"
                                          : function_of(p.fn));
    define(p.out, fmt::format("{}({})", function_of(p.fn), arguments));
  }
  void make(const PairMap& p) {
    switch (p.fn) {
      case PairFn::rope:
      case PairFn::rope_inverse:
        return rotate(p);
      case PairFn::swiglu:
        define(p.out.at(0), fmt::format("swiglu({})", use(p.in.at(0))));
        return step("swiglu");
      case PairFn::swiglu_backward: {
        const std::string pairs = use(p.in.at(0));
        const std::string d = use(p.in.at(1));
        step("swiglu_backward");
        const std::string both = scopes_.unique("gradient");
        line(fmt::format("const auto {} = swiglu_backward({}, {});", both, pairs, d));
        name(p.out.at(0), both + ".pairs");
        name(p.out.at(1), both + ".again");
        return;
      }
    }
    FUSELINE_ASSERT(false, "unknown pair map");
  }
  void rotate(const PairMap& p) {
    const bool inverse = p.fn == PairFn::rope_inverse;
    const std::string rope = inverse ? "rope_inverse" : "rope";
    if (pairs_in_thread(shape_, p)) {
      const std::string x = use(p.in.at(0));
      const std::string cos = use(p.in.at(1));
      const std::string sin = use(p.in.at(2));
      step(rope);
      define(p.out.at(0), fmt::format("{}<{}>({}, {}, {})", rope, p.distance == 1, x, cos, sin));
      return;
    }
    std::string arguments = place_of(p.in.at(0));
    for (const Value v : p.in) arguments += ", " + computed_at("there", value(p.in[0]).cols, v);
    step(rope);
    define(p.out.at(0), fmt::format("rope_apart<{}, {}>({})", p.distance, inverse, arguments));
  }

  void make(const RowReduce& p) {
    if (shape_.walked) return walk_rows(value(p.out).level);
    const std::string x = use(p.in);
    const std::string place = place_of(p.in);
    step_of(p);
    const bool whole = whole_units(p.in);
    if (p.fn == ReduceFn::mean)
      define(p.out, fmt::format("row_mean<threads, {}>({}, {})", whole, x, place));
    else
      define(p.out,
             fmt::format("row_reduce<{}, threads, {}>({}, {})", reducer_of(p.fn), whole, x, place));
  }
  void step_of(const RowReduce& p) {
    step(p.fn == ReduceFn::mean          ? "mean"
         : p.fn == ReduceFn::max         ? "max"
         : p.fn == ReduceFn::sum_squares ? "sum_squares"
                                         : "sum");
  }
  // What guards each column stays in registers from one reduction to the next: then units are
  // guarded as a whole. With one reduction alone that is slower.
  [[nodiscard]] bool whole_units(Value v) const {
    const auto reductions = std::ranges::count_if(
        program_.body, [](const Primitive& p) { return std::holds_alternative<RowReduce>(p); });
    return reductions > 1 && value(v).cols % 8 == 0;
  }
  static const char* row_reducer(ReduceFn fn) {
    return fn == ReduceFn::mean ? "Sum" : reducer_of(fn);
  }
  // All reductions that need as many others before them take one walk.
  void walk_rows(int level) {
    StreamScope walk = scopes_.inner("step", shape_.cols);
    std::vector<std::pair<const RowReduce*, std::string>> totals;
    for (const Primitive& primitive : program_.body) {
      const auto* p = std::get_if<RowReduce>(&primitive);
      if (p == nullptr || value(p->out).level != level) continue;
      const std::string total = scopes_.unique("total");
      line(fmt::format("RowTotal<{}> {};", row_reducer(p->fn), total));
      totals.emplace_back(p, total);
      at(walk, [&] {
        const std::string x = use(p->in);
        line(fmt::format("gather_row<{}>({}, {}, {});", whole_units(p->in), total, x,
                         place_of(p->in)));
        step_of(*p);
      });
    }
    scopes_.current().text += walk_text(walk);
    for (const auto& [p, total] : totals) {
      const std::string sum = fmt::format("row_result<threads>({})", total);
      define(p->out, p->fn == ReduceFn::mean
                         ? fmt::format("divided_by_cols({}, {})", sum, place_of(p->in))
                         : sum);
    }
  }

  // Gathered in run, known in finish.
  void make(const ColumnReduce& p) {
    const std::string total = column_state(reducer_of(p.fn));
    at(scopes_.run, [&] {
      const std::string x = use(p.in);
      line(fmt::format("gather_columns(state.{}, {}, {});", total, x, here()));
    });
    step("column_sum");
    define(p.out, fmt::format("column_result<lanes, threads>(state.{})", total));
  }
  std::string column_state(const char* reducer) {
    const std::string member = fmt::format("total{}", columns_++);
    body_.state += fmt::format("    ColumnState<{}> {};\n", reducer, member);
    return member;
  }

  void make(const Columns& p) {
    // The same numbers at a place of their own.
    const int part = std::exchange(
        scopes_.part, scopes_.parts().parts[static_cast<std::size_t>(scopes_.part)].parent);
    const std::string in = use(p.in);
    scopes_.part = part;
    name(p.out, in);
  }
  void make(const Mask& p) {
    const std::string f = parameters_.visible(p.out, p.shape, value(p.in).cols);
    const std::string x = use(p.in);
    step("mask");
    define(p.out, fmt::format("mask({}, p.{}, {})", x, f, here()));
  }
  void make(const LoadHalves& p) {
    const std::string f = parameters_.of(p.out, StreamFieldKind::tile, "in", p.from);
    define(p.out, f,
           fmt::format("load_halves<{}, {}>(p.{}, {})", p.group, p.upper, f, place_of(p.out)));
  }
  void make(const ConcatHalves& p) {
    not_in_rows("concatenated halves");
    const std::int64_t half = value(p.out).cols / 2;
    const std::string place = place_of(p.out);
    const std::string lower = computed_at("half", half, p.lower);
    const std::string upper = computed_at("half", half, p.upper);
    step("concat");
    define(p.out, fmt::format("concat_halves<{}>({}, {}, {})", p.group, place, lower, upper));
  }
  void make(const HeadSum& p) {
    not_in_rows("sums over heads");
    const std::string place = place_of(p.out);
    const std::string wide = computed_at("wide", value(p.in).cols, p.in);
    step("head_sum");
    define(p.out, fmt::format("head_sum<{}, {}>({}, {})", p.count, p.width, place, wide));
  }
  void make(const Gather& p) {
    step("gather");
    const std::string ids = parameters_.of(p.out, StreamFieldKind::rows, "ids", p.ids);
    const std::string from = parameters_.of(p.out, StreamFieldKind::gathered, "in", p.from);
    define(p.out, fmt::format("load_tile(p.{}, gather({}, p.{}))", from, here(), ids));
  }
  void make(const GatherSum& p) {
    step("gather_sum");
    not_in_rows("sums of gathered rows");
    FUSELINE_ASSERT(
        shape_.loop == StreamLoop::tiles && &scopes_.current() == &scopes_.run && scopes_.part < 0,
        program_.name + ": sums of gathered rows are loaded as a tile");
    const std::string from = parameters_.of(p.out, StreamFieldKind::tile, "in", p.from);
    if (p.ids)
      define(p.out, fmt::format("gather_sum(p.{}, p.{}, place)", from,
                                parameters_.of(p.out, StreamFieldKind::rows, "ids", *p.ids)));
    else
      define(p.out, fmt::format("period_sum(p.{}, p.{}, place)", from,
                                parameters_.count("period", p.period)));
  }
  void make(const OneHot& p) {
    step("one_hot");
    define(p.out, fmt::format("one_hot(p.{}, {})",
                              parameters_.of(p.out, StreamFieldKind::rows, "ids", p.ids), here()));
  }
  template <class Other>
  void make(const Other&) {
    FUSELINE_ASSERT(false, "only values are made");
  }
  void not_in_rows(const char* what) const {
    FUSELINE_ASSERT(shape_.loop != StreamLoop::rows,
                    fmt::format("{}: {} in a row mainloop", program_.name, what));
  }

  // ---- what reaches memory ----

  void effect(const StoreTile& p) {
    StreamScope& scope = value(p.in).after_columns ? scopes_.finish
                         : shape_.walked           ? scopes_.last_walk
                                                   : scopes_.run;
    at(scope, [&] {
      const std::string x = use(p.in);
      const std::string f = parameters_.operand(StreamFieldKind::tile, "out", p.to);
      line(fmt::format("store_tile{}(p.{}, {}, {});", p.accumulate ? "<true>" : "", f, here(), x));
    });
  }
  void effect(const StoreVector& p) {
    at(value(p.in).after_columns ? scopes_.finish : scopes_.run, [&] {
      const std::string x = use(p.in);
      if (p.axis == Axis::cols) {
        const std::string f = parameters_.operand(StreamFieldKind::cols, "out", p.to);
        line(fmt::format("store_cols(p.{}, {}, {});", f, place_of(p.in), x));
        return;
      }
      const std::string f = parameters_.operand(StreamFieldKind::rows, "out", p.to);
      line(fmt::format("store_rows(p.{}, {}, {});", f, scopes_.current().place, x));
    });
  }
  void effect(const TileReduce& p) {
    const bool two = p.fn == ReduceFn::sum_and_squares;
    const char* first = reducer_of(p.fn);
    const int numbers = two || p.second >= 0 ? 2 : 1;
    const std::string to = parameters_.operand(StreamFieldKind::partials, "partials", p.partial);
    reduce_tile(p, first, p.in, to, 0, numbers);
    if (numbers == 2) reduce_tile(p, two ? "SumSquares" : first, two ? p.in : p.second, to, 1, 2);
    step(p.fn == ReduceFn::sum_squares ? "sum_squares" : p.fn == ReduceFn::max ? "max" : "sum");
  }
  void reduce_tile(const TileReduce& p, const char* reducer, Value v, const std::string& to,
                   int index, int numbers) {
    at(scopes_.run, [&] {
      const std::string x = use(v);
      if (p.axis == Axis::rows) {
        const bool blocks =
            scopes_.part < 0 ||
            scopes_.parts().parts[static_cast<std::size_t>(scopes_.part)].begin % partial_tile == 0;
        FUSELINE_ASSERT(blocks, program_.name + ": partials of columns within a block");
        line(fmt::format("reduce_row_blocks<{}>(p.{}, {}, {}, {}, {});", reducer, to, index,
                         numbers, place_of(v), x));
        return;
      }
      FUSELINE_ASSERT(value(v).each == 8, "column reductions of whole units");
      const std::string total = column_state(reducer);
      line(fmt::format("gather_columns(state.{}, {}, {});", total, x, here()));
      at(scopes_.finish, [&] {
        line(
            fmt::format("store_column_block(p.{}, {}, {}, block, {}, column_result<lanes, "
                        "threads>(state.{}));",
                        to, index, numbers, place_of(v), total));
      });
    });
  }
  void effect(const OnlineLogSumExp& p) {
    at(scopes_.run, [&] {
      const std::string x = use(p.in);
      step("log_sum_exp");
      const std::string to = parameters_.operand(StreamFieldKind::partials, "partials", p.partial);
      const std::string ids = parameters_.operand(StreamFieldKind::rows, "ids", p.targets);
      line(fmt::format("log_sum_exp_blocks(p.{}, p.{}, {}, {});", to, ids, place_of(p.in), x));
    });
  }
  template <class Value>
  void effect(const Value&) {}

  const Program& program_;
  const StreamValues& values_;
  const StreamShape& shape_;
  StreamParameters parameters_;
  StreamScopes scopes_;
  int columns_ = 0;
  StreamBody body_;
};

}  // namespace

StreamBody stream_body(const Graph& graph, const Program& program, const StreamValues& values,
                       const StreamShape& shape) {
  return Emitter(graph, program, values, shape).emit();
}

}  // namespace fuseline::cuda

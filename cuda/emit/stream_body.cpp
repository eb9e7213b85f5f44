#include "cuda/emit/stream_body.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/stream_parameters.h"
#include "cuda/emit/stream_scopes.h"
#include "model/primitives/stream_code.h"

namespace fuseline::cuda {

namespace {

StreamFieldKind kind_of(Reach reach) {
  switch (reach) {
    case Reach::tile:
    case Reach::part_columns:
    case Reach::summed_rows:
    case Reach::rows_above:
    case Reach::rows_below:
    case Reach::sequence_rows:
    case Reach::rows_before:
      return StreamFieldKind::tile;
    case Reach::row_numbers:
    case Reach::all_numbers:
      return StreamFieldKind::rows;
    case Reach::col_numbers:
      return StreamFieldKind::cols;
    case Reach::table:
      return StreamFieldKind::table;
    case Reach::gathered_rows:
      return StreamFieldKind::gathered;
    case Reach::partials:
      return StreamFieldKind::partials;
  }
  FUSELINE_ASSERT(false, "unknown reach");
}

class StreamEmitter final : public StreamCode {
 public:
  StreamEmitter(const Graph& graph, const Program& program, const StreamValues& values,
                const StreamShape& shape)
      : program_(program),
        values_(values),
        shape_(shape),
        parameters_(graph, shape.odd),
        scopes_(program, parameters_, shape.cols) {}

  StreamBody emit() {
    if (std::holds_alternative<ScanMainloop>(program_.mainloop)) define(0, "y", "place.result()");
    load_ahead();
    for (std::size_t i = 0; i < program_.body.size(); ++i) {
      scopes_.part = scopes_.parts().home[i];
      if (scopes_.part >= 0 && shape_.loop == StreamLoop::rows)
        refuse("a part of the columns in a row mainloop");
      // Values are made where they are wanted.
      if (program_.body[i].defines().empty()) program_.body[i].stream(*this);
    }
    if (!scopes_.last_walk.text.empty()) scopes_.run.text += walk_text(scopes_.last_walk);
    body_.run = std::move(scopes_.run.text);
    body_.after_block = std::move(scopes_.after_block.text);
    body_.finish = std::move(scopes_.finish.text);
    body_.fields = parameters_.take();
    return std::move(body_);
  }

  // ---- what primitives write with ----

  // How statements of this scope name the value; computes it first if need be.
  std::string use(Value v) override {
    const bool per_row = value(v).form == Form::per_row;
    const int part = part_of(v);
    StreamScope* home = &scopes_.current();
    while (per_row && home->outer != nullptr) home = home->outer;
    if (const auto found = home->names.find({v, part}); found != home->names.end())
      return found->second;
    return scopes_.at(*home, [&] {
      const int before = std::exchange(scopes_.part, part);
      value(v).made->stream(*this);
      scopes_.part = before;
      return home->names.at({v, part});
    });
  }
  std::string computed_at(const char* place, std::int64_t cols, Value v) override {
    if (scopes_.part >= 0) refuse("a step that reads other columns of a part");
    StreamScope scope = scopes_.inner(place, cols);
    const std::string result = scopes_.at(scope, [&] { return use(v); });
    return fmt::format("[&](const auto& {}) {{\n{}{:{}}return {};\n{:{}}}}", scope.place,
                       scope.text, "", scope.indent, result, "", scope.indent - 2);
  }
  [[nodiscard]] std::int64_t cols(Value v) const override { return value(v).cols; }
  [[nodiscard]] int each(Value v) const override { return value(v).each; }

  std::string place_of(Value v) override { return scopes_.place_of(value(v).cols, value(v).each); }
  std::string here() override { return scopes_.here(); }
  std::string scope_place() override { return scopes_.current().place; }
  void whole_blocks() const override {
    const bool blocks =
        scopes_.part < 0 ||
        scopes_.parts().parts[static_cast<std::size_t>(scopes_.part)].begin % partial_tile == 0;
    if (!blocks) refuse("partial sums of columns that begin within a block");
  }
  [[noreturn]] void refuse(std::string_view primitive) const override {
    throw MissingError(
        fmt::format("{}: {} has no kernel for a real GPU yet", program_.name, primitive));
  }
  void not_in_rows(const char* what) const override {
    if (shape_.loop == StreamLoop::rows) refuse(std::string(what) + " in a row mainloop");
  }
  void only_as_tile(const char* what) override {
    const bool tile =
        shape_.loop == StreamLoop::tiles && &scopes_.current() == &scopes_.run && scopes_.part < 0;
    if (!tile) refuse(std::string(what) + " but as whole tiles");
  }
  [[nodiscard]] bool pairs_in_thread(std::int64_t distance) const override {
    return cuda::pairs_in_thread(shape_, distance);
  }

  void device_function(const std::string& text) override {
    if (body_.functions.find(text) == std::string::npos) body_.functions += text + "\n";
  }
  void line(const std::string& text) override { scopes_.line(text); }
  void step(const std::string& what) override { body_.steps.push_back(what); }
  void define(Value v, const std::string& code) override { define(v, wanted_name(v), code); }
  void define(Value v, const std::string& wanted, const std::string& code) override {
    name(v, scopes_.variable(wanted, code));
  }
  void name(Value v, const std::string& text) override {
    scopes_.current().names[{v, part_of(v)}] = text;
  }
  std::string unique(const std::string& wanted) override { return scopes_.unique(wanted); }
  void alias(Value out, Value in) override {
    const int part = std::exchange(
        scopes_.part, scopes_.parts().parts[static_cast<std::size_t>(scopes_.part)].parent);
    const std::string text = use(in);
    scopes_.part = part;
    name(out, text);
  }

  void row_reduction(Value out, Value in, ReduceFn fn) override {
    if (shape_.walked) return walk_rows(value(out).level);
    const std::string x = use(in);
    const std::string place = place_of(in);
    step(fn->name.value);
    const bool whole = whole_units(in);
    define(out, fn->divided ? fmt::format("row_mean<threads, {}>({}, {})", whole, x, place)
                            : fmt::format("row_reduce<{}, threads, {}>({}, {})",
                                          reducer_for(*this, fn), whole, x, place));
  }

  std::string parameter(const char* name, const Access& access) override {
    return parameters_.operand(kind_of(access.reach), name, access.operand);
  }
  std::string parameter(Value made, const char* name, const Access& access) override {
    return parameters_.of(made, kind_of(access.reach), name, access.operand);
  }
  std::string constant(Value made, double number) override {
    return parameters_.constant(made, number);
  }
  std::string visible(Value made, const AttentionShape& attention, std::int64_t keys) override {
    return parameters_.visible(made, attention, keys);
  }
  std::string count(const char* name, std::int64_t number) override {
    return parameters_.count(name, number);
  }
  std::string row_groups(Value made, const std::vector<std::int64_t>& lengths) override {
    return parameters_.row_groups(made, lengths);
  }
  std::string column_state(const char* reducer) override {
    const std::string member = fmt::format("total{}", columns_++);
    body_.state += shape_.loop == StreamLoop::rows
                       ? fmt::format("    ColumnStates<{}, units> {};\n", reducer, member)
                       : fmt::format("    ColumnState<{}> {};\n", reducer, member);
    return member;
  }
  [[nodiscard]] std::string column_total(const std::string& member) const override {
    if (shape_.loop == StreamLoop::rows) return "state." + member;
    return fmt::format("column_result<lanes, threads>(state.{})", member);
  }
  [[nodiscard]] bool lanes_hold(std::int64_t group) const override {
    const int lanes = lanes_of_group(group);
    if (scopes_.part >= 0 || !scopes_.in_run() || lanes == 0) return false;
    if (shape_.loop == StreamLoop::rows)
      return rows_hold_groups(shape_.heads, shape_.cols, group) && lanes <= shape_.row_threads;
    return lanes <= (shape_.loop == StreamLoop::columns_down ? shape_.lanes : shape_.least_lanes);
  }

  void in_walk(const std::function<void()>& statements) override {
    scopes_.at(scopes_.run, statements);
  }
  void after_walk(const std::function<void()>& statements) override {
    scopes_.at(scopes_.finish, statements);
  }
  void after_block(const std::string& member, const std::function<void()>& statements) override {
    if (shape_.inner_rows == 0) return after_walk(statements);
    scopes_.at(scopes_.after_block, [&] {
      statements();
      line(fmt::format("state.{} = {{}};", member));
    });
  }
  void where_stored(Value v, bool as_tile, const std::function<void()>& statements) override {
    StreamScope& scope = value(v).after_columns     ? scopes_.finish
                         : as_tile && shape_.walked ? scopes_.last_walk
                                                    : scopes_.run;
    scopes_.at(scope, statements);
  }

 private:
  // Short rows of several tensors, each of which has a result of its own, are all loaded first: a
  // load behind a store would wait for the one before it, because they might be of one tensor.
  void load_ahead() {
    constexpr std::size_t kMostLoads = 8;  // of 8 registers at most
    if (shape_.loop != StreamLoop::rows || shape_.walked || shape_.units > 1) return;
    const std::vector<Operand> stored = stores(program_);
    std::vector<Value> loaded;
    for (const Primitive& p : program_.body) {
      const std::vector<Value> made = p.defines();
      if (made.size() != 1 || !p.uses().empty() || value(made.front()).form != Form::tile) continue;
      const bool stays = std::ranges::all_of(p.accesses(), [&](const Access& a) {
        return !a.store && std::ranges::none_of(stored, [&](const Operand& to) {
          return to.tensor == a.operand.tensor;
        });
      });
      if (stays && !p.accesses().empty()) loaded.push_back(made.front());
    }
    if (stored.size() < 2 || loaded.size() < 2 || loaded.size() > kMostLoads) return;
    scopes_.part = -1;
    for (const Value v : loaded) use(v);
  }

  [[nodiscard]] const StreamValue& value(Value v) const { return values_.at(v); }
  // The program's name without its number, which depends on the tensors' names.
  [[nodiscard]] std::string wanted_name(Value v) const {
    const auto i = static_cast<std::size_t>(v);
    std::string name = i < program_.names.size() ? program_.names[i] : "";
    while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.pop_back();
    return name.empty() ? "v" : name;
  }
  // Numbers per row are the same at all parts, and in all scopes.
  [[nodiscard]] int part_of(Value v) const {
    return value(v).form == Form::per_row ? -1 : scopes_.part;
  }

  // ---- reductions of rows ----

  // What guards each column stays in registers from one reduction to the next: then units are
  // guarded as a whole. With one reduction alone that is slower.
  [[nodiscard]] bool whole_units(Value v) const {
    const auto reductions = std::ranges::count_if(
        program_.body, [](const Primitive& p) { return p.demands().whole_rows; });
    return reductions > 1 && value(v).cols % 8 == 0;
  }
  const char* row_reducer(ReduceFn fn) {
    return fn->divided ? fn->reducer.value : reducer_for(*this, fn);
  }
  // All reductions that need as many others before them take one walk.
  void walk_rows(int level) {
    StreamScope walk = scopes_.inner("step", shape_.cols);
    std::vector<std::pair<const RowReduce*, std::string>> totals;
    for (const Primitive& primitive : program_.body) {
      const auto* p = primitive.as<RowReduce>();
      if (p == nullptr || value(p->out).level != level) continue;
      const std::string total = scopes_.unique("total");
      line(fmt::format("RowTotal<{}> {};", row_reducer(p->fn), total));
      totals.emplace_back(p, total);
      scopes_.at(walk, [&] {
        const std::string x = use(p->in);
        line(fmt::format("gather_row<{}>({}, {}, {});", whole_units(p->in), total, x,
                         place_of(p->in)));
        step(p->fn->name.value);
      });
    }
    scopes_.current().text += walk_text(walk);
    for (const auto& [p, total] : totals) {
      const std::string sum = fmt::format("row_result<threads>({})", total);
      define(p->out,
             p->fn->divided ? fmt::format("divided_by_cols({}, {})", sum, place_of(p->in)) : sum);
    }
  }

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
  return StreamEmitter(graph, program, values, shape).emit();
}

}  // namespace fuseline::cuda

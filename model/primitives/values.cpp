#include "model/primitives/values.h"

#include <algorithm>
#include <numeric>
#include <variant>

#include "base/error.h"

namespace fuseline {

namespace {

bool follows_columns(Form form) { return form == Form::tile || form == Form::per_col; }

std::string text(Value v) { return "value " + std::to_string(v); }

ValueAnalysis of_body(const GemmMainloop& m, std::span<const Primitive> body) {
  return {body, 0, m.N, false};
}

ValueAnalysis of_body(const AttentionMainloop& m, std::span<const Primitive> body) {
  std::vector<MainloopResult> results;
  if (m.log_sum_exp >= 0) results.push_back({m.log_sum_exp, Form::per_score_row, 1});
  if (m.gradient) {
    const AttentionGradient& g = *m.gradient;
    const std::int64_t heads = g.per_query_head ? m.shape.heads : m.shape.kv_heads;
    for (const Value v : {g.dk, g.dv})
      results.push_back(
          {v, Form::tile, heads * (v == g.dv ? m.shape.v_width() : m.shape.head_width)});
  }
  const std::int64_t width = m.gradient ? m.shape.head_width : m.shape.v_width();
  return {body, 0, m.shape.heads * width, false, results};
}

ValueAnalysis of_body(const StreamMainloop& m, std::span<const Primitive> body) {
  return {body, -1, m.cols, false};
}

ValueAnalysis of_body(const RowMainloop& m, std::span<const Primitive> body) {
  return {body, -1, m.cols, true, {}, m.heads};
}

ValueAnalysis of_body(const ScanMainloop& m, std::span<const Primitive> body) {
  return {body, 0, m.shape.heads * m.shape.head_width, false};
}

}  // namespace

ValueAnalysis::ValueAnalysis(std::span<const Primitive> primitives, Value anchor,
                             std::int64_t anchor_cols, bool whole,
                             std::span<const MainloopResult> results, std::int64_t heads)
    : whole_(whole) {
  if (anchor == 0) {
    shapes_[0] = {Form::tile, anchor_cols};
    values_[0].placed = true;
  }
  for (const MainloopResult& r : results) {
    shapes_[r.value] = {r.form, r.width};
    values_[r.value] = {};
  }
  for (std::size_t i = 0; i < primitives.size(); ++i)
    add(primitives[i], static_cast<std::ptrdiff_t>(i), heads);
  partners_through_maps(primitives);
  if (anchor > 0) values_.at(anchor).placed = true;
  place_all(primitives);
}

const ValueAnalysis::Entry& ValueAnalysis::at(Value v) const {
  const auto found = values_.find(v);
  FUSELINE_ASSERT(found != values_.end(), text(v) + " is used before it is defined");
  return found->second;
}

// Operands are made before they are used.
void ValueAnalysis::add(const Primitive& primitive, std::ptrdiff_t index, std::int64_t heads) {
  const std::vector<Value> uses = primitive.uses();
  for (const Value v : uses) {
    if (!values_.contains(v)) continue;  // what a part of a program leaves out
    Lifetime& life = values_.at(v).life;
    if (life.first_use < 0) life.first_use = index;
    life.last_use = index;
  }
  const std::vector<Value> made = primitive.defines();
  if (!made.empty()) {
    const std::vector<ValueShape> shapes = primitive.results(shapes_, heads);
    FUSELINE_ASSERT(shapes.size() == made.size(), "a shape for every result");
    for (std::size_t i = 0; i < made.size(); ++i) {
      shapes_[made[i]] = shapes[i];
      values_[made[i]] = {.life = {.made = index}};
    }
  }
  pair_tables(uses);
}

void ValueAnalysis::pair_tables(const std::vector<Value>& uses) {
  for (const Value table : uses) {
    if (!values_.contains(table) || form(table) != Form::table) continue;
    for (const Value other : uses)
      if (form(other) == Form::tile) values_.at(table).partners.push_back(other);
  }
}

// What meets a map of a table meets the table. Operands are made before they are used, so that the
// last map comes first.
void ValueAnalysis::partners_through_maps(std::span<const Primitive> primitives) {
  for (std::size_t i = primitives.size(); i-- > 0;)
    for (const Value made : primitives[i].defines()) {
      if (form(made) != Form::table) continue;
      for (const Value from : primitives[i].uses()) {
        if (!values_.contains(from) || form(from) != Form::table) continue;
        std::vector<Value>& all = values_.at(from).partners;
        for (const Value partner : std::vector<Value>(values_.at(made).partners))
          if (std::ranges::find(all, partner) == all.end()) all.push_back(partner);
      }
    }
}

// True when one of the two became known.
bool ValueAnalysis::relate(const ColumnRelation& r) {
  const auto from = values_.find(r.from);
  const auto to = values_.find(r.to);
  if (from == values_.end() || to == values_.end()) return false;
  Entry& x = from->second;
  Entry& y = to->second;
  if (!follows_columns(form(r.from)) || !follows_columns(form(r.to)) || x.placed == y.placed)
    return false;
  const auto reduced = [](Place p) {
    const std::int64_t common = std::gcd(p.num, p.den);
    return Place{p.num / common, p.den / common, p.offset};
  };
  if (x.placed) {
    FUSELINE_ASSERT(x.place.offset * r.num % r.den == 0, text(r.to) + " begins within a pair");
    y.place = reduced(
        {x.place.num * r.num, x.place.den * r.den, x.place.offset * r.num / r.den + r.offset});
    y.placed = true;
  } else {
    FUSELINE_ASSERT((y.place.offset - r.offset) * r.den % r.num == 0,
                    text(r.from) + " begins within a pair");
    x.place = reduced(
        {y.place.num * r.den, y.place.den * r.num, (y.place.offset - r.offset) * r.den / r.num});
    x.placed = true;
  }
  return true;
}

// What is connected to a placed value is placed by it; of what is left, the widest starts at
// column 0, and so on.
void ValueAnalysis::place_all(std::span<const Primitive> primitives) {
  std::vector<ColumnRelation> relations;
  for (const Primitive& p : primitives)
    for (const ColumnRelation& r : p.relations()) relations.push_back(r);
  while (true) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const ColumnRelation& r : relations) changed |= relate(r);
    }
    auto widest = values_.end();
    for (auto it = values_.begin(); it != values_.end(); ++it) {
      const bool open = !it->second.placed && follows_columns(form(it->first));
      if (open && (widest == values_.end() || width(it->first) > width(widest->first))) widest = it;
    }
    if (widest == values_.end()) return;
    widest->second.placed = true;
  }
}

ColumnRange ValueAnalysis::columns(Value v, ColumnRange tile) const {
  const Entry& e = at(v);
  if (!follows_columns(form(v))) return tile;
  if (whole_) return {0, width(v)};
  const auto map = [&](std::int64_t column) {
    FUSELINE_ASSERT(column * e.place.num % e.place.den == 0, text(v) + ": a tile cuts a pair");
    return column * e.place.num / e.place.den + e.place.offset;
  };
  return {std::max<std::int64_t>(0, map(tile.begin)), std::min(width(v), map(tile.end))};
}

std::int64_t ValueAnalysis::columns_each(Value v) const {
  const Place& p = at(v).place;
  return std::max<std::int64_t>(1, p.den / p.num);
}

ColumnRange ValueAnalysis::span(Value v) const {
  const Place& p = at(v).place;
  return {-p.offset * p.den / p.num, (width(v) - p.offset) * p.den / p.num};
}

std::int64_t ValueAnalysis::numbers(Value v, std::int64_t rows, std::int64_t cols) const {
  const Form f = form(v);
  if (f == Form::per_row || f == Form::per_score_row) return rows;
  if (f == Form::table) return rows * cols;
  const Place& p = at(v).place;
  return (f == Form::per_col ? 1 : rows) * cols * p.num / p.den;
}

ValueAnalysis analyse(const Program& program) {
  return std::visit([&](const auto& m) { return of_body(m, program.body); }, program.mainloop);
}

}  // namespace fuseline

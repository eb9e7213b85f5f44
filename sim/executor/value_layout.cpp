#include "sim/executor/value_layout.h"

#include <algorithm>
#include <numeric>
#include <variant>

#include "base/error.h"

namespace fuseline::executor {

namespace {

bool follows_columns(Form form) { return form == Form::tile || form == Form::per_col; }

std::string text(Value v) { return "value " + std::to_string(v); }

}  // namespace

ValueLayout::ValueLayout(std::span<const Primitive> primitives, Value anchor,
                         std::int64_t anchor_cols, bool whole,
                         std::span<const MainloopResult> results, std::int64_t heads)
    : whole_(whole), heads_(heads) {
  if (anchor == 0) values_[0] = {Form::tile, anchor_cols, true, {}, {}};
  for (const MainloopResult& r : results) values_[r.value] = {r.form, r.width, false, {}, {}};
  for (const Primitive& p : primitives) shape(p);
  if (anchor > 0) values_.at(anchor).placed = true;
  place_all(primitives);
}

const ValueLayout::Entry& ValueLayout::at(Value v) const {
  const auto found = values_.find(v);
  FUSELINE_ASSERT(found != values_.end(), text(v) + " is used before it is defined");
  return found->second;
}

void ValueLayout::pair_tables(const std::vector<Value>& in) {
  for (const Value table : in) {
    if (at(table).form != Form::table) continue;
    for (const Value other : in)
      if (at(other).form == Form::tile) values_.at(table).partners.push_back(other);
  }
}

// Defines what the primitive makes; operands are defined before use.
void ValueLayout::shape(const Primitive& primitive) {
  const auto define = [this](Value v, Form form, std::int64_t width) {
    values_[v] = {form, width, false, {}, {}};
  };
  if (const auto* p = std::get_if<LoadTile>(&primitive)) {
    define(p->out, Form::tile, p->from.cols / heads_);
  } else if (const auto* v = std::get_if<LoadVector>(&primitive)) {
    define(v->out, v->axis == Axis::rows ? Form::per_row : Form::per_col, v->from.cols);
  } else if (const auto* t = std::get_if<LoadTable>(&primitive)) {
    define(t->out, Form::table, t->from.cols);
  } else if (const auto* m = std::get_if<Map>(&primitive)) {
    Entry out = at(m->in[0]);
    for (const Value in : m->in) {
      const Entry& e = at(in);
      const bool crossed = (out.form == Form::per_row && e.form == Form::per_col) ||
                           (out.form == Form::per_col && e.form == Form::per_row);
      const std::int64_t width = out.form == Form::per_row ? e.width : out.width;
      if (e.form == Form::tile || out.form == Form::per_row) out = e;
      if (crossed) out = {Form::tile, width, false, {}, {}};
    }
    define(m->out, out.form, out.width);
    pair_tables(m->in);
  } else if (const auto* q = std::get_if<PairMap>(&primitive)) {
    const std::int64_t width = at(q->in[0]).width;
    define(q->out[0], Form::tile, q->fn == PairFn::swiglu ? width / 2 : width);
    if (q->out.size() > 1) define(q->out[1], Form::tile, width / 2);
    pair_tables(q->in);
  } else if (const auto* r = std::get_if<RowReduce>(&primitive)) {
    define(r->out, Form::per_row, 1);
  } else if (const auto* c = std::get_if<Columns>(&primitive)) {
    define(c->out, Form::tile, c->cols);
  } else if (const auto* k = std::get_if<Mask>(&primitive)) {
    define(k->out, Form::tile, at(k->in).width);
  } else if (const auto* h = std::get_if<LoadHalves>(&primitive)) {
    define(h->out, Form::tile, h->from.cols / 2);
  } else if (const auto* j = std::get_if<ConcatHalves>(&primitive)) {
    define(j->out, Form::tile, at(j->lower).width + at(j->upper).width);
  } else if (const auto* g = std::get_if<Gather>(&primitive)) {
    define(g->out, Form::tile, g->from.cols);
  } else if (const auto* w = std::get_if<ColumnReduce>(&primitive)) {
    define(w->out, Form::per_col, at(w->in).width);
  } else if (const auto* u = std::get_if<HeadSum>(&primitive)) {
    define(u->out, Form::tile, at(u->in).width / u->count);
  } else if (const auto* s = std::get_if<GatherSum>(&primitive)) {
    define(s->out, Form::tile, s->from.cols);
  } else if (const auto* o = std::get_if<OneHot>(&primitive)) {
    define(o->out, Form::tile, o->cols);
  }
}

// column of b = column of a · num / den + offset. True when one of them became known.
bool ValueLayout::relate(Value a, Value b, std::int64_t num, std::int64_t den,
                         std::int64_t offset) {
  Entry& x = values_.at(a);
  Entry& y = values_.at(b);
  if (!follows_columns(x.form) || !follows_columns(y.form) || x.placed == y.placed) return false;
  const auto reduced = [](Relation r) {
    const std::int64_t common = std::gcd(r.num, r.den);
    return Relation{r.num / common, r.den / common, r.offset};
  };
  if (x.placed) {
    FUSELINE_ASSERT(x.relation.offset * num % den == 0, text(b) + " begins within a pair");
    y.relation = reduced(
        {x.relation.num * num, x.relation.den * den, x.relation.offset * num / den + offset});
    y.placed = true;
  } else {
    FUSELINE_ASSERT((y.relation.offset - offset) * den % num == 0,
                    text(a) + " begins within a pair");
    x.relation = reduced(
        {y.relation.num * den, y.relation.den * num, (y.relation.offset - offset) * den / num});
    x.placed = true;
  }
  return true;
}

bool ValueLayout::place(const Primitive& primitive) {
  bool changed = false;
  if (const auto* m = std::get_if<Map>(&primitive)) {
    for (const Value in : m->in) changed |= same_place(in, m->out);
  } else if (const auto* q = std::get_if<PairMap>(&primitive)) {
    if (q->fn == PairFn::swiglu) {
      changed |= relate(q->in[0], q->out[0], 1, 2, 0);
    } else {
      changed |= same_place(q->in[0], q->out[0]);
    }
    if (q->fn == PairFn::swiglu_backward) {
      changed |= relate(q->in[0], q->in[1], 1, 2, 0);
      changed |= relate(q->in[0], q->out[1], 1, 2, 0);
    }
  } else if (const auto* c = std::get_if<Columns>(&primitive)) {
    changed |= relate(c->in, c->out, 1, 1, -c->begin);
  } else if (const auto* k = std::get_if<Mask>(&primitive)) {
    changed |= same_place(k->in, k->out);
  } else if (const auto* j = std::get_if<ConcatHalves>(&primitive)) {
    changed |= relate(j->out, j->lower, 1, 2, 0);
    changed |= relate(j->out, j->upper, 1, 2, 0);
  } else if (const auto* w = std::get_if<ColumnReduce>(&primitive)) {
    changed |= same_place(w->in, w->out);
  } else if (const auto* u = std::get_if<HeadSum>(&primitive)) {
    changed |= relate(u->in, u->out, 1, u->count, 0);
  } else if (const auto* t = std::get_if<TileReduce>(&primitive)) {
    if (t->second >= 0) changed |= same_place(t->in, t->second);
  }
  return changed;
}

// What is connected to a placed value is placed by it; of what is left, the widest starts at
// column 0, and so on.
void ValueLayout::place_all(std::span<const Primitive> primitives) {
  while (true) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Primitive& p : primitives) changed |= place(p);
    }
    Entry* widest = nullptr;
    for (auto& [value, entry] : values_) {
      const bool open = !entry.placed && follows_columns(entry.form);
      if (open && (widest == nullptr || entry.width > widest->width)) widest = &entry;
    }
    if (widest == nullptr) return;
    widest->placed = true;
  }
}

ColumnRange ValueLayout::columns(Value v, ColumnRange tile) const {
  const Entry& e = at(v);
  if (!follows_columns(e.form)) return tile;
  if (whole_) return {0, e.width};
  const auto map = [&](std::int64_t column) {
    FUSELINE_ASSERT(column * e.relation.num % e.relation.den == 0,
                    text(v) + ": a tile cuts a pair");
    return column * e.relation.num / e.relation.den + e.relation.offset;
  };
  return {std::max<std::int64_t>(0, map(tile.begin)), std::min(e.width, map(tile.end))};
}

}  // namespace fuseline::executor

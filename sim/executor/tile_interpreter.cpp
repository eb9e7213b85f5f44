#include "sim/executor/tile_interpreter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "base/error.h"
#include "model/operators/support/heads.h"

namespace fuseline::executor {

namespace {

// How many values there are, one more than the largest.
std::size_t value_count(std::span<const Primitive> primitives) {
  Value largest = 0;
  for (const Primitive& p : primitives) {
    for (const Value v : inputs_of(p)) largest = std::max(largest, v);  // the mainloop's too
    for (const Value v : outputs_of(p)) largest = std::max(largest, v);
  }
  return static_cast<std::size_t>(largest) + 1;
}

// One half of every group: where half column `j` lies.
std::int64_t half_column(const LoadHalves& p, std::int64_t j) {
  const std::int64_t half = p.group / 2;
  return j / half * p.group + (p.upper ? half : 0) + j % half;
}

void swap_pairs(Matrix& m, std::int64_t distance) {
  for (std::int64_t r = 0; r < m.rows; ++r)
    for (std::int64_t g = 0; g + 2 * distance <= m.cols; g += 2 * distance)
      for (std::int64_t j = 0; j < distance; ++j)
        std::swap(m.row(r)[g + j], m.row(r)[g + j + distance]);
}

}  // namespace

std::vector<Value> inputs_of(const Primitive& primitive) {
  if (const auto* m = std::get_if<Map>(&primitive)) return m->in;
  if (const auto* q = std::get_if<PairMap>(&primitive)) return q->in;
  if (const auto* r = std::get_if<RowReduce>(&primitive)) return {r->in};
  if (const auto* t = std::get_if<TileReduce>(&primitive))
    return t->second < 0 ? std::vector<Value>{t->in} : std::vector<Value>{t->in, t->second};
  if (const auto* w = std::get_if<ColumnReduce>(&primitive)) return {w->in};
  if (const auto* u = std::get_if<HeadSum>(&primitive)) return {u->in};
  if (const auto* l = std::get_if<OnlineLogSumExp>(&primitive)) return {l->in};
  if (const auto* s = std::get_if<StoreTile>(&primitive)) return {s->in};
  if (const auto* v = std::get_if<StoreVector>(&primitive)) return {v->in};
  if (const auto* c = std::get_if<Columns>(&primitive)) return {c->in};
  if (const auto* k = std::get_if<Mask>(&primitive)) return {k->in};
  if (const auto* j = std::get_if<ConcatHalves>(&primitive)) return {j->lower, j->upper};
  return {};
}

std::vector<Value> outputs_of(const Primitive& primitive) {
  if (const auto* p = std::get_if<LoadTile>(&primitive)) return {p->out};
  if (const auto* v = std::get_if<LoadVector>(&primitive)) return {v->out};
  if (const auto* t = std::get_if<LoadTable>(&primitive)) return {t->out};
  if (const auto* m = std::get_if<Map>(&primitive)) return {m->out};
  if (const auto* q = std::get_if<PairMap>(&primitive)) return q->out;
  if (const auto* r = std::get_if<RowReduce>(&primitive)) return {r->out};
  if (const auto* c = std::get_if<Columns>(&primitive)) return {c->out};
  if (const auto* k = std::get_if<Mask>(&primitive)) return {k->out};
  if (const auto* h = std::get_if<LoadHalves>(&primitive)) return {h->out};
  if (const auto* j = std::get_if<ConcatHalves>(&primitive)) return {j->out};
  if (const auto* g = std::get_if<Gather>(&primitive)) return {g->out};
  if (const auto* w = std::get_if<ColumnReduce>(&primitive)) return {w->out};
  if (const auto* u = std::get_if<HeadSum>(&primitive)) return {u->out};
  if (const auto* s = std::get_if<GatherSum>(&primitive)) return {s->out};
  if (const auto* o = std::get_if<OneHot>(&primitive)) return {o->out};
  return {};
}

Corner corner_of(const Operand& operand, std::int64_t batch, std::int64_t batch_index,
                 std::int64_t height, std::int64_t width) {
  const std::int64_t stacked = operand.rows / height;
  const std::int64_t beside = operand.cols / width;
  FUSELINE_ASSERT(stacked >= 1 && beside >= 1 && batch % stacked == 0,
                  "an operand does not hold its batch");
  const std::int64_t share = batch / stacked;  // matrices of the batch in one stack entry's rows
  return {batch_index / share * height, batch_index % share * beside / share * width};
}

TileInterpreter::TileInterpreter(std::span<const Primitive> primitives, const ValueLayout& layout,
                                 PartialSums& partials, std::optional<FaultPoint> fault)
    : primitives_(primitives),
      layout_(layout),
      partials_(partials),
      fault_(fault),
      values_(value_count(primitives)),
      needed_(values_.size()),
      chosen_(primitives.size()) {
  for (const Primitive& p : primitives) {
    reads_.push_back(inputs_of(p));
    makes_.push_back(outputs_of(p));
  }
}

void TileInterpreter::begin(const TileArea& area) { area_ = area; }

Matrix& TileInterpreter::value(Value v) { return values_.at(index(v)); }

bool TileInterpreter::faulty(FaultKind kind) const {
  return fault_ && fault_->kind == kind && fault_->primitive == current_;
}

Corner TileInterpreter::corner(const Operand& operand, std::int64_t width) const {
  if (area_.batch == 1) return {};
  return corner_of(operand, area_.batch, area_.batch_index, area_.height, width);
}

Corner TileInterpreter::place(const Operand& operand, std::int64_t width, std::int64_t r) const {
  const std::int64_t row = area_.row_begin + r;
  if (area_.heads > 1) {
    const std::int64_t sequence = row / area_.tokens / area_.heads;
    const std::int64_t head = row / area_.tokens % area_.heads;
    return {sequence * area_.tokens + row % area_.tokens, head * width};
  }
  const Corner at = corner(operand, width);
  return {at.row + row, at.col};
}

bool TileInterpreter::stores_here(const Primitive& primitive) const {
  const auto holds = [this](Value v) { return !columns(v).empty(); };
  if (const auto* v = std::get_if<StoreVector>(&primitive))
    return v->axis == Axis::rows ? area_.col_tile == 0 || area_.vector_begin >= 0
                                 : area_.row_tile == 0;
  if (const auto* s = std::get_if<StoreTile>(&primitive)) return holds(s->in);
  if (const auto* t = std::get_if<TileReduce>(&primitive)) return holds(t->in);
  if (const auto* l = std::get_if<OnlineLogSumExp>(&primitive)) return holds(l->in);
  return false;
}

void TileInterpreter::choose(std::span<const Value> wanted, bool effects) {
  std::fill(needed_.begin(), needed_.end(), char{0});
  for (const Value v : wanted) needed_[index(v)] = 1;
  for (std::size_t i = primitives_.size(); i-- > 0;) {
    bool chosen = effects && stores_here(primitives_[i]);
    for (const Value v : makes_[i]) chosen = chosen || needed_[index(v)] != 0;
    chosen_[i] = chosen ? 1 : 0;
    if (!chosen) continue;
    for (const Value v : reads_[i]) needed_[index(v)] = 1;
  }
}

void TileInterpreter::run(Port& port, std::span<const Value> wanted, bool effects) {
  port_ = &port;
  choose(wanted, effects);
  for (current_ = 0; current_ < primitives_.size(); ++current_)
    if (chosen_[current_] != 0)
      std::visit([this](const auto& p) { execute(p); }, primitives_[current_]);
}

Matrix& TileInterpreter::shaped(Value v) {
  Matrix& m = values_[index(v)];
  const ColumnRange range = columns(v);
  switch (layout_.form(v)) {
    case Form::tile:
      m.resize(area_.rows(), range.count());
      break;
    case Form::per_row:
      m.resize(area_.rows(), 1);
      break;
    case Form::per_col:
      m.resize(1, range.count());
      break;
    case Form::table:
      m.resize(area_.rows(), layout_.width(v));
      break;
  }
  return m;
}

void TileInterpreter::execute(const LoadTile& p) {
  Matrix& m = shaped(p.out);
  const ColumnRange range = columns(p.out);
  for (std::int64_t r = 0; r < m.rows; ++r) {
    const Corner at = place(p.from, layout_.width(p.out), r);
    port_->load(p.from, at.row, at.col + range.begin, m.cols, m.row(r));
  }
}

void TileInterpreter::execute(const LoadVector& p) {
  Matrix& m = shaped(p.out);
  if (p.axis == Axis::cols) {
    port_->load(p.from, 0, columns(p.out).begin, m.cols, m.row(0));
    return;
  }
  const std::int64_t first = area_.batch_index * area_.height + area_.row_begin;
  for (std::int64_t r = 0; r < m.rows; ++r) port_->load(p.from, first + r, 0, 1, m.row(r));
}

// Of each row the columns that the tile's values meet, once.
void TileInterpreter::execute(const LoadTable& p) {
  Matrix& m = shaped(p.out);
  const std::int64_t d = layout_.width(p.out);
  std::vector<char> met(static_cast<std::size_t>(d));
  for (const Value partner : layout_.partners(p.out)) {
    const ColumnRange range = columns(partner);
    for (std::int64_t c = range.begin; c < std::min(range.end, range.begin + d); ++c)
      met[static_cast<std::size_t>(c % d)] = 1;
  }
  for (auto begin = met.begin(); (begin = std::find(begin, met.end(), 1)) != met.end();) {
    const auto end = std::find(begin, met.end(), 0);
    const std::int64_t first = begin - met.begin();
    for (std::int64_t r = 0; r < m.rows; ++r)
      port_->load_row(p.from, (area_.row_begin + r) % p.from.rows, first, end - begin,
                      m.row(r) + first);
    begin = end;
  }
}

const Matrix& TileInterpreter::operand(Value v, Value out, Matrix& turned) const {
  const Matrix& m = values_[index(v)];
  if (layout_.form(v) != Form::table) return m;
  const std::int64_t first = columns(out).begin % m.cols;
  if (first == 0) return m;
  turned.resize(m.rows, m.cols);
  for (std::int64_t r = 0; r < m.rows; ++r)
    std::rotate_copy(m.row(r), m.row(r) + first, m.row(r) + m.cols, turned.row(r));
  return turned;
}

void TileInterpreter::execute(const Map& p) {
  Matrix turned_a, turned_b;
  const Matrix& a = operand(p.in[0], p.out, turned_a);
  const Matrix* b = p.in.size() > 1 ? &operand(p.in[1], p.out, turned_b) : nullptr;
  Matrix& out = shaped(p.out);
  if (faulty(FaultKind::dropped_row_scale) || faulty(FaultKind::dropped_residual) ||
      faulty(FaultKind::wrong_rotation_sign) || faulty(FaultKind::unscaled_norm_gradient) ||
      faulty(FaultKind::stale_delta))
    return apply_map(MapFn::copy, 0, a, nullptr, out);
  if (faulty(FaultKind::dropped_residual_gradient))
    return apply_map(MapFn::copy, 0, *b, nullptr, out);
  apply_map(p.fn, static_cast<float>(p.constant), a, b, out);
}

void TileInterpreter::execute(const PairMap& p) {
  Matrix& x = values_[index(p.in[0])];
  if (faulty(FaultKind::swapped_pair) || faulty(FaultKind::swapped_gradient_pair))
    swap_pairs(x, p.distance);
  Matrix& out = shaped(p.out[0]);
  switch (p.fn) {
    case PairFn::rope:
    case PairFn::rope_inverse: {
      const bool inverse = (p.fn == PairFn::rope_inverse) != faulty(FaultKind::wrong_rotation_sign);
      Matrix turned_cos, turned_sin;
      apply_rope(x, operand(p.in[1], p.out[0], turned_cos), operand(p.in[2], p.out[0], turned_sin),
                 p.distance, inverse, out);
      return;
    }
    case PairFn::swiglu:
      apply_swiglu(x, p.distance, out);
      return;
    case PairFn::swiglu_backward:
      apply_swiglu_backward(x, values_[index(p.in[1])], p.distance, out, shaped(p.out[1]));
      return;
  }
}

void TileInterpreter::execute(const StoreTile& p) {
  const Matrix& x = values_[index(p.in)];
  const ColumnRange range = columns(p.in);
  const bool vector = layout_.form(p.in) == Form::per_row;  // repeated
  const std::int64_t end = vector ? std::min(range.end, p.to.cols) : range.end;
  std::vector<float> row(static_cast<std::size_t>(end - range.begin));
  for (std::int64_t r = 0; r < area_.rows(); ++r) {
    const Corner at = place(p.to, layout_.width(p.in), r);
    const float* values = x.row(x.rows == 1 ? 0 : r);
    if (vector) {
      std::fill(row.begin(), row.end(), values[0]);
      values = row.data();
    }
    if (p.accumulate) {
      std::vector<float> sum(row.size());
      port_->load(p.to, at.row, at.col + range.begin, end - range.begin, sum.data());
      for (std::size_t c = 0; c < sum.size(); ++c) row[c] = sum[c] + values[c];
      values = row.data();
    }
    port_->store(p.to, at.row, at.col + range.begin, end - range.begin, values);
  }
}

// Along rows to a column, or to a row that has the rows' numbers side by side.
void TileInterpreter::execute(const StoreVector& p) {
  const Matrix& x = values_[index(p.in)];
  if (p.axis == Axis::cols) {
    port_->store(p.to, 0, columns(p.in).begin, x.cols, x.row(0));
    return;
  }
  const std::int64_t first = area_.vector_begin >= 0 ? area_.vector_begin : area_.row_begin;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    if (p.to.rows == 1) {
      port_->store(p.to, 0, first + r, 1, x.row(r));
    } else {
      port_->store(p.to, first + r, 0, 1, x.row(r));
    }
  }
}

void TileInterpreter::execute(const Columns& p) {
  const Matrix& x = values_[index(p.in)];
  Matrix& out = shaped(p.out);
  const std::int64_t first = p.begin + columns(p.out).begin - columns(p.in).begin;
  for (std::int64_t r = 0; r < out.rows; ++r) std::copy_n(x.row(r) + first, out.cols, out.row(r));
}

// Rows are (b·H + h)·T + t, columns the keys.
void TileInterpreter::execute(const Mask& p) {
  const Matrix& x = values_[index(p.in)];
  const ColumnRange range = columns(p.in);
  Matrix& out = shaped(p.out);
  out.data = x.data;
  for (std::int64_t r = 0; r < out.rows; ++r) {
    const std::int64_t t = (area_.row_begin + r) % p.shape.q_tokens;
    const reference::Seen seen = reference::visible(p.shape, layout_.width(p.in), t);
    for (std::int64_t c = 0; c < out.cols; ++c) {
      const std::int64_t key = range.begin + c;
      if (key < seen.begin || key >= seen.end)
        out.row(r)[c] = -std::numeric_limits<float>::infinity();
    }
  }
}

void TileInterpreter::execute(const LoadHalves& p) {
  Matrix& m = shaped(p.out);
  const ColumnRange range = columns(p.out);
  const std::int64_t half = p.group / 2;
  for (std::int64_t r = 0; r < m.rows; ++r) {
    for (std::int64_t j = range.begin; j < range.end;) {
      const std::int64_t run = std::min(range.end - j, half - j % half);
      port_->load(p.from, area_.row_begin + r, half_column(p, j), run, m.row(r) + j - range.begin);
      j += run;
    }
  }
}

void TileInterpreter::execute(const ConcatHalves& p) {
  const bool swapped = faulty(FaultKind::swapped_pair) || faulty(FaultKind::swapped_gradient_pair);
  const Matrix& lower = values_[index(swapped ? p.upper : p.lower)];
  const Matrix& upper = values_[index(swapped ? p.lower : p.upper)];
  concat_halves(lower, upper, p.group, shaped(p.out));
}

void TileInterpreter::execute(const Gather& p) {
  Matrix& m = shaped(p.out);
  const ColumnRange range = columns(p.out);
  for (std::int64_t r = 0; r < m.rows; ++r) {
    float id = 0;
    port_->load(p.ids, area_.row_begin + r, 0, 1, &id);
    port_->load_row(p.from, static_cast<std::int64_t>(id), range.begin, m.cols, m.row(r));
  }
}

// Rows of the tile are rows of the table; what belongs to one is added in the order of `from`.
void TileInterpreter::execute(const GatherSum& p) {
  Matrix& m = shaped(p.out);
  const ColumnRange range = columns(p.out);
  std::fill(m.data.begin(), m.data.end(), 0.0F);
  std::vector<float> row(static_cast<std::size_t>(m.cols));
  for (std::int64_t i = 0; i < p.from.rows; ++i) {
    std::int64_t to = p.ids ? 0 : i % p.period;
    if (p.ids) {
      float id = 0;
      port_->load(*p.ids, i, 0, 1, &id);
      to = static_cast<std::int64_t>(id);
    }
    if (to < area_.row_begin || to >= area_.row_end) continue;
    port_->load(p.from, i, range.begin, m.cols, row.data());
    float* sum = m.row(to - area_.row_begin);
    for (std::size_t c = 0; c < row.size(); ++c) sum[c] += row[c];
  }
}

void TileInterpreter::execute(const OneHot& p) {
  Matrix& m = shaped(p.out);
  const ColumnRange range = columns(p.out);
  std::fill(m.data.begin(), m.data.end(), 0.0F);
  for (std::int64_t r = 0; r < m.rows; ++r) {
    float id = 0;
    port_->load(p.ids, area_.row_begin + r, 0, 1, &id);
    const std::int64_t place = static_cast<std::int64_t>(id) - range.begin;
    if (place >= 0 && place < m.cols) m.row(r)[place] = 1.0F;
  }
}

}  // namespace fuseline::executor

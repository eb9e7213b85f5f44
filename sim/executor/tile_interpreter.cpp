#include "sim/executor/tile_interpreter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "model/error.h"
#include "model/reference_heads.h"

namespace fuseline::executor {

namespace {

std::size_t index(Value v) { return static_cast<std::size_t>(v); }

// How many values there are, one more than the largest.
std::size_t value_count(std::span<const Primitive> primitives) {
  Value largest = 0;
  for (const Primitive& p : primitives)
    for (const Value v : outputs_of(p)) largest = std::max(largest, v);
  return index(largest) + 1;
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

bool TileInterpreter::stores_here(const Primitive& primitive) const {
  const auto holds = [this](Value v) { return !columns(v).empty(); };
  if (const auto* v = std::get_if<StoreVector>(&primitive))
    return v->axis == Axis::rows ? area_.col_tile == 0 : area_.row_tile == 0;
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
      m.resize(area_.rows(), std::min(range.count(), layout_.width(v)));
      break;
  }
  return m;
}

void TileInterpreter::execute(const LoadTile& p) {
  Matrix& m = shaped(p.out);
  const ColumnRange range = columns(p.out);
  for (std::int64_t r = 0; r < m.rows; ++r)
    port_->load(p.from, area_.row_begin + r, range.begin, m.cols, m.row(r));
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

// Column j of the tile meets column (first + j) mod d of the table; each once.
void TileInterpreter::execute(const LoadTable& p) {
  Matrix& m = shaped(p.out);
  const std::int64_t d = layout_.width(p.out);
  const std::int64_t first = columns(p.out).begin % d;
  const std::int64_t to_end = std::min(m.cols, d - first);
  for (std::int64_t r = 0; r < m.rows; ++r) {
    const std::int64_t row = (area_.row_begin + r) % p.from.rows;
    port_->load(p.from, row, first, to_end, m.row(r));
    if (to_end < m.cols) port_->load(p.from, row, 0, m.cols - to_end, m.row(r) + to_end);
  }
}

void TileInterpreter::execute(const Map& p) {
  const Matrix& a = values_[index(p.in[0])];
  const Matrix* b = p.in.size() > 1 ? &values_[index(p.in[1])] : nullptr;
  Matrix& out = shaped(p.out);
  if (faulty(FaultKind::dropped_row_scale) || faulty(FaultKind::dropped_residual) ||
      faulty(FaultKind::wrong_rotation_sign)) {
    apply_map(MapFn::copy, 0, a, nullptr, out);
    return;
  }
  apply_map(p.fn, static_cast<float>(p.constant), a, b, out);
}

void TileInterpreter::execute(const PairMap& p) {
  Matrix& x = values_[index(p.in[0])];
  if (faulty(FaultKind::swapped_pair)) swap_pairs(x, p.distance);
  Matrix& out = shaped(p.out[0]);
  switch (p.fn) {
    case PairFn::rope:
    case PairFn::rope_inverse: {
      const bool inverse = (p.fn == PairFn::rope_inverse) != faulty(FaultKind::wrong_rotation_sign);
      apply_rope(x, values_[index(p.in[1])], values_[index(p.in[2])], p.distance, inverse, out);
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

void TileInterpreter::execute(const RowReduce& p) {
  const Matrix& x = values_[index(p.in)];
  Matrix& out = shaped(p.out);
  std::int64_t count = x.cols;
  if (faulty(FaultKind::missed_partial)) count -= std::clamp<std::int64_t>(count / 16, 1, 128);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    out.row(r)[0] = reduce(p.fn, x.row(r), count);
  }
}

void TileInterpreter::execute(const TileReduce& p) {
  FUSELINE_ASSERT(area_.batch == 1, "partials of a batch");
  const Matrix& x = values_[index(p.in)];
  const ColumnRange range = columns(p.in);
  const std::int64_t numbers = numbers_of(p);
  const bool by_row = p.axis == Axis::rows;
  const std::int64_t begin = by_row ? range.begin : area_.row_begin;
  const std::int64_t end = by_row ? range.end : area_.row_end;
  const std::int64_t length = by_row ? layout_.width(p.in) : area_.height;
  const std::int64_t across = by_row ? area_.row_begin : range.begin;
  const std::int64_t count = by_row ? x.rows : x.cols;
  std::vector<float> column(static_cast<std::size_t>(x.rows));
  // The i-th row (column) of a value between two places along the reduced axis.
  const auto line = [&](const Matrix& m, std::int64_t i, std::int64_t from, std::int64_t to) {
    if (by_row) return m.row(i) + from;
    for (std::int64_t r = from; r < to; ++r)
      column[static_cast<std::size_t>(r - from)] = m.row(r)[i];
    return static_cast<const float*>(column.data());
  };
  for (std::int64_t block = begin / partial_tile; block * partial_tile < end; ++block) {
    const std::int64_t first = std::max(begin, block * partial_tile);
    const std::int64_t last = std::min(end, (block + 1) * partial_tile);
    std::vector<float> partial(static_cast<std::size_t>(count * numbers));
    for (std::int64_t i = 0; i < count; ++i) {
      float* to = partial.data() + i * numbers;
      const float* values = line(x, i, first - begin, last - begin);
      if (p.fn == ReduceFn::sum_and_squares) {
        to[0] = reduce(ReduceFn::sum, values, last - first);
        to[1] = reduce(ReduceFn::sum_squares, values, last - first);
        continue;
      }
      to[0] = reduce(p.fn, values, last - first);
      if (p.second < 0) continue;
      values = line(values_[index(p.second)], i, first - begin, last - begin);
      to[1] = reduce(p.fn, values, last - first);
    }
    const bool whole =
        first == block * partial_tile && (last == (block + 1) * partial_tile || last == length);
    if (whole) {
      store_partials(p, block, across, partial, *port_);
    } else {
      const std::int64_t part = by_row ? area_.col_tile : area_.row_tile;
      partials_.add({current_, block, across, part}, std::move(partial));
    }
  }
}

// Of each block of columns: maximum, sum of exponentials, and, with three numbers a block, the
// target's logit (zero where the target lies elsewhere).
void TileInterpreter::execute(const OnlineLogSumExp& p) {
  const Matrix& x = values_[index(p.in)];
  const ColumnRange range = columns(p.in);
  const std::int64_t blocks = ceil_div(layout_.width(p.in), partial_tile);
  const std::int64_t numbers = p.partial.cols / blocks;
  FUSELINE_ASSERT(range.begin % partial_tile == 0 && (numbers == 2 || numbers == 3),
                  "log-sum-exp of part of a block");
  for (std::int64_t r = 0; r < x.rows; ++r) {
    float target = 0;
    port_->load(p.targets, area_.row_begin + r, 0, 1, &target);
    for (std::int64_t first = range.begin; first < range.end; first += partial_tile) {
      const std::int64_t count = std::min(partial_tile, range.end - first);
      const float* values = x.row(r) + first - range.begin;
      float state[3] = {reduce(ReduceFn::max, values, count), 0, 0};
      for (std::int64_t c = 0; c < count; ++c) state[1] += std::exp(values[c] - state[0]);
      const std::int64_t place = static_cast<std::int64_t>(target) - first;
      if (place >= 0 && place < count) state[2] = values[place];
      port_->store(p.partial, area_.row_begin + r, first / partial_tile * numbers, numbers, state);
    }
  }
}

void TileInterpreter::execute(const StoreTile& p) {
  const Matrix& x = values_[index(p.in)];
  const ColumnRange range = columns(p.in);
  const Corner at = corner(p.to, layout_.width(p.in));
  std::vector<float> sum;
  for (std::int64_t r = 0; r < area_.rows(); ++r) {
    const std::int64_t row = at.row + area_.row_begin + r;
    const float* values = x.row(x.rows == 1 ? 0 : r);
    if (p.accumulate) {
      sum.resize(static_cast<std::size_t>(range.count()));
      port_->load(p.to, row, at.col + range.begin, range.count(), sum.data());
      for (std::int64_t c = 0; c < range.count(); ++c)
        sum[static_cast<std::size_t>(c)] += values[c];
      values = sum.data();
    }
    port_->store(p.to, row, at.col + range.begin, range.count(), values);
  }
}

void TileInterpreter::execute(const StoreVector& p) {
  const Matrix& x = values_[index(p.in)];
  if (p.axis == Axis::cols) {
    port_->store(p.to, 0, columns(p.in).begin, x.cols, x.row(0));
    return;
  }
  for (std::int64_t r = 0; r < x.rows; ++r) port_->store(p.to, area_.row_begin + r, 0, 1, x.row(r));
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
    const reference::Columns seen = reference::visible(p.shape, layout_.width(p.in), t);
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
  const bool swapped = faulty(FaultKind::swapped_pair);
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
    port_->load(p.from, static_cast<std::int64_t>(id), range.begin, m.cols, m.row(r));
  }
}

void TileInterpreter::execute(const ColumnReduce& p) {
  const Matrix& x = values_[index(p.in)];
  FUSELINE_ASSERT(x.rows == area_.height, "a tile does not hold whole columns");
  Matrix& out = shaped(p.out);
  std::vector<float> column(static_cast<std::size_t>(x.rows));
  for (std::int64_t c = 0; c < x.cols; ++c) {
    for (std::int64_t r = 0; r < x.rows; ++r) column[static_cast<std::size_t>(r)] = x.row(r)[c];
    out.row(0)[c] = reduce(p.fn, column.data(), x.rows);
  }
}

void TileInterpreter::execute(const HeadSum& p) {
  const Matrix& x = values_[index(p.in)];
  Matrix& out = shaped(p.out);
  FUSELINE_ASSERT(x.cols % (p.count * p.width) == 0, "a tile cuts a group of heads");
  for (std::int64_t r = 0; r < out.rows; ++r) {
    for (std::int64_t c = 0; c < out.cols; ++c) {
      const float* first = x.row(r) + c / p.width * p.count * p.width + c % p.width;
      float sum = first[0];
      for (std::int64_t head = 1; head < p.count; ++head) sum += first[head * p.width];
      out.row(r)[c] = sum;
    }
  }
}

}  // namespace fuseline::executor

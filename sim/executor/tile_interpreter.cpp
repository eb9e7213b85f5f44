#include "sim/executor/tile_interpreter.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace fuseline::executor {

namespace {

// How many values there are, one more than the largest.
std::size_t value_count(std::span<const Primitive> primitives) {
  Value largest = 0;
  for (const Primitive& p : primitives) {
    for (const Value v : p.uses()) largest = std::max(largest, v);  // the mainloop's too
    for (const Value v : p.defines()) largest = std::max(largest, v);
  }
  return static_cast<std::size_t>(largest) + 1;
}

std::optional<Reach> stored_by(const Primitive& primitive) {
  for (const Access& access : primitive.accesses())
    if (access.store) return access.reach;
  return std::nullopt;
}

// What a named fault makes of the evaluation of its primitive.
EvaluationFault evaluation_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::dropped_row_scale:
    case FaultKind::dropped_residual:
    case FaultKind::unscaled_norm_gradient:
    case FaultKind::stale_delta:
      return EvaluationFault::forgets_second;
    case FaultKind::dropped_residual_gradient:
      return EvaluationFault::forgets_first;
    case FaultKind::wrong_rotation_sign:
      return EvaluationFault::wrong_sign;
    case FaultKind::swapped_pair:
    case FaultKind::swapped_gradient_pair:
      return EvaluationFault::swaps_pairs;
    case FaultKind::missed_partial:
      return EvaluationFault::leaves_out_last;
    case FaultKind::missed_column_partial:
      return EvaluationFault::misses_column_end;
    case FaultKind::stale_tile:
    case FaultKind::unnormalised_softmax:
    case FaultKind::shifted_mask:
      return EvaluationFault::none;  // of mainloops
  }
  FUSELINE_ASSERT(false, "unknown fault");
}

}  // namespace

TileInterpreter::TileInterpreter(std::span<const Primitive> primitives, const ValueAnalysis& values,
                                 PartialSums& partials, std::optional<FaultPoint> fault)
    : primitives_(primitives),
      values_(values),
      partials_(partials),
      fault_(fault),
      matrices_(value_count(primitives)),
      needed_(matrices_.size()),
      chosen_(primitives.size()) {
  for (const Primitive& p : primitives) {
    reads_.push_back(p.uses());
    makes_.push_back(p.defines());
    stores_.push_back(stored_by(p));
    FUSELINE_ASSERT(!stores_.back() || !reads_.back().empty(), "what stores has a value to store");
  }
}

void TileInterpreter::begin(const TileArea& area) { area_ = area; }

EvaluationFault TileInterpreter::fault() const {
  const bool here = fault_ && fault_->primitive == current_;
  return here ? evaluation_of(fault_->kind) : EvaluationFault::none;
}

Corner TileInterpreter::place(const Operand& operand, std::int64_t width, std::int64_t r) const {
  const std::int64_t row = area_.row_begin + r;
  if (area_.heads > 1) {
    const std::int64_t sequence = row / area_.tokens / area_.heads;
    const std::int64_t head = row / area_.tokens % area_.heads;
    return {sequence * area_.tokens + row % area_.tokens, head * width};
  }
  if (area_.batch == 1) return {row, 0};
  const Corner at = corner_of(operand, area_.batch, area_.batch_index, area_.height, width);
  return {at.row + row, at.col};
}

// Vectors are stored by the first tile that has them, everything else by the tiles that hold its
// columns.
bool TileInterpreter::stores_here(std::size_t primitive) const {
  const std::optional<Reach>& reach = stores_[primitive];
  if (!reach) return false;
  if (*reach == Reach::row_numbers) return area_.col_tile == 0 || area_.vector_begin >= 0;
  if (*reach == Reach::col_numbers && area_.row_tile != 0) return false;
  // A loop may run beside wider ones: tiles behind its last column have nothing to store.
  return !columns(reads_[primitive].front()).empty();
}

void TileInterpreter::choose(std::span<const Value> wanted, bool effects) {
  std::fill(needed_.begin(), needed_.end(), char{0});
  for (const Value v : wanted) needed_[index(v)] = 1;
  for (std::size_t i = primitives_.size(); i-- > 0;) {
    bool chosen = effects && stores_here(i);
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
    if (chosen_[current_] != 0) primitives_[current_].evaluate(*this);
}

Matrix& TileInterpreter::result(Value v) {
  Matrix& m = matrices_[index(v)];
  const ColumnRange range = columns(v);
  switch (values_.form(v)) {
    case Form::tile:
      m.resize(area_.rows(), range.count());
      break;
    case Form::per_row:
    case Form::per_score_row:
      m.resize(area_.rows(), 1);
      break;
    case Form::per_col:
      m.resize(1, range.count());
      break;
    case Form::table:
      m.resize(area_.rows(), values_.width(v));
      break;
  }
  return m;
}

const Matrix& TileInterpreter::operand(Value v, Value out, Matrix& turned) const {
  const Matrix& m = matrices_[index(v)];
  // A map of a table is a table: its columns are turned where it meets a tile.
  if (values_.form(v) != Form::table || values_.form(out) == Form::table) return m;
  const std::int64_t first = columns(out).begin % m.cols;
  if (first == 0) return m;
  turned.resize(m.rows, m.cols);
  for (std::int64_t r = 0; r < m.rows; ++r)
    std::rotate_copy(m.row(r), m.row(r) + first, m.row(r) + m.cols, turned.row(r));
  return turned;
}

void TileInterpreter::leave(Partials partials, const PartialRule& rule) {
  if (partials.whole)
    rule.store(*port_, partials);
  else
    partials_.add(current_, std::move(partials), rule);
}

}  // namespace fuseline::executor

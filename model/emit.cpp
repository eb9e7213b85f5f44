#include "model/emit.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/primitives/functions.h"

namespace fuseline {

namespace {

// Whether the value of `made` holds the operand: columns of the same rows.
bool holds(const Operand& made, const Operand& wanted) {
  return same_rows(made, wanted) && covers(made, wanted);
}

}  // namespace

Emitter::Emitter(const Graph& graph, std::string name, std::vector<OpId> ops)
    : graph_(graph), ops_(std::move(ops)) {
  program_.name = std::move(name);
}

void Emitter::set_mainloop(Mainloop mainloop, std::int64_t cols) {
  program_.mainloop = std::move(mainloop);
  cols_ = cols;
}

Program Emitter::finish() { return std::move(program_); }

Value Emitter::fresh(const std::string& name) {
  std::string unique = name;
  for (int n = 1; !taken_.insert(unique).second; ++n) unique = name + std::to_string(n);
  const Value value = next_++;
  program_.names.resize(static_cast<std::size_t>(next_));
  program_.names[static_cast<std::size_t>(value)] = unique;
  return value;
}

void Emitter::emit(Primitive primitive) {
  (to_prologue_ ? program_.prologue : program_.body).push_back(std::move(primitive));
}

Value Emitter::halves(const Operand& operand, std::int64_t group, bool upper,
                      const std::string& name) {
  const Value value = fresh(name);
  emit(LoadHalves{value, operand, group, upper});
  return value;
}

Value Emitter::part(const Operand& operand, const ColumnPart& part, const std::string& name) {
  const Value value = fresh(name);
  emit(LoadPart{value, operand, part});
  return value;
}

bool Emitter::made_here(const Operand& operand) const {
  return std::any_of(made_.begin(), made_.end(),
                     [&](const Known& k) { return holds(k.operand, operand); });
}

// A value at hand for the operand, or -1.
Value Emitter::find(const Operand& operand) {
  for (const Known& k : made_) {
    if (!holds(k.operand, operand)) continue;
    if (k.vector || k.operand.cols == operand.cols) return k.value;
  }
  for (const Known& k : loaded_)
    if (k.operand == operand) return k.value;
  for (const Known& k : made_) {
    if (!holds(k.operand, operand)) continue;
    const Value part = fresh(graph_.tensor(operand.tensor).name + "_part");
    emit(Columns{part, k.value, operand.col_begin - k.operand.col_begin, operand.cols});
    loaded_.push_back({operand, part, false});
    return part;
  }
  return -1;
}

Value Emitter::tile_or_row(const Operand& operand) {
  return operand.cols == 1 && cols_ > 1 ? per_row(operand, "r") : tile(operand);
}

Value Emitter::tile(const Operand& operand) {
  const Value known = find(operand);
  if (known >= 0) return known;
  const Value value = fresh(graph_.tensor(operand.tensor).name);
  emit(LoadTile{value, operand});
  loaded_.push_back({operand, value, false});
  return value;
}

Value Emitter::per_row(const Operand& operand, const std::string& name) {
  const Value known = find(operand);
  if (known >= 0) return known;
  const Value value = fresh(name);
  emit(LoadVector{value, operand, Axis::rows});
  loaded_.push_back({operand, value, true});
  return value;
}

Value Emitter::per_col(const Operand& operand, const std::string& name) {
  const Value known = find(operand);
  if (known >= 0) return known;
  const Value value = fresh(name);
  emit(LoadVector{value, operand, Axis::cols});
  loaded_.push_back({operand, value, true});
  return value;
}

Value Emitter::table(const Operand& operand, std::int64_t period, double rest) {
  const Value known = find(operand);
  if (known >= 0) return known;
  const Value value = fresh(graph_.tensor(operand.tensor).name);
  emit(LoadTable{value, operand, period, period > 0 ? rest : 0});
  loaded_.push_back({operand, value, false});
  return value;
}

Value Emitter::map(MapFn fn, std::vector<Value> in, const std::string& name, double constant) {
  const std::vector<Primitive>& so_far = to_prologue_ ? program_.prologue : program_.body;
  for (const Primitive& p : so_far) {
    const auto* same = p.as<Map>();
    if (same != nullptr && same->fn == fn && same->in == in && same->constant == constant)
      return same->out;
  }
  const Value value = fresh(name);
  emit(Map{value, fn, std::move(in), constant});
  return value;
}

Value Emitter::pairs(PairFn fn, std::vector<Value> in, const std::string& name,
                     std::int64_t distance) {
  const Value value = fresh(name);
  emit(PairMap{{value}, fn, std::move(in), distance});
  return value;
}

Value Emitter::row_reduce(ReduceFn fn, Value in, const std::string& name) {
  const Value value = fresh(name);
  emit(RowReduce{value, fn, in});
  return value;
}

Value Emitter::row_sum(const Operand& operand, std::int64_t every, std::int64_t first,
                       const std::string& name) {
  if (std::holds_alternative<RowMainloop>(program_.mainloop)) {
    const Value numbers = every == 1
                              ? tile(operand)
                              : halves(operand, every, first > 0, first > 0 ? "squares" : "sums");
    return row_reduce(reductions::sum, numbers, name);
  }
  const Value value = fresh(name);
  emit(LoadRowSums{value, operand, every, first});
  return value;
}

Value Emitter::group_reduce(ReduceFn fn, Value in, std::int64_t group, const std::string& name) {
  const Value value = fresh(name);
  emit(GroupReduce{value, fn, in, group});
  return value;
}

Value Emitter::sequence(const Operand& operand, std::int64_t tokens, const std::string& name) {
  for (const Known& k : loaded_)
    if (k.operand == operand) return k.value;
  const Value value = fresh(name);
  emit(LoadSequence{value, operand, tokens});
  loaded_.push_back({operand, value, false});
  return value;
}

Value Emitter::one_hot(const Operand& ids, std::int64_t cols) {
  const Value value = fresh("one");
  emit(OneHot{value, ids, cols});
  return value;
}

Value Emitter::column_sum(Value in, const std::string& name) {
  const Value value = fresh(name);
  emit(ColumnReduce{value, reductions::sum, in});
  return value;
}

// The parts of `written` that operators of other kernels read, adjacent ones merged.
std::vector<Operand> Emitter::wanted_elsewhere(const Operand& written) const {
  const Role role = graph_.tensor(written.tensor).role;
  if (role == Role::output || role == Role::cache) return {written};
  std::vector<Operand> parts;
  for (const OpId id : graph_.consumers(written.tensor)) {
    if (std::find(ops_.begin(), ops_.end(), id) != ops_.end()) continue;
    for (Operand read : graph_.op(id).reads) {
      if (!overlap(read, written)) continue;
      const std::int64_t end =
          std::min(read.col_begin + read.cols, written.col_begin + written.cols);
      read.col_begin = std::max(read.col_begin, written.col_begin);
      read.cols = end - read.col_begin;
      if (read.cols > 0) parts.push_back(read);
    }
  }
  std::sort(parts.begin(), parts.end(),
            [](const Operand& a, const Operand& b) { return a.col_begin < b.col_begin; });
  std::vector<Operand> merged;
  for (Operand part : parts) {
    part.rows = written.rows;
    part.at = written.at;
    if (!merged.empty() && part.col_begin <= merged.back().col_begin + merged.back().cols) {
      Operand& last = merged.back();
      last.cols = std::max(last.cols, part.col_begin + part.cols - last.col_begin);
    } else {
      merged.push_back(part);
    }
  }
  return merged;
}

void Emitter::store(const Operand& to, const Known& known) {
  if (known.vector) {
    emit(StoreVector{known.value, to, known.axis});
    return;
  }
  const bool all = to.cols == known.operand.cols;
  emit(StoreTile{all ? known.value : find(to), to});
}

void Emitter::produce(const Operand& written, Value value, bool vector, Axis axis) {
  const Known known{written, value, vector || (written.cols == 1 && cols_ > 1), axis};
  const bool cached = graph_.tensor(written.tensor).role == Role::cache;
  if (!cached) made_.push_back(known);  // attention reads the cache from memory
  for (const Operand& part : wanted_elsewhere(written)) store(part, known);
}

void Emitter::produce_result(const Operand& written, const std::string& name) {
  taken_.insert(name);
  if (program_.names.empty()) program_.names.resize(1);
  program_.names[0] = name;
  produce(written, 0);
}

}  // namespace fuseline

#include "model/programs/adjoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/primitives/functions.h"
#include "model/primitives/map.h"
#include "model/primitives/row_reduce.h"
#include "model/programs/defined_map.h"
#include "model/programs/known_lines.h"
#include "model/programs/meanings.h"
#include "model/programs/rewritten.h"

namespace fuseline {

ProgramAdjoint::ProgramAdjoint(const Program& program, GradientHomes& homes)
    : program_(program),
      homes_(homes),
      shapes_(analyse(program).shapes()),
      names_(program.names),
      needed_(program.body.size()) {
  Value last = 0;
  for (const Primitive& p : program.body)
    for (const Value v : p.defines()) last = std::max(last, v);
  names_.resize(static_cast<std::size_t>(last + 1));
}

bool ProgramAdjoint::rows_resident() const {
  return std::holds_alternative<RowMainloop>(program_.mainloop);
}

std::int64_t ProgramAdjoint::rows() const {
  if (const auto* gemm = std::get_if<GemmMainloop>(&program_.mainloop)) return gemm->M;
  if (const auto* row = std::get_if<RowMainloop>(&program_.mainloop)) return row->rows;
  return std::get<StreamMainloop>(program_.mainloop).rows;
}

void ProgramAdjoint::missing(const std::string& what) const {
  throw MissingError(fmt::format("program {}: {} states no gradient yet", program_.name, what));
}

Value ProgramAdjoint::fresh(const std::string& name) {
  std::string own = name;
  for (int i = 2; std::ranges::find(names_, own) != names_.end(); ++i)
    own = fmt::format("{}{}", name, i);
  names_.push_back(own);
  return static_cast<Value>(names_.size() - 1);
}

void ProgramAdjoint::emit(Primitive line) {
  const std::vector<Value> made = line.defines();
  const std::vector<ValueShape> results = line.results(shapes_, 1);
  for (std::size_t i = 0; i < made.size(); ++i) shapes_[made[i]] = results[i];
  lines_.push_back(std::move(line));
}

Value ProgramAdjoint::map(MapFn fn, std::vector<Value> in, double constant) {
  const Value out = fresh("g");
  emit(Map{.out = out, .fn = fn, .in = std::move(in), .constant = constant});
  return out;
}

Value ProgramAdjoint::summed_along_row(Value tile) {
  const Value out = fresh("s");
  emit(RowReduce{.out = out, .fn = reductions::sum, .in = tile});
  return out;
}

std::optional<Value> ProgramAdjoint::of(Value v) {
  const auto found = parts_.find(v);
  if (found == parts_.end()) return std::nullopt;
  std::vector<Value>& parts = found->second;
  while (parts.size() > 1) {
    // A tile first: rows and columns are repeated beside it.
    std::ranges::stable_sort(parts,
                             [&](Value a, Value b) { return shape(a).form < shape(b).form; });
    const Value sum = map(maps::add, {parts[0], parts[1]});
    parts.erase(parts.begin(), parts.begin() + 2);
    parts.insert(parts.begin(), sum);
  }
  return parts.front();
}

void ProgramAdjoint::add(Value v, Value part, Value out) {
  const Form to = shape(v).form, from = shape(part).form;
  if (to == Form::table) return;
  if (to == Form::per_row && from == Form::tile && rows_resident()) part = summed_along_row(part);
  if (to == Form::per_row && from == Form::per_row && shape(out).form == Form::tile)
    part = map(maps::scale_by_constant, {part}, static_cast<double>(shape(out).width));
  if (to == Form::per_col && from != Form::tile)
    missing("a vector along columns beside sums of rows");
  if (to == Form::per_row && from == Form::per_col)
    missing("a number of a row beside vectors along columns");
  // Tiles are added up at once: each that waited would take registers of its own.
  if (shape(part).form == Form::tile)
    for (Value& there : parts_[v])
      if (shape(there).form == Form::tile) {
        there = map(maps::add, {there, part});
        return;
      }
  parts_[v].push_back(part);
}

Value ProgramAdjoint::again(Value v) {
  for (std::size_t i = 0; i < program_.body.size(); ++i) {
    const Primitive& p = program_.body[i];
    if (std::ranges::count(p.defines(), v) == 0) continue;
    if (needed_[i]) return v;
    needed_[i] = true;
    for (const Value u : p.uses()) again(u);
    return v;
  }
  product_again_ = true;  // value 0, which the mainloop makes
  return v;
}

Value ProgramAdjoint::times_derivative(const Primitive& line, std::size_t by, Value d) {
  const Map& map_line = *line.as<Map>();
  const ValueFunction& whole = meaning_of(map_line.fn);
  ValueFunction slope = whole.derivative(by);
  std::vector<Value> in = map_line.in;
  // The constant of the line becomes a number of the derivative, and what it does not read goes.
  for (std::size_t i = slope.parameters().size(); i-- > in.size();)
    slope = slope.with_number(i, map_line.constant);
  for (std::size_t i = in.size(); i-- > 0 && in.size() > 1;)
    if (!slope.reads(i)) {
      slope = slope.with_number(i, 0);
      in.erase(in.begin() + static_cast<std::ptrdiff_t>(i));
    }
  if (const std::optional<double> number = slope.number()) {
    if (*number == 1) return d;
    return *number == -1 ? map(maps::negate, {d}) : map(maps::scale_by_constant, {d}, *number);
  }
  for (const Value v : in) again(v);
  if (in.size() == 1 && slope.text() == slope.parameters()[0]) return map(maps::mul, {d, in[0]});
  const std::string name =
      definition_of(map_line.fn) != nullptr ? defined_name(map_line.fn) : map_line.fn->name.value;
  const std::string by_name = fmt::format("{}_by_{}", name, whole.parameters()[by]);
  return map(maps::mul, {d, map(defined_map(by_name, slope), in)});
}

void ProgramAdjoint::run() {
  for (auto p = program_.body.rbegin(); p != program_.body.rend(); ++p) {
    const LineKind* kind = kind_of(*p);
    if (kind != nullptr && kind->adjoint) {
      kind->adjoint(*p, *this);
      continue;
    }
    const std::vector<Value> made = p->defines();
    const bool wanted = std::ranges::any_of(made, [&](Value v) { return of(v).has_value(); }) ||
                        std::ranges::any_of(p->accesses(), [&](const Access& a) {
                          return a.store && homes_.of_stored(a.operand).has_value();
                        });
    if (wanted) missing(std::string(p->name()));
  }
}

std::vector<Primitive> ProgramAdjoint::lines() const {
  std::vector<Primitive> all;
  const auto here = [&](Operand& o) { o = homes_.again(o); };
  if (loaded_) all.emplace_back(*loaded_);
  for (std::size_t i = 0; i < program_.body.size(); ++i)
    if (needed_[i]) all.push_back(rewritten(program_.body[i], here));
  all.insert(all.end(), lines_.begin(), lines_.end());
  return all;
}

std::optional<std::vector<bool>> ProgramAdjoint::made_again(Value loaded) const {
  std::vector<bool> needed(program_.body.size());
  std::vector<Value> wanted;
  for (const Primitive& line : lines_)
    for (const Value v : line.uses()) wanted.push_back(v);
  while (!wanted.empty()) {
    const Value v = wanted.back();
    wanted.pop_back();
    if (v == loaded) continue;
    if (v == 0) return std::nullopt;
    for (std::size_t i = 0; i < program_.body.size(); ++i) {
      const Primitive& p = program_.body[i];
      if (needed[i] || std::ranges::count(p.defines(), v) == 0) continue;
      needed[i] = true;
      for (const Value u : p.uses()) wanted.push_back(u);
    }
  }
  return needed;
}

std::vector<Value> ProgramAdjoint::in_place_of_product() const {
  std::vector<Value> tiles;
  for (auto p = program_.body.rbegin(); p != program_.body.rend(); ++p)
    for (const Value v : p->defines())
      if (shape(v).form == Form::tile && p->as<LoadTile>() == nullptr && made_again(v))
        tiles.push_back(v);
  tiles.push_back(0);
  return tiles;
}

void ProgramAdjoint::load_again(Value v, const Operand& from) {
  needed_ = *made_again(v);
  product_again_ = false;
  loaded_ = LoadTile{.out = v, .from = homes_.again(from)};
}

std::optional<Operand> ProgramAdjoint::product_in_memory() const {
  const auto found = parts_.find(0);
  if (found == parts_.end() || found->second.size() != 1) return std::nullopt;
  for (const Primitive& p : lines_)
    if (const auto* load = p.as<LoadTile>(); load != nullptr && load->out == found->second.front())
      return load->from;
  return std::nullopt;
}

}  // namespace fuseline

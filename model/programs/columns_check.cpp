#include "model/programs/columns_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <variant>

#include "model/program_space.h"

namespace fuseline {

namespace {

// column of the value = column of the index space · num / den + offset
struct Place {
  std::int64_t num = 1, den = 1, offset = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

bool has_columns(const ValueShape& s) { return s.form == Form::tile || s.form == Form::per_col; }

class ColumnsCheck {
 public:
  ColumnsCheck(const Graph& graph, const Program& program) : graph_(graph), program_(program) {
    std::vector<std::string> problems;
    space_ = index_space_of(graph, program, problems);
    whole_ = std::holds_alternative<RowMainloop>(program.mainloop);
    product_ = std::holds_alternative<GemmMainloop>(program.mainloop);
  }

  std::vector<ProgramProblem> run() {
    unused();
    // What attention and scans leave has columns of heads, which their own checks look at.
    const bool tiles =
        product_ || whole_ || std::holds_alternative<StreamMainloop>(program_.mainloop);
    if (!tiles || space_.batch > 1 || space_.heads > 1) return std::move(found_);
    if (product_) {
      shapes_[0] = {Form::tile, space_.cols};
      places_[0] = Place{};
    }
    for (std::size_t i = 0; i < program_.body.size(); ++i) {
      const Primitive& p = program_.body[i];
      const std::vector<Value> made = p.defines();
      const std::vector<ValueShape> shapes = p.results(shapes_, space_.heads);
      for (std::size_t n = 0; n < made.size(); ++n) {
        shapes_[made[n]] = shapes[n];
        made_at_[made[n]] = static_cast<int>(i);
      }
    }
    place_all();
    for (std::size_t i = 0; i < program_.body.size(); ++i) {
      if (!whole_) groups(static_cast<int>(i));
      half_bytes(static_cast<int>(i));
      if (product_) parts(static_cast<int>(i));
    }
    for (const auto& [v, shape] : shapes_) inside(v, shape);
    return std::move(found_);
  }

 private:
  void add(const char* rule, int primitive, const std::string& text) {
    found_.push_back({rule, text, false, primitive});
  }
  static std::string text(Value v) { return "value " + std::to_string(v); }

  void unused() {
    std::set<Value> used;
    for (const Primitive& p : program_.body)
      for (const Value v : p.uses()) used.insert(v);
    const bool makes_one = product_ || std::holds_alternative<ScanMainloop>(program_.mainloop) ||
                           std::holds_alternative<AttentionMainloop>(program_.mainloop);
    if (makes_one && !used.contains(0))
      add("unused-value", -1, "no line uses what the mainloop makes");
    for (std::size_t i = 0; i < program_.body.size(); ++i) {
      const std::vector<Value> made = program_.body[i].defines();
      if (!made.empty() && std::ranges::none_of(made, [&](Value v) { return used.contains(v); }))
        add("unused-value", static_cast<int>(i), "no line uses " + text(made.front()));
    }
  }

  // The place of `to` by that of `from`; the other way with `back`.
  static std::optional<Place> moved(const Place& from, const ColumnRelation& r, bool back) {
    const std::int64_t num = back ? r.den : r.num, den = back ? r.num : r.den;
    const std::int64_t offset = back ? from.offset - r.offset : from.offset;
    if (den == 0 || offset * num % den != 0) return std::nullopt;
    Place to{from.num * num, from.den * den, offset * num / den + (back ? 0 : r.offset)};
    const std::int64_t common = std::gcd(to.num, to.den);
    if (common > 1) to = {to.num / common, to.den / common, to.offset};
    return to;
  }

  void place_all() {
    for (;;) {
      for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t i = 0; i < program_.body.size(); ++i)
          for (const ColumnRelation& r : program_.body[i].relations())
            changed = relate(static_cast<int>(i), r) || changed;
      }
      if (joined_.empty())
        for (const auto& [v, place] : places_) joined_.insert(v);
      // Of what nothing joins with placed values, the widest begins at the first column.
      const std::pair<const Value, ValueShape>* widest = nullptr;
      for (const auto& one : shapes_)
        if (has_columns(one.second) && !places_.contains(one.first) &&
            (widest == nullptr || one.second.width > widest->second.width))
          widest = &one;
      if (widest == nullptr) return;
      if (product_ && widest->second.width != space_.cols)
        add("shape", made_at_[widest->first],
            fmt::format(
                "{} has {} columns and meets no value of the product, whose tiles are of {}",
                text(widest->first), widest->second.width, space_.cols));
      places_[widest->first] = Place{};
    }
  }

  // True when one of the two became known.
  bool relate(int primitive, const ColumnRelation& r) {
    const auto a = shapes_.find(r.from), b = shapes_.find(r.to);
    if (a == shapes_.end() || b == shapes_.end() || !has_columns(a->second) ||
        !has_columns(b->second))
      return false;
    const auto from = places_.find(r.from), to = places_.find(r.to);
    if (from == places_.end() && to == places_.end()) return false;
    const bool back = from == places_.end();
    const std::optional<Place> place = moved(back ? to->second : from->second, r, back);
    const bool both = !back && to != places_.end();
    if (!place && said_.insert(primitive).second)
      add("two-layouts", primitive, text(r.to) + " begins within a pair of columns");
    else if (place && both && !(*place == to->second) && !whole_ && said_.insert(primitive).second)
      add("two-layouts", primitive,
          text(r.from) + " and " + text(r.to) + " are of other columns: no tile has both");
    if (both) return false;
    places_[back ? r.from : r.to] = place.value_or(Place{});
    return true;
  }

  // Groups of columns begin where tiles do.
  void groups(int primitive) {
    const Primitive& p = program_.body[static_cast<std::size_t>(primitive)];
    const std::int64_t group = p.demands().column_group;
    if (group <= 1) return;
    std::vector<Value> values = p.uses();
    for (const Value v : p.defines()) values.push_back(v);
    for (const Value v : values) {
      const auto place = places_.find(v);
      if (place == places_.end() || place->second.offset % group == 0) continue;
      add("pair-across-tiles", primitive,
          fmt::format(
              "groups of {} columns of {} begin within a tile: it is a slice from column {} "
              "on",
              group, text(v), -place->second.offset));
      return;
    }
  }

  // Tiles end at even columns of the index space: a value of four bits begins at one.
  void half_bytes(int primitive) {
    const Primitive& p = program_.body[static_cast<std::size_t>(primitive)];
    for (const Access& a : p.accesses()) {
      const std::vector<Value> values = a.store ? p.uses() : p.defines();
      if (size_of(graph_.tensor(a.operand.tensor).dtype).bits() >= 8 || values.empty()) continue;
      const auto place = places_.find(values.front());
      if (place == places_.end() || place->second.offset % 2 == 0) continue;
      add("number-format", primitive,
          fmt::format("two columns of {} share a byte, and a tile ends between them: {} is a slice "
                      "from column {} on",
                      graph_.tensor(a.operand.tensor).name, text(values.front()),
                      -place->second.offset));
    }
  }

  // An epilogue runs what follows from a part of the product's columns in the tiles that have it.
  void parts(int primitive) {
    if (said_.contains(primitive)) return;
    const Primitive& p = program_.body[static_cast<std::size_t>(primitive)];
    int part = -1;
    for (const Value v : p.uses()) {
      const auto known = parts_of_.find(v);
      if (known == parts_of_.end()) continue;
      if (part >= 0 && known->second != part)
        return add("two-layouts", primitive,
                   "values of two parts of the columns meet, each with tiles of its own");
      part = known->second;
    }
    if (const auto slice = p.demands().slice) {
      if (!joined_.contains(slice->of))
        return add("shape", primitive,
                   text(slice->of) + " meets no value of the product: load its part alone");
      part = primitive;
    }
    if (part >= 0)
      for (const Value v : p.defines()) parts_of_[v] = part;
  }

  void inside(Value v, const ValueShape& shape) {
    const auto found = places_.find(v);
    if (found == places_.end() || !has_columns(shape)) return;
    const Place& p = found->second;
    // Columns of the index space where it begins and ends, times p.num.
    const std::int64_t begin = -p.offset * p.den, end = (shape.width - p.offset) * p.den;
    if (!whole_ && space_.cols * p.num % p.den != 0)
      add("pair-across-tiles", made_at_.contains(v) ? made_at_[v] : -1,
          fmt::format(
              "{} has one column for {} of the index space, whose {} columns end within them",
              text(v), p.den / p.num, space_.cols));
    else if (begin < 0 || end > space_.cols * p.num)
      add("shape", made_at_.contains(v) ? made_at_[v] : -1,
          fmt::format("{} has {} columns, more than the index space of {} has for it", text(v),
                      shape.width, space_.cols));
    else if (product_ && p.num > 2 * p.den)
      add("shape", made_at_[v],
          fmt::format("{} has {} columns for each of the product, and a thread has room for 2",
                      text(v), p.num / p.den));
    else if (product_ && p.den > 2 * p.num)
      add("shape", made_at_[v],
          fmt::format("{} has one column for {} of the product, and a thread has pairs", text(v),
                      p.den / p.num));
  }

  const Graph& graph_;
  const Program& program_;
  IndexSpace space_;
  bool whole_ = false, product_ = false;
  ValueShapes shapes_;
  std::map<Value, int> made_at_;
  std::map<Value, Place> places_;
  std::set<Value> joined_;         // with the product, by the steps between
  std::map<Value, int> parts_of_;  // by value: the line that took its part of the columns
  std::set<int> said_;
  std::vector<ProgramProblem> found_;
};

}  // namespace

std::vector<ProgramProblem> column_problems(const Graph& graph, const Program& program) {
  return ColumnsCheck(graph, program).run();
}

}  // namespace fuseline

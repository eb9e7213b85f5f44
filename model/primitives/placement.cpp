#include "model/primitives/placement.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "base/error.h"
#include "model/primitives/all_maps.h"
#include "model/primitives/map.h"

namespace fuseline {

namespace {

bool stores_tile(const Access& access) {
  return access.store && (access.reach == Reach::tile || access.reach == Reach::partials);
}

// The same registers under another name.
bool is_copy(const Primitive& primitive) {
  const auto* map = primitive.as<Map>();
  return map != nullptr && map->fn == maps::copy;
}

// Walks the body in the order of the source.
class PlacementWalk {
 public:
  PlacementWalk(const Program& program, const ValueAnalysis& values)
      : program_(program), values_(values), parts_(parts_of(program)) {}

  Placement run() {
    stays_[0] = kNowhere;
    for (const Primitive& primitive : program_.body)
      if (is_load(primitive)) loads_[primitive.defines().front()] = &primitive;
    std::vector<std::map<Value, int>> outer;  // what is loaded in a scope ends with it
    in_order_of_source(
        parts_,
        [&](int part) {
          outer.push_back(stays_);
          part_ = part;
        },
        [&](std::size_t i) {
          ++step_;
          if (!is_load(program_.body[i])) visit(program_.body[i]);
        },
        [&](int part) {
          stays_ = std::move(outer.back());
          outer.pop_back();
          part_ = parts_.parts[static_cast<std::size_t>(part)].parent;
        });
    return std::move(result_);
  }

 private:
  static constexpr int kNowhere = -1;  // the value takes no registers of its own

  // Tables repeat along the accumulator's columns.
  [[nodiscard]] int each(Value v) const {
    return values_.form(v) == Form::table ? 2 : each_of(values_.width(v), parts_.cols(part_));
  }

  void visit(const Primitive& primitive) {
    const std::vector<Value> uses = primitive.uses();
    const std::vector<Access> accesses = primitive.accesses();
    if (std::ranges::any_of(accesses, stores_tile)) result_.barriers.push_back(step_);
    for (const Value v : uses) use(v);
    if (const auto slice = primitive.demands().slice) {
      stays_[primitive.defines().front()] = stays_.at(slice->of);
      return;
    }
    if (is_copy(primitive)) {
      stays_[primitive.defines().front()] = stays_.at(uses.front());
      return;
    }
    for (const Access& access : accesses)
      if (access.reach == Reach::partials)
        result_.partials.push_back({access.along, each(uses.front())});
    for (const Value v : primitive.defines()) define(v);
  }

  void use(Value v) {
    if (!stays_.contains(v)) {
      const auto load = loads_.find(v);
      FUSELINE_ASSERT(load != loads_.end(), "values are defined before they are used");
      load_now(*load->second);
    }
    if (const int stay = stays_.at(v); stay != kNowhere)
      result_.registers[static_cast<std::size_t>(stay)].last = step_;
  }

  void load_now(const Primitive& primitive) {
    const Value out = primitive.defines().front();
    for (const Access& access : primitive.accesses()) {
      // What has a number for several columns comes straight from memory.
      const bool whole = access.reach == Reach::tile && access.operand.cols >= values_.width(out);
      if (whole || access.reach == Reach::col_numbers)
        result_.shared.push_back({out, access.reach, each(out)});
    }
    define(out);
  }

  void define(Value v) {
    int& stay = stays_[v] = kNowhere;
    if (values_.form(v) == Form::per_row) return;
    result_.registers.push_back({v, step_, step_});
    stay = static_cast<int>(result_.registers.size()) - 1;
  }

  const Program& program_;
  const ValueAnalysis& values_;
  const EpilogueParts parts_;
  std::map<Value, const Primitive*> loads_;
  std::map<Value, int> stays_;  // index into the result's registers
  int part_ = -1;
  int step_ = 0;
  Placement result_;
};

}  // namespace

bool is_load(const Primitive& primitive) {
  return primitive.uses().empty() && !primitive.defines().empty();
}

Placement placement_of(const Program& program, const ValueAnalysis& values) {
  FUSELINE_ASSERT(std::holds_alternative<GemmMainloop>(program.mainloop),
                  "only GEMM programs have epilogues");
  return PlacementWalk(program, values).run();
}

}  // namespace fuseline

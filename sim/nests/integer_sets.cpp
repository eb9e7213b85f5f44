#include "sim/nests/integer_sets.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <isl/ctx.h>
#include <isl/map.h>
#include <isl/options.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/union_map.h>
#include <isl/union_set.h>
#include <isl/val.h>

#include "base/error.h"

namespace fuseline {

namespace {

// An object of isl, which frees itself. isl's functions take over most of their arguments, so each
// call says with copy() what it leaves.
template <class T, T* (*Free)(T*), T* (*Copy)(T*)>
class Held {
 public:
  Held() = default;
  explicit Held(T* object) : object_(object) { FUSELINE_ASSERT(object != nullptr, "isl failed"); }
  Held(const Held& other) : object_(other.object_ == nullptr ? nullptr : Copy(other.object_)) {}
  Held(Held&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Held& operator=(Held other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Held() {
    if (object_ != nullptr) Free(object_);
  }
  [[nodiscard]] T* get() const { return object_; }
  [[nodiscard]] T* copy() const { return Copy(object_); }

 private:
  T* object_ = nullptr;
};
isl_union_map* free_map(isl_union_map* m) { return isl_union_map_free(m); }
isl_union_map* copy_map(isl_union_map* m) { return isl_union_map_copy(m); }
isl_union_set* free_set(isl_union_set* s) { return isl_union_set_free(s); }
isl_union_set* copy_set(isl_union_set* s) { return isl_union_set_copy(s); }
using IslMap = Held<isl_union_map, free_map, copy_map>;
using IslSet = Held<isl_union_set, free_set, copy_set>;

std::string upper(std::string name) {
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

bool empty(const IslMap& r) {
  const isl_bool is = isl_union_map_is_empty(r.get());
  FUSELINE_ASSERT(is != isl_bool_error, "isl failed");
  return is == isl_bool_true;
}

IslMap both(IslMap a, const IslMap& b) { return IslMap(isl_union_map_union(a.copy(), b.copy())); }

IslMap common(const IslMap& a, const IslMap& b) {
  return IslMap(isl_union_map_intersect(a.copy(), b.copy()));
}

IslMap without(const IslMap& a, const IslMap& b) {
  return IslMap(isl_union_map_subtract(a.copy(), b.copy()));
}

// IslSet of a that touch what iterations of b touch.
IslMap meeting(const IslMap& a, const IslMap& b) {
  return IslMap(isl_union_map_apply_range(a.copy(), isl_union_map_reverse(b.copy())));
}

std::string text_of(const IslMap& r) {
  char* text = isl_union_map_to_str(r.get());
  FUSELINE_ASSERT(text != nullptr, "isl failed");
  std::string out = text;
  std::free(text);  // NOLINT: isl allocates with malloc
  return out;
}

// "[M, N, K] -> { store[m, n] -> [m, 0] : 0 <= m < M }" is printed by its pair of iterations alone.
BrokenDependence first_of(const IslMap& broken) {
  const IslMap one(
      isl_union_map_from_map(isl_map_from_basic_map(isl_union_map_sample(broken.copy()))));
  const std::string text = text_of(one);
  const std::size_t begin = text.find('{');
  const std::size_t end = text.rfind('}');
  if (begin == std::string::npos || end == std::string::npos) return {text};
  return {text.substr(begin + 2, end - begin - 3)};
}

}  // namespace

struct NestSets::Sets {
  explicit Sets(const LoopNest& of) : nest(of), ctx(isl_ctx_alloc()) {
    isl_options_set_on_error(ctx, ISL_ON_ERROR_CONTINUE);
    std::vector<std::string> sizes;
    for (const Loop& loop : nest.loops) sizes.push_back(upper(loop.name));
    parameters = fmt::format("[{}] -> ", fmt::join(sizes, ", "));
    domain = IslSet(isl_union_set_empty(isl_space_params_alloc(ctx, 0)));
    const IslMap none = relation("{ }");
    reads = none;
    writes = none;
    sums = none;
    std::vector<std::string> own;
    for (std::size_t i = 0; i < nest.statements.size(); ++i) {
      const NestStatement& s = nest.statements[i];
      domain = IslSet(isl_union_set_union(
          domain.copy(),
          isl_union_set_read_from_str(
              ctx, fmt::format("{}{{ {} : {} }}", parameters, instance(s), bounds(s)).c_str())));
      for (const NestAccess& a : s.accesses) {
        const std::size_t colon = a.elements.find(':');
        const IslMap r = relation(fmt::format(
            "{{ {} -> {}[{}] : {}{} }}", instance(s), a.array, a.elements.substr(0, colon),
            bounds(s), colon == std::string::npos ? "" : " and" + a.elements.substr(colon + 1)));
        if (a.write) {
          writes = both(writes, r);
          if (s.sums) sums = both(sums, r);
        }
        // A sum reads what it adds to.
        if (!a.write || s.sums) reads = both(reads, r);
      }
      own.push_back(fmt::format("{} -> [{}, {}]", instance(s), i, padded(s)));
    }
    order = relation(fmt::format("{{ {} }}", fmt::join(own, "; ")));
    order = IslMap(isl_union_map_intersect_domain(order.copy(), domain.copy()));
    IslMap pairs =
        both(both(meeting(writes, reads), meeting(reads, writes)), meeting(writes, writes));
    const IslMap earlier(isl_union_map_lex_lt_union_map(order.copy(), order.copy()));
    dependences = common(pairs, earlier);
    for (const NestStatement& s : nest.statements)
      if (s.sums) {
        const IslMap terms = relation(
            fmt::format("{{ {} -> {}[{}] }}", instance(s), s.name, fmt::join(primed(s), ", ")));
        dependences = without(dependences, terms);
      }
    dependences = IslMap(isl_union_map_coalesce(dependences.copy()));
  }
  Sets(const Sets&) = delete;
  Sets& operator=(const Sets&) = delete;
  ~Sets() {
    for (IslMap* r : {&reads, &writes, &sums, &order, &dependences}) *r = IslMap();
    domain = IslSet();
    isl_ctx_free(ctx);
  }

  [[nodiscard]] IslMap relation(const std::string& text) const {
    return IslMap(isl_union_map_read_from_str(ctx, (parameters + text).c_str()));
  }

  static std::string instance(const NestStatement& s) {
    return fmt::format("{}[{}]", s.name, fmt::join(s.loops, ", "));
  }
  static std::vector<std::string> primed(const NestStatement& s) {
    std::vector<std::string> out;
    for (const std::string& loop : s.loops) out.push_back(loop + "_");
    return out;
  }
  static std::string bounds(const NestStatement& s) {
    std::vector<std::string> out;
    for (const std::string& loop : s.loops)
      out.push_back(fmt::format("0 <= {} < {}", loop, upper(loop)));
    return fmt::format("{}", fmt::join(out, " and "));
  }
  // The statement's loops as coordinates that all statements have.
  [[nodiscard]] std::string padded(const NestStatement& s) const {
    std::vector<std::string> out;
    for (const Loop& loop : nest.loops) out.push_back(has(s, loop.name) ? loop.name : "0");
    return fmt::format("{}", fmt::join(out, ", "));
  }
  static bool has(const NestStatement& s, const std::string& loop) {
    return std::ranges::find(s.loops, loop) != s.loops.end();
  }
  [[nodiscard]] std::size_t place(const NestStatement& s) const {
    return static_cast<std::size_t>(&s - nest.statements.data());
  }
  // Whether a statement before it has the loop: then its tile is the last one.
  [[nodiscard]] bool comes_behind(const NestStatement& s, const std::string& loop) const {
    for (std::size_t i = 0; i < place(s); ++i)
      if (has(nest.statements[i], loop)) return true;
    return false;
  }

  // Coordinates of the tile that an iteration lies in.
  [[nodiscard]] std::vector<std::string> tile_of(const NestStatement& s,
                                                 const TileOrder& tiles) const {
    std::vector<std::string> out;
    for (const TileOrder::Cut& cut : tiles.order) {
      if (cut.edge <= 0)
        out.emplace_back("0");
      else if (has(s, cut.loop))
        out.push_back(fmt::format("floor({}/{})", cut.loop, cut.edge));
      else if (comes_behind(s, cut.loop))
        out.push_back(fmt::format("floor(({} - 1)/{})", upper(cut.loop), cut.edge));
      else
        out.emplace_back("0");
    }
    return out;
  }
  [[nodiscard]] IslMap tiles_of(const TileOrder& tiles, bool then_inside) const {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < nest.statements.size(); ++i) {
      const NestStatement& s = nest.statements[i];
      std::string text = fmt::format("{}", fmt::join(tile_of(s, tiles), ", "));
      if (then_inside) text += fmt::format("{}{}, {}", text.empty() ? "" : ", ", i, padded(s));
      all.push_back(fmt::format("{} -> [{}]", instance(s), text));
    }
    const IslMap map = relation(fmt::format("{{ {} }}", fmt::join(all, "; ")));
    return IslMap(isl_union_map_intersect_domain(map.copy(), domain.copy()));
  }

  LoopNest nest;
  isl_ctx* ctx;
  std::string parameters;
  IslSet domain;
  IslMap reads, writes, sums, order, dependences;
};

NestSets::NestSets(const LoopNest& nest) : sets_(std::make_unique<Sets>(nest)) {}
NestSets::~NestSets() = default;
NestSets::NestSets(NestSets&&) noexcept = default;
NestSets& NestSets::operator=(NestSets&&) noexcept = default;

std::string NestSets::dependences() const { return text_of(sets_->dependences); }

std::optional<BrokenDependence> NestSets::broken_by(const TileOrder& tiles) const {
  const IslMap schedule = sets_->tiles_of(tiles, true);
  const IslMap late(isl_union_map_lex_ge_union_map(schedule.copy(), schedule.copy()));
  const IslMap broken = common(sets_->dependences, late);
  if (empty(broken)) return std::nullopt;
  return first_of(broken);
}

std::optional<BrokenDependence> NestSets::crosses(const TileOrder& tiles) const {
  const IslMap tile = sets_->tiles_of(tiles, false);
  // Terms of one sum in two tiles cross as well: who adds them up would have to wait.
  IslMap shared = meeting(sets_->sums, sets_->sums);
  const IslMap pairs = both(sets_->dependences, shared);
  const IslMap broken = without(pairs, meeting(tile, tile));
  if (empty(broken)) return std::nullopt;
  return first_of(broken);
}

bool NestSets::footprint_is_rectangle(const std::string& array) const {
  const Sets& s = *sets_;
  // A tile is [m0, m0 + Tm) of each loop; its begin and edge are parameters.
  std::vector<std::string> parameters, bounds;
  for (const Loop& loop : s.nest.loops) {
    parameters.push_back(loop.name + "0");
    parameters.push_back("T" + loop.name);
  }
  for (const NestStatement& statement : s.nest.statements) {
    std::vector<std::string> inside;
    for (const std::string& loop : statement.loops)
      inside.push_back(fmt::format("{0}0 <= {0} < {0}0 + T{0}", loop));
    for (const NestAccess& a : statement.accesses) {
      if (a.array != array) continue;
      const std::size_t colon = a.elements.find(':');
      std::string sizes;
      for (const Loop& loop : s.nest.loops) sizes += ", " + upper(loop.name);
      const std::string text =
          fmt::format("[{}{}] -> {{ {} -> {}[{}] : {}{} }}", fmt::join(parameters, ", "), sizes,
                      Sets::instance(statement), a.array, a.elements.substr(0, colon),
                      fmt::join(inside, " and "),
                      colon == std::string::npos ? "" : " and" + a.elements.substr(colon + 1));
      isl_set* touched = isl_map_range(isl_map_read_from_str(s.ctx, text.c_str()));
      FUSELINE_ASSERT(touched != nullptr, "isl failed");
      // The smallest rectangle around it: each coordinate by itself.
      isl_set* around = isl_set_universe(isl_set_get_space(touched));
      const isl_size dims = isl_set_dim(touched, isl_dim_set);
      for (isl_size d = 0; d < dims; ++d) {
        isl_set* one = isl_set_copy(touched);
        const auto at = static_cast<unsigned>(d);
        one = isl_set_eliminate(one, isl_dim_set, at + 1, static_cast<unsigned>(dims) - at - 1);
        one = isl_set_eliminate(one, isl_dim_set, 0, at);
        around = isl_set_intersect(around, one);
      }
      const isl_bool equal = isl_set_is_equal(touched, around);
      const isl_bool whole = isl_set_is_params(touched);
      isl_set_free(touched);
      isl_set_free(around);
      FUSELINE_ASSERT(equal != isl_bool_error && whole != isl_bool_error, "isl failed");
      if (equal != isl_bool_true) return false;
    }
  }
  return true;
}

std::int64_t NestSets::footprint(const std::string& array, const TileOrder& tile) const {
  const Sets& s = *sets_;
  IslMap touched = both(s.reads, s.writes);
  std::vector<std::string> fixed, sizes;
  for (const Loop& loop : s.nest.loops) {
    std::int64_t end = loop.size;
    for (const TileOrder::Cut& cut : tile.order)
      if (cut.loop == loop.name && cut.edge > 0) end = std::min(end, cut.edge);
    fixed.push_back(fmt::format("{} = {}", upper(loop.name), end));
    sizes.push_back(upper(loop.name));
  }
  isl_set* values = isl_set_read_from_str(
      s.ctx,
      fmt::format("[{}] -> {{ : {} }}", fmt::join(sizes, ", "), fmt::join(fixed, " and ")).c_str());
  touched = IslMap(isl_union_map_intersect_params(touched.copy(), values));
  std::int64_t count = 0;
  isl_union_set* range = isl_union_map_range(touched.copy());
  isl_set_list* sets = isl_union_set_get_set_list(range);
  isl_union_set_free(range);
  for (isl_size i = 0; i < isl_set_list_n_set(sets); ++i) {
    isl_set* one = isl_set_list_get_set(sets, i);
    if (isl_set_get_tuple_name(one) == array) {
      one = isl_set_project_out(one, isl_dim_param, 0,
                                static_cast<unsigned>(isl_set_dim(one, isl_dim_param)));
      isl_val* elements = isl_set_count_val(one);
      FUSELINE_ASSERT(elements != nullptr, "isl failed");
      count += isl_val_get_num_si(elements);
      isl_val_free(elements);
    }
    isl_set_free(one);
  }
  isl_set_list_free(sets);
  return count;
}

}  // namespace fuseline

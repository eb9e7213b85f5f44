#include "cuda/emit/epilogue_source.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/early_loads.h"
#include "cuda/emit/gathered_groups.h"
#include "cuda/emit/long_code.h"
#include "cuda/emit/names.h"
#include "cuda/emit/stream_fields.h"
#include "cuda/emit/widths.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/placement.h"
#include "model/primitives/values.h"

namespace fuseline::cuda {

namespace {

constexpr int kWarps = 8;                 // of a tile of 128 rows
constexpr int kMostColumnReductions = 4;  // most_column_reductions of kernels/epilogue/place.cuh

// A value that statements can name.
struct Known {
  std::string text{};
  int part = -1;  // index into the parts; -1: the whole width
};

class Emitter final : public EpilogueCode {
 public:
  Emitter(const Graph& graph, const Program& program)
      : graph_(graph), program_(program), parts_(parts_of(program)), values_(analyse(program)) {
    FUSELINE_ASSERT(std::holds_alternative<GemmMainloop>(program.mainloop),
                    "only GEMM programs have epilogues");
  }

  EpilogueSource run(const std::string& struct_name, int slab_groups) {
    source_.needs = epilogue_needs(program_, graph_);
    if (slab_groups > 0) source_.needs.slab_groups = slab_groups;
    known_[0] = ahead_.known[0] = {"y"};
    for (Names* names : {&taken_, &ahead_.taken})
      for (const char* name : {"y", "p"}) names->unique(name);
    // Loads stand where they are wanted: loaded_ remembers them until then.
    for (const Primitive& primitive : program_.body)
      if (is_load(primitive)) loaded_[primitive.defines().front()] = &primitive;
    std::vector<std::map<Value, Known>> outer;  // names of a scope end with it
    in_order_of_source(
        parts_,
        [&](int part) {
          outer.push_back(known_);
          enter(part);
        },
        [&](std::size_t i) {
          if (is_load(program_.body[i])) return;
          program_.body[i].epilogue(*this);
          if (stores_tile(program_.body[i])) forget_tiles();
        },
        [&](int part) {
          known_ = std::move(outer.back());
          outer.pop_back();
          leave(part);
        });
    return finish(struct_name);
  }

  // ---- what primitives write with ----

  std::string use(Value v) override {
    if (const auto it = known_.find(v); it != known_.end()) return it->second.text;
    const auto load = loaded_.find(v);
    FUSELINE_ASSERT(load != loaded_.end(), "values are defined before they are used");
    load->second->epilogue(*this);
    return known_.at(v).text;
  }
  [[nodiscard]] Form form(Value v) const override { return values_.form(v); }
  [[nodiscard]] int each(Value v) const override { return each_of(values_.width(v)); }
  [[nodiscard]] std::string place() const override { return place_of(part_); }
  [[nodiscard]] bool within_slab() const override { return parts_.begin(part_) % kSlabCols != 0; }

  void device_function(const std::string& text) override {
    if (functions_.find(text) == std::string::npos) functions_ += text + "\n";
  }
  void line(const std::string& text) override {
    body_ += std::string(static_cast<std::size_t>(indent_), ' ') + text + "\n";
  }
  void define(Value v, const std::string& code) override {
    name(v, variable(wanted_name(v), code));
  }
  std::string variable(const std::string& wanted, const std::string& code) override {
    const std::string name = taken_.unique(wanted);
    line(fmt::format("const auto {} = {};", name, code));
    return name;
  }
  void name(Value v, const std::string& text) override { known_[v] = {text, part_}; }
  void alias(Value out, Value in) override { name(out, use(in)); }

  void load(Value out, const Access& access) override {
    const Operand& from = access.operand;
    if (access.reach == Reach::tile) {
      if (size_of(dtype(from)) != 2) refuse("tiles that it loads of numbers that have no 16 bits");
      std::string& known = tile_fields_[out];
      if (known.empty()) {
        Field& f = field(FieldKind::tile_in, from);
        f.slot = tile_slots_;
        f.each = each_of(from.cols);
        f.begin = parts_.begin(part_);
        tile_slots_ += f.each == 4 ? 2 : 1;
        known = f.name;
      }
      define(out, fmt::format("load_tile(p.{}, {})", known, place()));
    } else if (access.reach == Reach::col_numbers) {
      Field& f = field(FieldKind::cols_in, from);
      if (each_of(from.cols) != 2) refuse("vectors that are not as long as the product is wide");
      f.slot = col_slots_++;
      f.begin = parts_.begin(part_);
      define(out, fmt::format("load_cols(p.{}, {})", f.name, place()));
    } else if (access.reach == Reach::row_numbers) {
      row_vector(out, fmt::format("load_rows(p.{}, place)", field(FieldKind::rows_in, from).name));
    } else if (access.reach == Reach::table) {
      if (from.cols % 2 != 0 && from.cols != parts_.cols(part_))
        refuse("tables of an odd number of columns that repeat");
      std::string& f = table_fields_[out];
      if (f.empty()) f = field(FieldKind::table_in, from).name;
      if (access.period > 0)
        define(out, fmt::format("load_table_part<{}>(p.{}, {}, {:#.9g}F)", access.period, f,
                                place(), access.rest));
      else if (loads_vectors(from))
        define(out, table_of(out, from, f));
      else
        define(out, fmt::format("load_table<{}, {}>(p.{}, {})", batched(), from.cols, f, place()));
    } else if (access.reach == Reach::sequence_rows) {
      Field& f = field(FieldKind::sequence_in, from);
      f.tokens = access.tokens;
      define(out, fmt::format("load_sequence<{}>(p.{}, {})", each_of(from.cols), f.name, place()));
    } else {
      refuse("a load of other rows");
    }
  }

  [[nodiscard]] bool batched() const { return std::get<GemmMainloop>(program_.mainloop).batch > 1; }
  // Whether a table's rows, and the slabs of the part that wants it, begin where vectors do.
  [[nodiscard]] bool loads_vectors(const Operand& table) const {
    return dtype(table) != Dtype::fp32 && table.cols % kVectorCols == 0 &&
           moves_vectors(graph_, table) && parts_.begin(part_) % kVectorCols == 0;
  }
  // The pass ahead loads on the spot.
  std::string table_of(Value out, const Operand& table, const std::string& of_params) {
    const std::string load = fmt::format("load_table_vectors<{}, {}>(p.{}, {})", batched(),
                                         table.cols, of_params, place());
    const bool early = !in_pass_ && !source_.needs.late_tables;
    return fmt::format("table_of<{}>({})", element_name(dtype(table)),
                       early ? early_.load(out, wanted_name(out), parts_, part_, load) : load);
  }

  // Rows are the same for every slab of the tile.
  void row_vector(Value out, const std::string& code) override {
    const std::string member = state("RowVector", wanted_name(out));
    begin_ += fmt::format("    state.{} = {};\n", member, code);
    known_[out] = rows_[out] = {"state." + member, -1};
  }

  std::string parameter(const Access& access, Value stored) override {
    switch (access.reach) {
      case Reach::tile: {
        const bool apart = !batched() && access.operand.at.run > 1;
        Field& f = field(apart ? FieldKind::tile_out_runs : FieldKind::tile_out, access.operand);
        f.each = each(stored);
        return f.name;
      }
      case Reach::row_numbers:
        return field(access.store ? FieldKind::rows_out : FieldKind::rows_in, access.operand).name;
      case Reach::partials:
        return field(FieldKind::partials, access.operand).name;
      default:
        refuse("an operand of this kind");
    }
  }
  std::string groups_parameter(const Access& access) override {
    return field(FieldKind::groups_out, access.operand).name;
  }
  std::string state(const std::string& type, const std::string& wanted) override {
    const std::string member = state_names_.unique(wanted);
    // What the pass ahead has gathered is only read.
    if (type != "RowVector" && !type.starts_with("GroupState")) carries_ = true;
    state_ += fmt::format("    {} {};\n", type, member);
    return member;
  }
  int column_reduction(int each) override {
    scratch_ = std::max(scratch_, kWarps * 32 * each * 4);
    if (column_reductions_ >= kMostColumnReductions) refuse("so many sums down columns");
    return column_reductions_++;
  }
  [[nodiscard]] std::int64_t slab_cols() const override {
    return kColsOfGroup * source_.needs.slab_groups;
  }
  void gather_group(Value out, Value in, const char* reducer, std::int64_t group) override {
    FUSELINE_ASSERT(each(in) == 2 && parts_.begin(part_) % group == 0,
                    program_.name + ": groups of the accumulator's columns");
    const std::string member =
        state(fmt::format("GroupState<{}, {}>", reducer, group), wanted_name(out));
    source_.gathered_cols = std::lcm(source_.gathered_cols, group);
    gather(in, member);
    define(out, fmt::format("gathered({}, state.{})", place(), member));
  }
  [[noreturn]] void refuse(std::string_view primitive) const override {
    throw MissingError(
        fmt::format("program {}: {} in the epilogue of a product has no kernel for a real GPU yet",
                    program_.name, primitive));
  }

 private:
  // ---- the pass ahead ----

  // What is written into the function that all slabs run before the epilogue's own.
  struct Pass {
    std::string text{};
    std::map<Value, Known> known{};
    Names taken{};
  };
  void exchange(Pass& pass) {
    std::swap(body_, pass.text);
    std::swap(known_, pass.known);
    std::swap(taken_, pass.taken);
  }

  // Computes `in` there once more, in the scopes of its part, and sums it up.
  void gather(Value in, const std::string& member) {
    std::vector<int> path;
    for (int p = part_; p >= 0; p = parts_.parts[static_cast<std::size_t>(p)].parent)
      path.insert(path.begin(), p);
    const std::set<Value> wanted = needed_for(program_, in);
    const auto make_values_of = [&](int part) {
      for (std::size_t i = 0; i < program_.body.size(); ++i) {
        const Primitive& p = program_.body[i];
        if (parts_.home[i] != part || p.uses().empty() || p.defines().empty()) continue;
        const Value made = p.defines().front();
        if (wanted.contains(made) && !known_.contains(made)) p.epilogue(*this);
      }
    };
    const int here = std::exchange(part_, -1);
    const int indent = std::exchange(indent_, 4);
    in_pass_ = true;
    exchange(ahead_);
    known_.insert(rows_.begin(), rows_.end());
    make_values_of(-1);
    const std::map<Value, Known> whole = known_;
    for (const int part : path) {
      enter(part);
      make_values_of(part);
    }
    line(fmt::format("gather_group({}, state.{}, {});", place(), member, use(in)));
    while (part_ >= 0) leave(part_);
    known_ = whole;
    exchange(ahead_);
    in_pass_ = false;
    known_.insert(rows_.begin(), rows_.end());
    part_ = here;
    indent_ = indent;
  }

  // ---- the scopes ----

  void enter(int part) {
    part_ = part;
    const Part& p = parts_.parts[static_cast<std::size_t>(part)];
    line(fmt::format("const auto {} = columns({}, {}, {});", p.name, place_of(p.parent), p.begin,
                     p.cols));
    const std::int64_t end = end_of_sums(part);
    line(end > p.cols ? fmt::format("if (meets({}, {})) {{", p.name, end)
                      : fmt::format("if (meets({})) {{", p.name));
    indent_ += 2;
  }
  // The column of a part at which the last block of its sums along rows ends, if no slab that meets
  // the part need reach it; else 0.
  [[nodiscard]] std::int64_t end_of_sums(int part) const {
    constexpr std::int64_t kLeastSlab = 32;
    const std::int64_t begin = parts_.begin(part);
    std::int64_t end = 0;
    for (std::size_t i = 0; i < program_.body.size(); ++i) {
      const auto* sum = program_.body[i].as<TileReduce>();
      int home = sum != nullptr && sum->axis == Axis::rows ? parts_.home[i] : -1;
      if (home < 0) continue;
      const std::int64_t block = partial_tile * parts_.cols(home) / values_.width(sum->in);
      const std::int64_t cols = parts_.begin(home) + parts_.cols(home);
      if (ceil_div(cols, kLeastSlab) * kLeastSlab == ceil_div(cols, block) * block) continue;
      while (home >= 0 && home != part) home = parts_.parts[static_cast<std::size_t>(home)].parent;
      if (home == part) end = std::max(end, ceil_div(cols, block) * block - begin);
    }
    return end;
  }
  void leave(int part) {
    indent_ -= 2;
    line("}");
    known_.insert(rows_.begin(), rows_.end());
    part_ = parts_.parts[static_cast<std::size_t>(part)].parent;
  }

  // ---- values and places ----

  [[nodiscard]] static bool stores_tile(const Primitive& primitive) {
    return std::ranges::any_of(primitive.accesses(), [](const Access& access) {
      return access.store && access.reach == Reach::tile;
    });
  }
  // Shared memory has what was loaded until the slab ends. What is used again behind a store is
  // read again, so that no register keeps it meanwhile: the gradients of activations would spill.
  void forget_tiles() {
    for (const auto& [value, field] : tile_fields_) known_.erase(value);
  }

  std::string wanted_name(Value v) const {
    const auto i = static_cast<std::size_t>(v);
    if (i < program_.names.size() && !program_.names[i].empty()) return program_.names[i];
    return fmt::format("v{}", v);
  }

  [[nodiscard]] std::string place_of(int part) const {
    return part < 0 ? "slab" : parts_.parts[static_cast<std::size_t>(part)].name;
  }
  [[nodiscard]] int each_of(std::int64_t cols) const {
    return fuseline::each_of(cols, parts_.cols(part_));
  }

  Field& field(FieldKind kind, const Operand& operand) {
    fields_.push_back({kind, field_names_.unique(graph_.tensor(operand.tensor).name), operand});
    return fields_.back();
  }
  [[nodiscard]] Dtype dtype(const Operand& o) const { return graph_.tensor(o.tensor).dtype; }

  // ---- the struct ----

  // The mainloop may hand the product over as it lies in the threads that multiplied.
  [[nodiscard]] bool only_stores() const {
    return source_.needs.only_stores && fields_.front().kind == FieldKind::tile_out &&
           size_of(dtype(fields_.front().operand)) == ElementSize(2);
  }

  EpilogueSource finish(const std::string& struct_name) {
    FUSELINE_ASSERT(
        source_.needs.tile_loads == tile_slots_ && source_.needs.col_loads == col_slots_,
        "the slots that the tile's choice reckoned with");
    std::string& t = source_.text;
    t = functions_ + fmt::format("struct {} {{\n  struct Params {{\n", struct_name);
    std::string fetch;
    for (const Field& f : fields_) {
      t += fmt::format("    {} {};\n", type_of(graph_, f), f.name);
      if (f.kind == FieldKind::tile_in || f.kind == FieldKind::cols_in)
        fetch += fmt::format("    f(p.{});\n", f.name);
    }
    t += "  };\n  // What a thread keeps for its rows from slab to slab.\n  struct State {\n" +
         state_ + "  };\n";
    t += fmt::format(
        "  static constexpr int tile_loads = {}, col_loads = {}, scratch_bytes = {}, slab_groups = "
        "{};\n\n",
        tile_slots_, col_slots_, scratch_, source_.needs.slab_groups);
    if (column_reductions_ > 0)
      t += fmt::format("  static constexpr int column_sums = {};\n", column_reductions_);
    const bool rolls = scratch_ > 0 || has_long_code(program_, source_.needs);
    if (rolls) t += "  static constexpr bool rolls = true;\n";
    if (rolls && carries_) t += "  static constexpr bool carries = true;\n";
    source_.needs.only_stores = only_stores();
    if (only_stores()) t += "  static constexpr bool only_stores = true;\n";
    t += "  template <class F>\n  static FUSELINE_DEVICE void fetch(const Params& p, F&& f) {\n" +
         fetch + "  }\n";
    t += "  static FUSELINE_DEVICE void begin(const Params& p, State& state, const SlabPlace& "
         "place) "
         "{\n" +
         begin_ + "  }\n";
    if (!ahead_.text.empty())
      t += "  static constexpr bool gathers = true;\n  template <class Slab, class Tile>\n  static "
           "FUSELINE_DEVICE void gather(const Params& p, State& state, const Slab& slab,\n"
           "                                     const Tile& y) {\n" +
           ahead_.text + "  }\n";
    if (!early_.empty()) t += early_.source();
    t += fmt::format(
        "  template <class Slab, class Tile{}>\n  static FUSELINE_DEVICE void run(const Params& p, "
        "State& state, const Slab& slab,\n                                  const Tile& y{}) {{\n",
        early_.empty() ? "" : ", class Loaded", early_.empty() ? "" : ", const Loaded& early");
    t += body_ + "  }\n};\n";
    source_.fields = std::move(fields_);
    return std::move(source_);
  }

  const Graph& graph_;
  const Program& program_;
  EpilogueParts parts_;
  ValueAnalysis values_;
  std::map<Value, const Primitive*> loaded_;
  std::map<Value, Known> known_;
  std::map<Value, Known> rows_;  // of the State: known in every scope
  std::map<Value, std::string> table_fields_, tile_fields_;
  int part_ = -1;
  int indent_ = 4;
  Names taken_, field_names_, state_names_;
  Pass ahead_;
  bool in_pass_ = false;  // now
  EarlyLoads early_;
  std::vector<Field> fields_;
  std::string functions_, state_, begin_, body_;
  int tile_slots_ = 0, col_slots_ = 0, scratch_ = 0;
  bool carries_ = false;  // something from slab to slab
  int column_reductions_ = 0;
  EpilogueSource source_;
};

}  // namespace

EpilogueSource epilogue_source(const Graph& graph, const Program& program,
                               const std::string& struct_name, int slab_groups) {
  return Emitter(graph, program).run(struct_name, slab_groups);
}

}  // namespace fuseline::cuda

#include "cuda/emit/epilogue_source.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/device_functions.h"
#include "cuda/emit/names.h"
#include "sim/kernels/epilogue_parts.h"

namespace fuseline::cuda {

namespace {

constexpr int kWarps = 8;  // of a tile of 128 rows
constexpr std::int64_t kSlabCols = 64;
constexpr int kMostColumnReductions = 4;  // most_column_reductions of kernels/epilogue/place.cuh

// Which thread elements a value has.
enum class Form : std::uint8_t { tile, row, col };

struct Known {
  std::string text{};  // how the body names it
  Form form = Form::tile;
  int each = 2;
  int part = -1;  // index into the parts; -1: the whole width
};

class Emitter {
 public:
  Emitter(const Graph& graph, const Program& program)
      : graph_(graph), program_(program), parts_(parts_of(program)) {
    const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
    FUSELINE_ASSERT(gemm != nullptr, "only GEMM programs have epilogues");
    N_ = gemm->N;
  }

  EpilogueSource run(const std::string& struct_name) {
    known_[0] = {"y", Form::tile, 2, -1};
    taken_.unique("y");
    taken_.unique("p");
    // Loads stand where they are wanted: loaded_ remembers them until then.
    for (const Primitive& primitive : program_.body) {
      if (const auto* t = std::get_if<LoadTile>(&primitive)) loaded_[t->out] = &primitive;
      if (const auto* v = std::get_if<LoadVector>(&primitive)) loaded_[v->out] = &primitive;
      if (const auto* c = std::get_if<LoadTable>(&primitive)) loaded_[c->out] = &primitive;
    }
    emit_part(-1);
    return finish(struct_name);
  }

 private:
  // ---- the scopes ----

  // What a part needs, then the parts of it, each in a scope of its own.
  void emit_part(int part) {
    part_ = part;
    const auto outer = known_;  // names of a scope end with it
    if (part >= 0) {
      const Part& p = parts_.parts[static_cast<std::size_t>(part)];
      line(fmt::format("const auto {} = columns({}, {}, {});", p.name, place_of(p.parent), p.begin,
                       p.cols));
      line(fmt::format("if (meets({})) {{", p.name));
      indent_ += 2;
    }
    for (std::size_t i = 0; i < program_.body.size(); ++i) {
      if (parts_.home[i] == part) {
        std::visit([this](const auto& p) { emit(p); }, program_.body[i]);
      }
    }
    for (std::size_t i = 0; i < parts_.parts.size(); ++i)
      if (parts_.parts[i].parent == part) emit_part(static_cast<int>(i));
    if (part >= 0) {
      indent_ -= 2;
      line("}");
      known_ = outer;
      known_.insert(rows_.begin(), rows_.end());
      part_ = parts_.parts[static_cast<std::size_t>(part)].parent;
    }
  }

  // ---- values ----

  std::string wanted_name(Value v) const {
    const auto i = static_cast<std::size_t>(v);
    if (i < program_.names.size() && !program_.names[i].empty()) return program_.names[i];
    return fmt::format("v{}", v);
  }

  [[nodiscard]] std::string place_of(int part) const {
    return part < 0 ? "slab" : parts_.parts[static_cast<std::size_t>(part)].name;
  }
  [[nodiscard]] std::string place() const { return place_of(part_); }
  [[nodiscard]] std::int64_t part_cols() const {
    return part_ < 0 ? N_ : parts_.parts[static_cast<std::size_t>(part_)].cols;
  }
  // In accumulator columns from the result's first.
  [[nodiscard]] std::int64_t part_begin() const {
    std::int64_t begin = 0;
    for (int part = part_; part >= 0; part = parts_.parts[static_cast<std::size_t>(part)].parent)
      begin += parts_.parts[static_cast<std::size_t>(part)].begin;
    return begin;
  }

  const Known& use(Value v) {
    if (const auto it = known_.find(v); it != known_.end()) return it->second;
    const auto load = loaded_.find(v);
    FUSELINE_ASSERT(load != loaded_.end(), "values are defined before they are used");
    std::visit([this](const auto& p) { load_now(p); }, *load->second);
    return known_.at(v);
  }

  // How many columns of an operand a thread has in a group, where the part's accumulator has 2.
  [[nodiscard]] int each_of(std::int64_t cols) const {
    for (const int each : {1, 2, 4})
      if (cols * 2 == part_cols() * each) return each;
    FUSELINE_ASSERT(false, "operand widths are half, once or twice the accumulator's");
  }

  Field& field(FieldKind kind, const Operand& operand, const std::string& wanted) {
    fields_.push_back({kind, field_names_.unique(wanted), operand});
    return fields_.back();
  }
  [[nodiscard]] const std::string& tensor_name(const Operand& o) const {
    return graph_.tensor(o.tensor).name;
  }
  [[nodiscard]] Dtype dtype(const Operand& o) const { return graph_.tensor(o.tensor).dtype; }

  void line(const std::string& text) {
    body_ += std::string(static_cast<std::size_t>(indent_), ' ') + text + "\n";
  }
  // `const auto NAME = CODE;`
  void define(Value v, Known known, const std::string& code) {
    known.text = taken_.unique(wanted_name(v));
    known.part = part_;
    line(fmt::format("const auto {} = {};", known.text, code));
    known_[v] = std::move(known);
  }

  // ---- loads ----

  void load_now(const LoadTile& p) {
    FUSELINE_ASSERT(dtype(p.from) != Dtype::fp32, "an epilogue loads 16-bit tiles");
    const int each = each_of(p.from.cols);
    Field& f = field(FieldKind::tile_in, p.from, tensor_name(p.from));
    f.slot = tile_slots_;
    f.each = each;
    f.begin = part_begin();
    tile_slots_ += each == 4 ? 2 : 1;
    define(p.out, {.form = Form::tile, .each = each},
           fmt::format("load_tile(p.{}, {})", f.name, place()));
  }

  void load_now(const LoadVector& p) {
    if (p.axis == Axis::cols) {
      Field& f = field(FieldKind::cols_in, p.from, tensor_name(p.from));
      FUSELINE_ASSERT(each_of(p.from.cols) == 2, "vectors are as long as the accumulator is wide");
      f.slot = col_slots_++;
      f.begin = part_begin();
      define(p.out, {.form = Form::col}, fmt::format("load_cols(p.{}, {})", f.name, place()));
      return;
    }
    // Rows are the same for every slab of the tile: loaded before the mainloop.
    const Field& f = field(FieldKind::rows_in, p.from, tensor_name(p.from));
    const std::string member = state_names_.unique(wanted_name(p.out));
    state_ += fmt::format("    RowVector {};\n", member);
    begin_ += fmt::format("    state.{} = load_rows(p.{}, place);\n", member, f.name);
    known_[p.out] = rows_[p.out] = {"state." + member, Form::row, 0, -1};
  }

  void load_now(const LoadTable& p) {
    const auto found = table_fields_.find(p.out);
    const std::string name = found != table_fields_.end()
                                 ? found->second
                                 : field(FieldKind::table_in, p.from, tensor_name(p.from)).name;
    table_fields_[p.out] = name;
    define(p.out, {.form = Form::tile}, fmt::format("load_table(p.{}, {})", name, place()));
  }

  template <class Other>
  void load_now(const Other&) {
    FUSELINE_ASSERT(false, "only loads are delayed");
  }

  // ---- the body ----

  void emit(const LoadTile&) {}
  void emit(const LoadVector&) {}
  void emit(const LoadTable&) {}
  void emit(const Columns& p) {
    known_[p.out] = use(p.in);
    known_[p.out].part = part_;
  }

  void emit(const Map& p) {
    std::string arguments;
    Known result{.form = Form::row, .each = 0};
    for (const Value v : p.in) {
      const Known& in = use(v);
      arguments += (arguments.empty() ? "" : ", ") + in.text;
      result.each = std::max(result.each, in.form == Form::row ? 0 : in.each);
      if (in.form == Form::tile || (in.form == Form::col && result.form == Form::row))
        result.form = in.form;
    }
    if (p.fn == MapFn::scale_by_constant || p.fn == MapFn::add_constant)
      arguments += fmt::format(", {:#.9g}F", p.constant);
    define(p.out, result, fmt::format("{}({})", function_of(p.fn), arguments));
  }

  void emit(const PairMap& p) {
    FUSELINE_ASSERT(p.distance == 1, "a GEMM tile has adjacent pairs only");
    std::string arguments;
    for (const Value v : p.in) arguments += (arguments.empty() ? "" : ", ") + use(v).text;
    const int each = use(p.in.at(0)).each;
    switch (p.fn) {
      case PairFn::rope:
        define(p.out.at(0), {.each = each}, fmt::format("rope({})", arguments));
        return;
      case PairFn::rope_inverse:
        define(p.out.at(0), {.each = each}, fmt::format("rope_inverse({})", arguments));
        return;
      case PairFn::swiglu:
        define(p.out.at(0), {.each = each / 2}, fmt::format("swiglu({})", arguments));
        return;
      case PairFn::swiglu_backward: {
        const std::string both = taken_.unique("gradient");
        line(fmt::format("const auto {} = swiglu_backward({});", both, arguments));
        known_[p.out.at(0)] = {both + ".pairs", Form::tile, each, part_};
        if (p.out.size() > 1) known_[p.out[1]] = {both + ".again", Form::tile, each / 2, part_};
        return;
      }
    }
    FUSELINE_ASSERT(false, "unknown pair map");
  }

  void emit(const TileReduce& p) {
    const Known in = use(p.in);
    const Field& f = field(FieldKind::partials, p.partial, tensor_name(p.partial));
    const bool two = p.fn == ReduceFn::sum_and_squares;
    const char* first = reducer_of(p.fn);
    const char* second = two ? "SumSquares" : first;
    const std::string other = p.second >= 0 ? use(p.second).text : two ? in.text : "";
    if (p.axis == Axis::cols) {
      scratch_ = std::max(scratch_, kWarps * 32 * in.each * 4);
      const int numbers = other.empty() ? 1 : 2;
      line(fmt::format("reduce_cols<{}>({}, p.{}, {}, {}, 0, {});", first, place(), f.name, in.text,
                       numbers, column_reductions_++));
      if (!other.empty())
        line(fmt::format("reduce_cols<{}>({}, p.{}, {}, 2, 1, {});", second, place(), f.name, other,
                         column_reductions_++));
      FUSELINE_ASSERT(column_reductions_ <= kMostColumnReductions, program_.name);
      return;
    }
    const std::string a = reducer_state(first, f.name);
    if (other.empty()) {
      line(fmt::format("reduce_rows({}, p.{}, state.{}, {});", place(), f.name, a, in.text));
    } else {
      const std::string b = reducer_state(second, f.name);
      line(fmt::format("reduce_rows({}, p.{}, state.{}, state.{}, {}, {});", place(), f.name, a, b,
                       in.text, other));
    }
  }

  std::string reducer_state(const char* op, const std::string& wanted) {
    const std::string member = state_names_.unique(wanted);
    state_ += fmt::format("    RowState<{}> {};\n", op, member);
    return member;
  }

  void emit(const OnlineLogSumExp& p) {
    const Known in = use(p.in);
    const std::string targets = field(FieldKind::rows_in, p.targets, tensor_name(p.targets)).name;
    const Field& f = field(FieldKind::partials, p.partial, tensor_name(p.partial));
    const std::string member = state_names_.unique(f.name);
    state_ += fmt::format("    LogSumExpState {};\n", member);
    line(fmt::format("online_log_sum_exp({}, p.{}, p.{}, state.{}, {});", place(), f.name, targets,
                     member, in.text));
  }

  void emit(const StoreTile& p) {
    const Known in = use(p.in);
    FUSELINE_ASSERT(in.form == Form::tile, "an epilogue stores tiles as tiles");
    Field& f = field(FieldKind::tile_out, p.to, tensor_name(p.to));
    f.each = in.each;
    const bool across = part_begin() % kSlabCols != 0;
    FUSELINE_ASSERT(!(across && p.accumulate), "parts are stored, not added");
    const char* call = across ? "store_part" : "store_tile";
    line(fmt::format("{}(p.{}, {}, {});", p.accumulate ? "accumulate_tile" : call, f.name, place(),
                     in.text));
  }

  void emit(const StoreVector& p) {
    const Known in = use(p.in);
    FUSELINE_ASSERT(p.axis == Axis::rows && in.form == Form::row, "an epilogue stores row vectors");
    const Field& f = field(FieldKind::rows_out, p.to, tensor_name(p.to));
    line(fmt::format("if (slab.col == 0) store_rows(p.{}, {}, {});", f.name, place(), in.text));
  }

  template <class Other>
  void emit(const Other&) {
    FUSELINE_ASSERT(false, "no epilogue has this primitive");
  }

  // ---- the struct ----

  EpilogueSource finish(const std::string& struct_name) {
    source_.needs = epilogue_needs(program_);
    FUSELINE_ASSERT(
        source_.needs.tile_loads == tile_slots_ && source_.needs.col_loads == col_slots_,
        "the slots that the tile's choice reckoned with");
    std::string& t = source_.text;
    t = fmt::format("struct {} {{\n  struct Params {{\n", struct_name);
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
        "{};"
        "\n\n",
        tile_slots_, col_slots_, scratch_, source_.needs.slab_groups);
    t += "  template <class F>\n  static FUSELINE_DEVICE void fetch(const Params& p, F&& f) {\n" +
         fetch + "  }\n";
    t += "  static FUSELINE_DEVICE void begin(const Params& p, State& state, const SlabPlace& "
         "place) "
         "{\n" +
         begin_ + "  }\n";
    t += "  template <class Slab, class Tile>\n  static FUSELINE_DEVICE void run(const Params& p, "
         "State& state, "
         "const Slab& slab,\n                                  const Tile& y) {\n" +
         body_ + "  }\n};\n";
    source_.fields = std::move(fields_);
    return std::move(source_);
  }

  const Graph& graph_;
  const Program& program_;
  std::int64_t N_ = 0;
  EpilogueParts parts_;
  std::map<Value, const Primitive*> loaded_;
  std::map<Value, Known> known_;
  std::map<Value, Known> rows_;  // of the State: known in every scope
  std::map<Value, std::string> table_fields_;
  int part_ = -1;
  int indent_ = 4;
  Names taken_, field_names_, state_names_;
  std::vector<Field> fields_;
  std::string state_, begin_, body_;
  int tile_slots_ = 0, col_slots_ = 0, scratch_ = 0;
  int column_reductions_ = 0;
  EpilogueSource source_;
};

}  // namespace

EpilogueSource epilogue_source(const Graph& graph, const Program& program,
                               const std::string& struct_name) {
  return Emitter(graph, program).run(struct_name);
}

}  // namespace fuseline::cuda

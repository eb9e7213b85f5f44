#include "cuda/export/entry_program.h"

#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/primitives/tile_reduce.h"
#include "model/programs/known_functions.h"
#include "model/programs/legality.h"
#include "model/programs/own_plan.h"

namespace fuseline::cuda {

namespace {

std::vector<TensorId> made_by_the_layer_before(const Plan& plan) {
  std::vector<TensorId> wanted;
  for (std::size_t i = 0; i < plan.graph.tensors().size(); ++i) {
    const TensorId id{static_cast<std::int32_t>(i)};
    const Tensor& t = plan.graph.tensor(id);
    if (t.role == Role::input && plan.graph.with(Relation::carried_to_next_layer, id) &&
        !plan.block.find_tensor(t.name))
      wanted.push_back(id);
  }
  return wanted;
}

// How the layers' last kernel reduces what it stores to the tensor that is carried to `id`: squares
// of RMSNorm, sums and squares of LayerNorm.
std::string reduction_of(const Plan& plan, TensorId id) {
  const auto source = plan.graph.with(Relation::carried_to_next_layer, id);
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases)
      for (const Primitive& line : p.body)
        if (const auto* reduce = line.as<TileReduce>();
            reduce != nullptr && reduce->partial.tensor == *source)
          return word_of(reduce->fn);
  FUSELINE_ASSERT(false, "nothing makes " + plan.graph.tensor(*source).name);
}

[[noreturn]] void refuse_entry(const Plan& plan, const Tensor& t) {
  throw InputError(
      {.file = "command line",
       .field = "--policy",
       .value = plan.policy,
       .message =
           fmt::format("the first layer takes {}, for which no entry program is known", t.name),
       .allowed = "plans whose layers leave statistics of a norm, or a weighted output"});
}

// The text of the program, a line at a time.
class EntryText {
 public:
  explicit EntryText(const Plan& plan) : plan_(plan) {}

  void add(TensorId id) {
    const Tensor& t = plan_.graph.tensor(id);
    const Graph& made = plan_.preparation.graph;
    const auto known = made.find_tensor(t.name);
    const std::vector<OpId> by = known ? made.producers(*known) : std::vector<OpId>{};
    if (by.size() != 1) refuse_entry(plan_, t);
    const Op& op = made.op(by.front());
    const bool sums = op.kind == operators::row_stats_partial && op.reads.size() == 1;
    const bool weighted = op.kind == operators::mul_cols && op.reads.size() == 2;
    if (!sums && !weighted) refuse_entry(plan_, t);
    begin(made.tensor(op.reads[0].tensor));
    declare("output", t);
    if (sums) {
      lines_ += fmt::format("  store {} = {}(x)\n", shape(t), reduction_of(plan_, id));
      return;
    }
    const Tensor& gamma = made.tensor(op.reads[1].tensor);
    declare("weight", gamma);
    lines_ +=
        fmt::format("  g = load_cols {}\n  a = x * g\n  store {} = a\n", shape(gamma), shape(t));
  }

  [[nodiscard]] std::string text() const {
    return "fuse 1\n" + declared_ + "\nprogram entry\n" + lines_;
  }

 private:
  static std::string shape(const Tensor& t) {
    return fmt::format("{}[{}, {}]", t.name, t.rows, t.cols);
  }
  void declare(const char* role, const Tensor& t) {
    if (names_.insert(t.name).second)
      declared_ += fmt::format("{} {}, {}\n", role, shape(t), name_of(t.dtype));
  }
  void begin(const Tensor& x) {
    if (!lines_.empty()) return;
    declare("input", x);
    lines_ = fmt::format("  for each tile of [{}, {}]\n  x = load {}\n", x.rows, x.cols, shape(x));
  }

  const Plan& plan_;
  std::set<std::string> names_;
  std::string declared_, lines_;
};

}  // namespace

std::optional<EntryProgram> entry_program(const Plan& plan) {
  const std::vector<TensorId> wanted = made_by_the_layer_before(plan);
  if (wanted.empty()) return std::nullopt;
  EntryText entry(plan);
  EntryProgram out;
  for (const TensorId id : wanted) {
    entry.add(id);
    out.makes.insert(plan.graph.tensor(id).name);
  }
  const ProgramFile file = read_program_text(entry.text(), "entry");
  FUSELINE_ASSERT(file.readable() && check_programs(file).empty(),
                  "the entry program: " + entry.text());
  out.plan = whole_plan(file);
  return out;
}

}  // namespace fuseline::cuda

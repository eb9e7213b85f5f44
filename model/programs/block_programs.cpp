#include "model/programs/block_programs.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/data_files.h"
#include "base/error.h"
#include "model/config/config.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/prepare.h"
#include "model/programs/legality.h"
#include "model/programs/meaning.h"
#include "model/programs/own_plan.h"
#include "model/programs/resized.h"
#include "model/programs/rewritten.h"
#include "model/reference.h"
#include "model/rewrites/rewrite.h"

namespace fuseline {

namespace {

constexpr Bytes kLargestText{std::int64_t{16} << 20};
constexpr double kSame = 1e-9;  // sums of fp64 in another order

// What the operator of a program carries: its lines, and the operands that they move in the order
// of the operator's own.
struct OwnProgram {
  Program program;
  std::vector<Operand> reads, writes;
};

// Stands in a block's graph while a policy makes its plan; complete_programs() takes it apart. It
// is what a program of its own plan has beside its product, but a policy joins nothing with it.
Operator own_program() {
  Operator o = *own_program_kind();
  o.name = "own_program";
  o.reference = [](const Graph&, const Op& op, const TensorValues&, TensorValues&) {
    FUSELINE_ASSERT(false, op.name + ": the block's own operators are the reference");
  };
  o.alone = "is a program of its own";
  o.columns = ColumnOrder::lost;
  return o;
}
const Operator kOwnProgram = own_program();

std::string file_of(const BlockProgram& p) { return p.file->source->file; }

[[noreturn]] void refuse(const BlockProgram& p, const std::string& value, std::string message,
                         std::string allowed = {}, std::string nearest = {}) {
  throw InputError({.field = file_of(p),
                    .value = value,
                    .message = std::move(message),
                    .allowed = std::move(allowed),
                    .nearest = std::move(nearest)});
}

bool holds(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

std::set<TensorId> stored_by(const Plan& plan) {
  std::set<TensorId> stored;
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases)
      for (const Operand& o : stores(p)) stored.insert(o.tensor);
  return stored;
}

// Weights of products whose columns are pairs: rows of gate and up in turns, and so the columns of
// what is one for every column of the product.
std::vector<Interleaving> pairs_of(const Plan& plan) {
  std::vector<Interleaving> all;
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases) {
      const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop);
      if (gemm == nullptr || !gemm->interleaved) continue;
      for (const Operand& o : loads(p)) {
        const Tensor& t = plan.graph.tensor(o.tensor);
        if (t.role != Role::weight) continue;
        if (o == gemm->b)
          all.push_back({.tensor = t.name, .begin = 0, .count = t.rows, .group = t.rows});
        else if (t.rows == 1 && t.cols == gemm->N)
          all.push_back(
              {.tensor = t.name, .columns = true, .begin = 0, .count = t.cols, .group = t.cols});
      }
    }
  return all;
}

// One file's programs in the place of their operators.
class Placed {
 public:
  Placed(const Graph& block, const BlockProgram& program)
      : block_(block),
        program_(program),
        own_(program.file->plan),
        stored_(stored_by(own_)),
        moved_(own_.graph.tensors().size()) {}

  Graph run() {
    for (const std::string& name : program_.operators) check_operator(name);
    check_rest_of_block();
    check_pairs();
    std::size_t left = program_.operators.size();
    Graph made = replace_ops(block_, [&](const Op& op, Graph& to) {
      if (!holds(program_.operators, op.name)) return false;
      if (--left > 0) return true;
      for (std::size_t i = 0; i < moved_.size(); ++i)
        moved_[i] = tensor_of(TensorId{static_cast<std::int32_t>(i)}, to);
      for (const Kernel& k : own_.kernels)
        for (const Program& p : k.phases) add(p, op.site, to);
      return true;
    });
    std::vector<std::vector<OpId>> each;
    for (std::size_t i = 0; i < made.ops().size(); ++i)
      each.push_back({OpId{static_cast<std::int32_t>(i)}});
    if (!order_groups(made, each))
      refuse(program_, fmt::format("{}", fmt::join(program_.operators, ", ")),
             "other operators of the block need some of them and are needed by others",
             "operators that can run behind each other");
    return without_unused_tensors(made);
  }

 private:
  void check_operator(const std::string& name) const {
    const Op& op = block_.op(*block_.find_op(name));
    if (is_own_program(op)) refuse(program_, name, "is computed by another program already");
    if (op.kind->appends)
      refuse(program_, name, "writes to a cache, which programs of a block do not");
  }

  // Whether operators of the program alone write it.
  [[nodiscard]] bool made_here(TensorId id) const {
    const std::vector<OpId> makers = block_.producers(id);
    return !makers.empty() && std::ranges::all_of(makers, [&](OpId op) {
      return holds(program_.operators, block_.op(op).name);
    });
  }

  // What the operators make for others, a program has to store.
  void check_rest_of_block() const {
    for (const std::string& name : program_.operators)
      for (const Operand& w : block_.op(*block_.find_op(name)).writes) {
        const Tensor& t = block_.tensor(w.tensor);
        std::string reader = t.role == Role::activation ? "" : "whoever follows the block";
        for (const OpId id : block_.consumers(w.tensor))
          if (!holds(program_.operators, block_.op(id).name)) reader = block_.op(id).name;
        if (reader.empty()) continue;
        const auto own = own_.graph.find_tensor(t.name);
        if (!own || !stored_.contains(*own) || own_.graph.tensor(*own).role != Role::output)
          refuse(program_, t.name,
                 fmt::format("is made by {} and read by {}, and no program stores it as an output",
                             name, reader),
                 fmt::format("output {}[{}, {}], and a program that stores it", t.name, t.rows,
                             t.cols));
      }
  }

  // Reordered weights are for these programs alone.
  void check_pairs() const {
    for (const Interleaving& i : pairs_of(own_)) {
      const auto there = block_.find_tensor(i.tensor);
      if (!there) continue;  // which is refused by its name
      for (const OpId id : block_.consumers(*there))
        if (!holds(program_.operators, block_.op(id).name))
          refuse(program_, i.tensor,
                 fmt::format("has pairs of rows in the program, and {} reads it as it is",
                             block_.op(id).name));
    }
  }

  [[nodiscard]] TensorId tensor_of(TensorId own, Graph& to) const {
    const Tensor& t = own_.graph.tensor(own);
    const auto there = block_.find_tensor(t.name);
    if (!there) {
      if (stored_.contains(own) && t.role == Role::activation) return to.add_tensor(t);
      std::vector<std::string> names;
      for (const Tensor& b : block_.tensors()) names.push_back(b.name);
      refuse(program_, t.name, "the block has no such tensor", "a tensor of the block",
             nearest_name(t.name, names));
    }
    const Tensor& b = block_.tensor(*there);
    if (b.rows != t.rows || b.cols != t.cols || b.dtype != t.dtype)
      refuse(program_, t.name,
             fmt::format("is [{}, {}] in {}, and the block's is [{}, {}] in {}", t.rows, t.cols,
                         name_of(t.dtype), b.rows, b.cols, name_of(b.dtype)),
             "the same shape and number format, or another name for a tensor of the file's own");
    if (stored_.contains(own) && !made_here(*there))
      refuse(program_, t.name, "is stored, and no operator that the file computes makes it",
             "tensors of these operators, and activations with names of their own");
    if (!stored_.contains(own) && made_here(*there))
      refuse(program_, t.name,
             "is made by the operators that the file computes, and no program "
             "stores it");
    return *there;
  }

  void add(const Program& p, const std::string& site, Graph& to) const {
    OwnProgram carried{.program = p, .reads = {}, .writes = {}};
    const auto keep = [](std::vector<Operand>& all, const Operand& o) {
      if (std::ranges::find(all, o) == all.end()) all.push_back(o);
    };
    for (const Operand& o : stores(p)) keep(carried.writes, o);
    for (const Operand& o : loads(p))
      if (std::ranges::find(carried.writes, o) == carried.writes.end()) keep(carried.reads, o);
    Op op{.name = unused_name(p.name, to), .kind = kOwnProgram, .site = site};
    for (const auto& [from, into] :
         {std::pair{&carried.reads, &op.reads}, std::pair{&carried.writes, &op.writes}})
      for (Operand o : *from) {
        o.tensor = moved_[static_cast<std::size_t>(o.tensor.index)];
        into->push_back(o);
      }
    op.attributes = std::move(carried);
    to.add_op(std::move(op));
  }

  [[nodiscard]] std::string unused_name(const std::string& name, const Graph& to) const {
    const auto taken = [&](const std::string& n) {
      const auto of_block = block_.find_op(n);
      return to.find_op(n).has_value() || (of_block && !holds(program_.operators, n));
    };
    if (!taken(name)) return name;
    for (int i = 2;; ++i)
      if (std::string next = fmt::format("{}_{}", name, i); !taken(next)) return next;
  }

  const Graph& block_;
  const BlockProgram& program_;
  const Plan& own_;
  std::set<TensorId> stored_;
  std::vector<TensorId> moved_;
};

}  // namespace

bool SameMeaning::same() const { return difference <= kSame; }

bool is_own_program(const Op& op) { return op.kind == OpKind(kOwnProgram); }

std::shared_ptr<const ProgramFile> read_block_program(
    const std::string& path, const std::map<std::string, std::int64_t>& sizes) {
  auto file = std::make_shared<ProgramFile>(
      read_program_text(resized(read_input_file(path, kLargestText), sizes), path));
  for (const std::vector<Diagnosis>& wrong : {file->diagnoses, check_programs(*file)})
    if (!wrong.empty()) throw InputError(wrong.front().problem);
  if (file->has_operators)
    throw InputError({.file = path,
                      .message = "is a whole plan with operators of its own",
                      .allowed = "programs alone"});
  return file;
}

Graph with_programs(const Graph& block) {
  Graph graph = block;
  for (const auto& program : block.programs()) graph = Placed(graph, *program).run();
  return graph;
}

bool computed_by_programs(const Graph& block) {
  if (block.forward() != nullptr && !block.forward()->programs().empty())
    throw InputError({.field = "--phase",
                      .value = name_of(Phase::train),
                      .message = fmt::format("{} computes operators of the block, and the gradient "
                                             "of the block does not know what it keeps",
                                             file_of(*block.forward()->programs().front())),
                      .allowed = "forward or decode, or the block without 'computed'"});
  return !block.programs().empty();
}

Program program_of(const Op& op, const std::string& name) {
  const auto& own = op.attributes.as<OwnProgram>();
  const ChangeOperand move = [&](Operand& o) {
    for (const auto& [from, to] :
         {std::pair{&own.reads, &op.reads}, std::pair{&own.writes, &op.writes}})
      if (const auto at = std::ranges::find(*from, o); at != from->end()) {
        o = (*to)[static_cast<std::size_t>(at - from->begin())];
        return;
      }
    FUSELINE_ASSERT(false, name + " moves an operand that its operator has not");
  };
  Program p = own.program;
  p.name = name;
  p.mainloop = rewritten(p.mainloop, move);
  for (auto* lines : {&p.body, &p.prologue})
    for (Primitive& line : *lines) line = rewritten(line, move);
  return p;
}

void complete_programs(Plan& plan, const Graph& block) {
  std::set<std::string> read;
  for (Kernel& kernel : plan.kernels) {
    std::vector<OpId> ops;
    for (const OpId id : kernel.ops) {
      if (!is_own_program(plan.graph.op(id))) {
        ops.push_back(id);
        continue;
      }
      const Program p = program_of(plan.graph.op(id), kernel.name);
      for (const Operand& o : plan.graph.op(id).reads)
        read.insert(plan.graph.tensor(o.tensor).name);
      std::vector<Operand> of_product;
      if (std::optional<Op> product = own_product(plan, p)) {
        of_product = product->reads;
        const Operand made = product->writes[0];
        const OpId first = plan.graph.add_op(std::move(*product));
        ops.push_back(first);
        for (FusionNote& note : plan.notes)
          if (note.edge.to == id && std::ranges::any_of(of_product, [&](const Operand& o) {
                return o.tensor == note.edge.tensor;
              }))
            note.edge.to = first;
        plan.notes.push_back({{first, id, made.tensor}, true, "the lines of one program"});
        std::vector<Operand>& reads = plan.graph.op(id).reads;
        std::erase_if(reads, [&](const Operand& o) {
          return std::ranges::find(of_product, o) != of_product.end();
        });
        reads.insert(reads.begin(), made);
      }
      plan.graph.op(id).kind = own_program_kind();
      plan.graph.op(id).attributes = {};
      ops.push_back(id);
      if (kernel.implementation != Implementation::persistent_block) set_own_kind(kernel);
    }
    kernel.ops = std::move(ops);
  }
  for (const Interleaving& i : plan.preparation.interleavings)
    if (read.contains(i.tensor))
      throw InputError({.field = "--policy",
                        .value = plan.policy,
                        .message = fmt::format("brings the columns or rows of {} into another "
                                               "order, which a program of the block reads",
                                               i.tensor),
                        .allowed = "a policy that leaves it as it is, such as unfused"});
  for (const auto& program : block.programs())
    for (Interleaving& i : pairs_of(program->file->plan))
      plan.preparation.interleavings.push_back(std::move(i));
  plan.block = block;
}

std::vector<SameMeaning> compare_programs(const Graph& block,
                                          const std::function<std::vector<double>(TensorId)>& value,
                                          int threads) {
  std::vector<SameMeaning> all;
  for (const auto& program : block.programs()) {
    const Plan& own = program->file->plan;
    const std::set<TensorId> stored = stored_by(own);
    NamedTensors given;
    for (const Tensor& t : own.graph.tensors())
      if (const auto there = block.find_tensor(t.name)) given[t.name] = value(*there);
    const NamedTensors ordered =
        prepare({.graph = {}, .interleavings = pairs_of(own), .results = {}}, own.graph, given);
    ExactTensors exact;
    for (std::size_t i = 0; i < own.graph.tensors().size(); ++i) {
      const Tensor& t = own.graph.tensors()[i];
      const auto found = ordered.find(t.name);
      const bool made = stored.contains(TensorId{static_cast<std::int32_t>(i)});
      exact.push_back(found == ordered.end() || made
                          ? std::vector<double>(static_cast<std::size_t>(t.rows * t.cols))
                          : found->second);
    }
    for (const Kernel& k : own.kernels)
      for (const Program& p : k.phases) run_meaning(own.graph, p, exact, nullptr, threads);
    for (const TensorId id : stored)
      if (const Tensor& t = own.graph.tensor(id); given.contains(t.name))
        all.push_back({.file = file_of(*program),
                       .tensor = t.name,
                       .difference = relative_l2(exact[static_cast<std::size_t>(id.index)],
                                                 given.at(t.name))});
  }
  return all;
}

}  // namespace fuseline

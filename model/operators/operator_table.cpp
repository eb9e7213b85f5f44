#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/operators/shape_letters.h"
#include "model/operators/support/cache_scales.h"

namespace fuseline {

namespace {

std::vector<const Operator*>& table() {
  static std::vector<const Operator*> all(std::begin(operators::kAll), std::end(operators::kAll));
  return all;
}

// Rows and columns of an operand as the table's letters bind them.
class ShapeLetters {
 public:
  // Whether `size` agrees with the letter, which may carry a leading factor: "N", "2N", "1".
  bool agrees(const std::string& letter, std::int64_t size) {
    const auto [factor, name] = shape_letter(letter);
    if (name.empty()) return size == factor;
    if (size % factor != 0) return false;
    const auto [known, is_new] = bound_.emplace(name, size / factor);
    return is_new || known->second * factor == size;
  }

 private:
  std::map<std::string, std::int64_t> bound_;
};

// How many rows of their tensor the operands have together.
std::int64_t union_rows(const std::vector<const Operand*>& operands) {
  std::int64_t tallest = 0;
  const bool nested = std::ranges::all_of(operands, [&](const Operand* o) {
    tallest = std::max(tallest, o->rows);
    return o->at == RowRuns{};
  });
  if (nested) return tallest;
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  for (const Operand* o : operands) {
    const std::int64_t run = o->at.run == 0 ? o->rows : o->at.run;
    for (std::int64_t r = 0; r < o->rows; r += run)
      runs.emplace_back(o->tensor_row(r), o->tensor_row(r) + run);
  }
  std::sort(runs.begin(), runs.end());
  std::int64_t rows = 0;
  std::int64_t reached = 0;
  for (const auto& [begin, end] : runs) {
    rows += std::max<std::int64_t>(0, end - std::max(begin, reached));
    reached = std::max(reached, end);
  }
  return rows;
}

// Bytes of the union of one tensor's slices, over every elementary range of columns.
Bytes union_bytes(const std::vector<Operand>& slices, ElementSize element) {
  std::vector<std::int64_t> cuts;
  for (const Operand& o : slices) {
    cuts.push_back(o.col_begin);
    cuts.push_back(o.col_begin + o.cols);
  }
  std::sort(cuts.begin(), cuts.end());
  Bytes total;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    std::vector<const Operand*> here;
    for (const Operand& o : slices)
      if (o.col_begin <= cuts[i] && cuts[i] < cuts[i + 1] && cuts[i + 1] <= o.col_begin + o.cols)
        here.push_back(&o);
    total += checked_product<Bytes>(cuts[i + 1] - cuts[i], union_rows(here), element);
  }
  return total;
}

GemmLayout layout_of(const Op& op) {
  const auto* layout = op.attributes.get<GemmLayout>();
  return layout == nullptr ? GemmLayout{} : *layout;
}

// The table's spec of read operand i; a gemm's layouts exchange rows and columns, and the scales
// of a cache come last, with a bias before them or without.
OperandSpec read_spec(const Op& op, std::size_t i) {
  OperandSpec spec = op.kind->reads[i];
  if (has_cache_scale(op) && i + 1 == op.reads.size()) return {"scale", "R", "G"};
  const GemmLayout layout = layout_of(op);
  if (activation_scale(op) && i + 1 == op.reads.size()) return {"x_scale", "M", "XG"};
  const auto* ragged = op.attributes.get<RaggedRows>();
  if (ragged != nullptr && is_gemm(op) && i == 1 && ragged->b_is_kn) return {"w", "GK", "N"};
  if (is_gemm(op) && (i == 0 ? layout.a_is_km : layout.b_is_kn)) std::swap(spec.rows, spec.cols);
  return spec;
}

}  // namespace

GemmShape gemm_shape(const Op& op) {
  FUSELINE_ASSERT(is_gemm(op) && op.reads.size() >= 2, op.name);
  const GemmLayout layout = layout_of(op);
  GemmShape shape{.a_is_km = layout.a_is_km,
                  .b_is_kn = layout.b_is_kn,
                  .weight = layout.weight,
                  .activation = layout.activation};
  const Operand& a = op.reads[0];
  const Operand& b = op.reads[1];
  shape.M = shape.a_is_km ? a.cols : a.rows;
  shape.K = shape.a_is_km ? a.rows : a.cols;
  shape.N = shape.b_is_kn ? b.cols : b.rows;
  if (const auto* sums = op.attributes.get<RaggedSums>()) {
    return {.M = a.cols,
            .N = b.cols,
            .K = a.rows,
            .a_is_km = true,
            .b_is_kn = true,
            .depths = sums->groups};
  }
  if (const auto* rows = op.attributes.get<RaggedRows>()) {
    shape.groups = rows->groups;
    shape.b_is_kn = rows->b_is_kn;
    shape.N = rows->b_is_kn ? b.cols : shape.N / std::ssize(rows->groups);
    shape.weight = rows->weight;
    shape.activation = rows->activation;
  }
  return shape;
}

std::optional<Operand> activation_scale(const Op& op) {
  const auto* layout = op.attributes.get<GemmLayout>();
  const auto* rows = op.attributes.get<RaggedRows>();
  const bool codes = (layout != nullptr && layout->activation.quantised()) ||
                     (rows != nullptr && is_gemm(op) && rows->activation.quantised());
  if (!codes) return std::nullopt;
  return op.reads.back();
}

std::int64_t index_range(const Graph& graph, TensorId id) {
  for (const OpId reader : graph.consumers(id)) {
    const Op& op = graph.op(reader);
    const int numbers = op.kind->index_read;
    if (numbers < 0 || static_cast<std::size_t>(numbers) >= op.reads.size()) continue;
    if (op.reads[static_cast<std::size_t>(numbers)].tensor != id) continue;
    return op.kind->index_range(graph, op);
  }
  return 0;
}

bool is_negative(const Graph& graph, TensorId id) {
  return std::ranges::any_of(graph.consumers(id), [&](OpId reader) {
    const Op& op = graph.op(reader);
    const int at = op.kind->negative_read;
    return at >= 0 && op.reads[static_cast<std::size_t>(at)].tensor == id;
  });
}

Bytes distinct_bytes(const Graph& graph, std::span<const Operand> operands) {
  Bytes total;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const TensorId id = operands[i].tensor;
    std::vector<Operand> slices;
    bool first = true;
    for (std::size_t j = 0; j < operands.size(); ++j) {
      if (operands[j].tensor != id) continue;
      first = first && j >= i;
      slices.push_back(operands[j]);
    }
    if (!first) continue;
    total += union_bytes(slices, size_of(graph.tensor(id).dtype));
  }
  return total;
}

Bytes bytes_read(const Graph& graph, const Op& op) {
  const int partly = op.kind->part_read;
  if (partly < 0) return distinct_bytes(graph, op.reads);
  // The parts read of each head are disjoint from what the other operands cover.
  Bytes total;
  for (std::size_t i = 0; i < op.reads.size(); ++i) {
    Operand read = op.reads[i];
    const HeadPart* of_head = op.attributes.get<HeadPart>();
    if (static_cast<int>(i) == partly)
      read.cols = of_head != nullptr ? of_head->part.cols(read.cols) : read.cols / 2;
    total += graph.bytes(read);
  }
  return total;
}

Bytes bytes_written(const Graph& graph, const Op& op) { return distinct_bytes(graph, op.writes); }

bool is_weight_gradient(const Graph& graph, TensorId tensor) {
  const auto of = graph.related(tensor, Relation::gradient_of);
  return of && graph.tensor(tensor).role == Role::output && graph.tensor(*of).role == Role::weight;
}

CompulsoryBytes compulsory_bytes(const Graph& graph) {
  std::vector<Operand> read, written, shared_read, shared_written, foldable;
  const auto overwritten = [&](TensorId id) {  // by an operator that reads it itself: a state
    return std::any_of(graph.ops().begin(), graph.ops().end(), [&](const Op& op) {
      const auto of_tensor = [&](const Operand& o) { return o.tensor == id; };
      return std::any_of(op.reads.begin(), op.reads.end(), of_tensor) &&
             std::any_of(op.writes.begin(), op.writes.end(), of_tensor);
    });
  };
  for (const Op& op : graph.ops()) {
    for (const Operand& o : op.reads) {
      const Tensor& tensor = graph.tensor(o.tensor);
      if (tensor.role == Role::activation || tensor.role == Role::output) continue;
      read.push_back(o);
      if (tensor.role == Role::input || tensor.role == Role::table) shared_read.push_back(o);
      if (tensor.role == Role::weight && tensor.rows == 1) foldable.push_back(o);
    }
    for (const Operand& o : op.writes) {
      const Role role = graph.tensor(o.tensor).role;
      if (role != Role::output && role != Role::cache) continue;
      written.push_back(o);
      if (role == Role::output && !is_weight_gradient(graph, o.tensor)) shared_written.push_back(o);
    }
  }
  CompulsoryBytes result{distinct_bytes(graph, read), distinct_bytes(graph, written),
                         distinct_bytes(graph, shared_read), distinct_bytes(graph, shared_written),
                         distinct_bytes(graph, foldable)};
  // Rows appended to a cache that the graph also reads are on hand.
  for (const Operand& w : written) {
    const bool read_back = std::any_of(read.begin(), read.end(),
                                       [&](const Operand& r) { return r.tensor == w.tensor; });
    if (graph.tensor(w.tensor).role == Role::cache && read_back && !overwritten(w.tensor))
      result.read -= distinct_bytes(graph, std::span(&w, 1));
  }
  return result;
}

double tolerance(const Graph& graph, const Op& op) {
  const double fp32 = unit_roundoff(Dtype::fp32);
  const double length = static_cast<double>(op.kind->sum_length(graph, op));
  const Dtype stored = graph.tensor(op.writes[0].tensor).dtype;
  if (op.attributes.get<RowCodes>() != nullptr) return row_code_roundoff(stored);
  // A weight in few bits is rounded once more, to the type in which the tensor cores take it; where
  // both operands are codes they take them as they are.
  const bool rounded =
      is_gemm(op) && gemm_shape(op).weight.quantised() && !gemm_shape(op).activation.quantised();
  const double weight = rounded ? unit_roundoff(graph.tensor(op.reads[0].tensor).dtype) : 0.0;
  return unit_roundoff(stored) + weight + (2.0 * std::sqrt(length) + 8.0) * fp32;
}

double row_code_roundoff(Dtype codes) {
  constexpr double kSixteenth = 0x1p-4;
  return std::max(unit_roundoff(codes), kSixteenth);
}

std::vector<std::string> check_operands(const Graph&, const Op& op) {
  const Operator& info = operator_info(op.kind);
  std::vector<std::string> problems;
  ShapeLetters letters;
  const auto check = [&](const OperandSpec& spec, const Operand& operand) {
    if (!letters.agrees(spec.rows, operand.rows) || !letters.agrees(spec.cols, operand.cols))
      problems.push_back(op.name + ": operand " + spec.name + " is [" +
                         std::to_string(operand.rows) + ", " + std::to_string(operand.cols) +
                         "], not [" + spec.rows + ", " + spec.cols + "]");
  };
  std::size_t known = 0;
  for (; known < info.reads.size(); ++known) {
    const OperandSpec spec = read_spec(op, known);
    if (known < op.reads.size())
      check(spec, op.reads[known]);
    else if (!spec.optional)
      problems.push_back(op.name + ": operand " + spec.name + " is missing");
  }
  if (op.reads.size() > known)
    problems.push_back(op.name + ": " + std::string(info.name.value) + " reads at most " +
                       std::to_string(known) + " operands, not " + std::to_string(op.reads.size()));
  const std::size_t least = 1 + info.further_writes.size();
  const std::size_t most = least + (info.also_writes.name != nullptr ? 1 : 0);
  if (op.writes.size() < least || op.writes.size() > most) {
    const std::string allowed = least > 1   ? std::to_string(least)
                                : most == 2 ? "one or two"
                                            : "one";
    problems.push_back(op.name + ": " + std::string(info.name.value) + " writes " + allowed +
                       (least > 1 || most == 2 ? " operands" : " operand") + ", not " +
                       std::to_string(op.writes.size()));
    return problems;
  }
  check(info.write, op.writes[0]);
  for (std::size_t i = 1; i < least; ++i) check(info.further_writes[i - 1], op.writes[i]);
  if (op.writes.size() > least) check(info.also_writes, op.writes.back());
  return problems;
}

std::span<const Operator* const> all_operators() { return table(); }

const Operator* find_operator(std::string_view name) {
  for (const Operator* known : table())
    if (name == known->name.value) return known;
  return nullptr;
}

const Operator& operator_info(OpKind kind) { return *kind; }

AddedOperator::AddedOperator(const Operator& description) {
  FUSELINE_ASSERT(find_operator(description.name.value) == nullptr, description.name.value);
  table().push_back(&description);
}

bool is_gemm(const Op& op) { return op.kind->op_class == OpClass::gemm; }
bool is_ragged(const Op& op) {
  return is_gemm(op) && (!gemm_shape(op).groups.empty() || !gemm_shape(op).depths.empty());
}
bool is_norm(const Op& op) { return op.kind->statistics > 0; }
bool has_adjacent_pairs(const Op& op) {
  const Pairs* pairs = op.attributes.get<Pairs>();
  return pairs != nullptr && pairs->interleaved;
}
bool is_around_attention(const Op& op) {
  const auto* conversion = op.attributes.get<Conversion>();
  return op.kind->around_attention || (conversion != nullptr && conversion->of_attention);
}
bool is_contraction(const Op& op) { return op.kind->locality == Locality::contraction; }
bool is_mainloop(const Op& op) { return is_contraction(op) && !op.kind->attention; }
bool needs_whole_heads(const Op& op) { return op.kind->locality == Locality::head_local; }
bool is_gated(const Op& op) { return op.kind->gate.activation.known() && !op.kind->gate.backward; }
bool needs_full_row(const Op& op) { return op.kind->locality == Locality::full_row; }
bool needs_full_column(const Op& op) { return op.kind->locality == Locality::full_column; }

Flops flops(const Graph& graph, const Op& op) { return op.kind->flops(graph, op); }

Flops flops(const Graph& graph) {
  Flops total;
  for (const Op& op : graph.ops()) total += flops(graph, op);
  return total;
}

std::int64_t visible_pairs(const AttentionShape& a) {
  const std::int64_t T = a.q_tokens;
  const std::int64_t S = a.kv_tokens;
  const std::int64_t window = a.window > 0 ? std::min(a.window, S) : S;
  if (!a.causal) return checked_product<Flops>(T, window).value();
  if (a.prefix > 0) {
    std::int64_t pairs = 0;
    for (std::int64_t t = 0; t < T; ++t) {
      const std::int64_t own = S - T + t + 1;
      pairs += std::max(own, std::min(S, a.prefix)) - std::max<std::int64_t>(0, own - window);
    }
    return pairs;
  }
  // Query t sees min(S - T + t + 1, window) keys: `growing` queries see fewer than the window.
  const std::int64_t growing = std::clamp<std::int64_t>(window - (S - T), 0, T);
  // growing·(growing+1) is even, and so is each product below before it is halved.
  const Flops triangle = checked_product<Flops>(growing, growing + 1);
  return triangle.value() / 2 + checked_product<Flops>(growing, S - T).value() +
         checked_product<Flops>(T - growing, window).value();
}

const char* name_of(OpKind kind) { return operator_info(kind).name; }

const char* name_of(OpClass c) {
  switch (c) {
    case OpClass::gemm:
      return "gemm";
    case OpClass::attention:
      return "attention";
    case OpClass::norm:
      return "norm";
    case OpClass::pointwise:
      return "pointwise";
    case OpClass::reduction:
      return "reduction";
    case OpClass::scan:
      return "scan";
    case OpClass::conv:
      return "conv";
    case OpClass::collective:
      return "collective";
  }
  FUSELINE_ASSERT(false, "unknown class");
}

const char* name_of(Locality l) {
  switch (l) {
    case Locality::tile_local:
      return "tile-local";
    case Locality::pair_local:
      return "pair-local";
    case Locality::head_local:
      return "needs whole heads";
    case Locality::full_row:
      return "needs a full row";
    case Locality::contraction:
      return "contraction";
    case Locality::full_column:
      return "needs a full column";
    case Locality::row_halo:
      return "needs rows above its tile";
    case Locality::rows_elsewhere:
      return "needs rows of other tiles";
  }
  FUSELINE_ASSERT(false, "unknown locality");
}

}  // namespace fuseline

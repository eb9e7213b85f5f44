#include "sim/kernels/program_streams.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "model/operators/attributes.h"
#include "model/operators/operator_table.h"

namespace fuseline {
namespace {

std::size_t index_of(TensorId id) { return static_cast<std::size_t>(id.index); }

// Column ranges that kernels store of a tensor; empty when some kernel stores all columns or none
// does.
std::vector<std::pair<std::int64_t, std::int64_t>> stored_slices(const Plan& plan, TensorId id) {
  std::vector<std::pair<std::int64_t, std::int64_t>> slices;
  for (const Kernel& kernel : plan.kernels) {
    for (const Program& phase : kernel.phases) {
      for (const Operand& o : stores(phase)) {
        if (o.tensor != id) continue;
        if (o.cols == plan.graph.tensor(id).cols) return {};
        slices.emplace_back(o.col_begin, o.cols);
      }
    }
  }
  std::sort(slices.begin(), slices.end());
  slices.erase(std::unique(slices.begin(), slices.end()), slices.end());
  return slices;
}

// Index of the first kernel that stores the tensor, and of the last that loads it; -1 = none.
struct StreamLifetime {
  int first_store = -1;
  int last_use = -1;
};

std::vector<StreamLifetime> lifetimes(const Plan& plan) {
  std::vector<StreamLifetime> lives(plan.graph.tensors().size());
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    const int order = static_cast<int>(i);
    for (const Program& phase : plan.kernels[i].phases) {
      for (const Operand& o : stores(phase)) {
        StreamLifetime& life = lives[index_of(o.tensor)];
        if (life.first_store < 0) life.first_store = order;
        life.last_use = order;
      }
      for (const Operand& o : loads(phase)) lives[index_of(o.tensor)].last_use = order;
    }
  }
  return lives;
}

bool same_shape(const Tensor& a, const Tensor& b) {
  return a.rows == b.rows && a.cols == b.cols && a.dtype == b.dtype;
}

}  // namespace

AddressMap::AddressMap(const Plan& plan) : graph_(&plan.graph) {
  const auto& tensors = plan.graph.tensors();
  pieces_.resize(tensors.size());
  per_layer_.resize(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorId id{static_cast<std::int32_t>(i)};
    const Role role = tensors[i].role;
    const bool own =
        role == Role::weight || role == Role::cache || is_weight_gradient(plan.graph, id);
    per_layer_[i] = own ? 1 : 0;
    for (const auto& [begin, cols] : stored_slices(plan, id)) {
      pieces_[i].push_back({id, begin, cols, ids_++});
    }
    if (pieces_[i].empty()) pieces_[i].push_back({id, 0, tensors[i].cols, ids_++});
  }
  place_scratch(plan);
  reuse_buffers(plan);
  chain_layers(plan.graph);
}

void AddressMap::place_scratch(const Plan& plan) {
  for (const Kernel& kernel : plan.kernels) {
    for (const FrameworkLaunch& launch : kernel.beside) {
      for (const LaunchAccess& access : launch.moved) {
        const auto* scratch = std::get_if<Scratch>(&access.of);
        if (scratch == nullptr) continue;
        if (scratch_.try_emplace({kernel.name, scratch->name}, ids_).second) ++ids_;
      }
    }
  }
}

CachedSlice AddressMap::locate(const Kernel& kernel, const LaunchAccess& access) const {
  if (const auto* operand = std::get_if<Operand>(&access.of)) return locate(*operand);
  const auto& scratch = std::get<Scratch>(access.of);
  CachedSlice slice;
  slice.matrix = {scratch_.at({kernel.name, scratch.name}),
                  scratch.rows,
                  scratch.cols,
                  size_of(scratch.dtype),
                  {}};
  slice.rows = scratch.rows;
  slice.cols = scratch.cols;
  return slice;
}

// A graph that says of no output which input of the next layer it is carries its first output to
// its first input.
void AddressMap::chain_layers(const Graph& graph) {
  neighbour_.resize(graph.tensors().size());
  const auto chain = [this](TensorId output, TensorId input) {
    neighbour_[index_of(output)] = input;
    neighbour_[index_of(input)] = output;
  };
  bool carries = false;
  for (const Related& r : graph.relations()) {
    if (r.relation != Relation::carried_to_next_layer) continue;
    chain(r.tensor, r.to);
    carries = true;
  }
  if (carries) return;
  TensorId input, output;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorId id{static_cast<std::int32_t>(i)};
    if (graph.tensor(id).role == Role::input && input.index < 0) input = id;
    if (graph.tensor(id).role == Role::output && output.index < 0) output = id;
  }
  if (input.index >= 0 && output.index >= 0) chain(output, input);
}

// What allocators do: memory whose last reader has run serves the next tensor of the same shape,
// the lowest address first.
void AddressMap::reuse_buffers(const Plan& plan) {
  const auto& tensors = plan.graph.tensors();
  const std::vector<StreamLifetime> lives = lifetimes(plan);
  std::vector<std::size_t> idle;  // tensors whose buffers are free
  const auto buffer = [this](std::size_t tensor) { return pieces_[tensor].front().id; };
  for (int order = 0; order < static_cast<int>(plan.kernels.size()); ++order) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (lives[i].first_store != order || tensors[i].role != Role::activation) continue;
      if (pieces_[i].size() != 1) continue;
      auto fit = idle.end();
      for (auto free = idle.begin(); free != idle.end(); ++free) {
        if (!same_shape(tensors[*free], tensors[i])) continue;
        if (fit == idle.end() || buffer(*free) < buffer(*fit)) fit = free;
      }
      if (fit == idle.end()) continue;
      pieces_[i].front().id = buffer(*fit);
      idle.erase(fit);
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const bool ends = lives[i].first_store >= 0 && lives[i].last_use == order;
      if (ends && tensors[i].role == Role::activation && pieces_[i].size() == 1) idle.push_back(i);
    }
  }
}

CachedSlice AddressMap::locate(const Operand& operand, std::int64_t layer) const {
  const Tensor& tensor = graph_->tensor(operand.tensor);
  const auto& pieces = pieces_[index_of(operand.tensor)];
  const Piece* piece = &pieces.front();
  for (const Piece& p : pieces) {
    if (p.col_begin <= operand.col_begin) piece = &p;
  }
  std::uint32_t id = piece->id;
  // Layers alternate between two buffers for an output and the input that it is carried to, x and
  // y: what one writes is what the next reads.
  const TensorId other = neighbour_[index_of(operand.tensor)];
  if (other.index >= 0 && layer > 0 && chained_) {
    const bool swapped = layer % 2 == 1;
    if (swapped && pieces_[index_of(other)].size() == 1) id = pieces_[index_of(other)].front().id;
  } else if (per_layer_[index_of(operand.tensor)] != 0) {
    id += static_cast<std::uint32_t>(layer) * ids_;
  }
  CachedSlice slice;
  slice.matrix = {id, tensor.rows, piece->cols, size_of(tensor.dtype), operand.at};
  slice.rows = operand.rows;
  slice.col_begin = operand.col_begin - piece->col_begin;
  slice.cols = operand.cols;
  if (slice.col_begin + slice.cols >
      piece->cols) {  // spans several pieces: as one matrix of its own
    slice.matrix.cols = slice.col_begin + slice.cols;
  }
  return slice;
}

Bytes Stream::bytes() const {
  return checked_product<Bytes>(part.rows, moved.group > 0 ? moved.cols(part.cols) : part.cols,
                                part.matrix.element);
}

namespace {

void add_streams(const Primitive& primitive, const AddressMap& addresses,
                 std::vector<Stream>& streams) {
  for (const Access& access : primitive.accesses()) {
    Stream stream;
    stream.part = addresses.locate(access.operand);
    stream.store = access.store;
    stream.vector = !access.store && access.reach == Reach::col_numbers;
    // Rows that are gathered several times each come in as many passes: experts take the tokens in
    // order, one after the other.
    const bool passes =
        access.reach == Reach::gathered_rows && access.indices > access.operand.rows;
    stream.repeated = access.reach == Reach::table || passes;
    stream.of_columns = access.reach == Reach::partials && access.along == Axis::cols;
    stream.moved = access.part;
    streams.push_back(stream);
  }
}

// Origins of the batch's matrices. `height` × `width`: one of them. Stacked by rows, or heads side
// by side; heads of `a` may share those of an operand with fewer.
std::vector<MatrixOrigin> origins(const CachedSlice& slice, std::int64_t batch, std::int64_t height,
                                  std::int64_t width) {
  if (batch == 1) {
    if (slice.col_begin == 0) return {};
    return {MatrixOrigin{0, slice.col_begin}};
  }
  const std::int64_t stacked = slice.rows / height;  // sequences, or sequences × heads
  const std::int64_t heads = slice.cols / width;     // side by side
  FUSELINE_ASSERT(stacked >= 1 && heads >= 1 && batch % stacked == 0,
                  "a batched GEMM's operand does not hold its matrices");
  const std::int64_t per_sequence = batch / stacked;  // GEMMs that share one stack entry's rows
  std::vector<MatrixOrigin> result;
  result.reserve(static_cast<std::size_t>(batch));
  for (std::int64_t i = 0; i < batch; ++i) {
    const std::int64_t sequence = i / per_sequence;
    const std::int64_t head = (i % per_sequence) * heads / per_sequence;
    result.push_back({sequence * height, slice.col_begin + head * width});
  }
  return result;
}

GemmOperand operand_of(const CachedSlice& slice, std::int64_t batch, std::int64_t rows,
                       std::int64_t k, bool transposed) {
  GemmOperand operand;
  operand.matrix = slice.matrix;
  operand.transposed = transposed;
  operand.origins = transposed ? origins(slice, batch, k, rows) : origins(slice, batch, rows, k);
  return operand;
}

// What the library makes of a batch: each of its calls takes matrices at equal distances.
std::vector<StridedBatch> library_calls(const GemmProblem& problem) {
  std::vector<BatchOffsets> offsets;
  const auto offset = [](const MatrixOrigin& origin, const CachedMatrix& matrix) {
    return origin.row * matrix.cols + origin.col;
  };
  for (std::int64_t i = 0; i < problem.batch; ++i) {
    BatchOffsets at = {offset(problem.a.origin(i), problem.a.matrix),
                       offset(problem.b.origin(i), problem.b.matrix), 0};
    for (const EpilogueStream& stream : problem.epilogue)
      if (stream.store) at[2] = offset(stream.origin(i), stream.matrix);
    offsets.push_back(at);
  }
  std::vector<StridedBatch> calls = strided_batches(offsets);
  if (calls.size() == 1) calls.clear();
  return calls;
}

}  // namespace

std::vector<Stream> streams_of(const Program& program, const AddressMap& addresses) {
  std::vector<Stream> streams;
  for (const Primitive& p : program.prologue) add_streams(p, addresses, streams);
  for (const Primitive& p : program.body) add_streams(p, addresses, streams);
  return streams;
}

GemmProblem gemm_problem_of(const Program& program, const AddressMap& addresses, bool library) {
  const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
  FUSELINE_ASSERT(gemm != nullptr, program.name);
  GemmProblem problem;
  problem.m = gemm->M;
  problem.n = gemm->N;
  problem.k = gemm->K;
  problem.batch = gemm->batch;
  problem.groups = gemm->groups;
  problem.depths = gemm->depths;
  problem.library = library;
  if (!library) problem.needs = epilogue_needs(program, addresses.graph());
  problem.workspace_tensor = AddressMap::workspace;
  // Products of parts of k say themselves where in a and b they are.
  const std::int64_t matrices = gemm->depths.empty() ? gemm->batch : 1;
  problem.a = operand_of(addresses.locate(gemm->a), matrices, gemm->M, gemm->K, gemm->a_is_km);
  problem.b = operand_of(addresses.locate(gemm->b), matrices, gemm->N, gemm->K, gemm->b_is_kn);
  for (GemmOperand* operand : {&problem.a, &problem.b})
    if (!gemm->depths.empty()) operand->origins.assign(gemm->depths.size(), operand->origin(0));
  problem.weight = gemm->weight;
  const std::vector<ScaleTensor> beside = gemm->weight.beside(gemm->N, gemm->K);
  for (std::size_t i = 0; i < beside.size(); ++i)
    problem.scales.push_back(
        {addresses.locate(gemm->beside_b[i]).matrix, beside[i].kind, beside[i].rows});
  problem.activation = gemm->activation;
  if (gemm->a_scale) problem.row_scales = addresses.locate(*gemm->a_scale).matrix;
  if (!gemm->groups.empty()) {
    const MatrixOrigin a{0, addresses.locate(gemm->a).col_begin};
    const std::int64_t b_col = addresses.locate(gemm->b).col_begin;
    problem.a.origins.assign(gemm->groups.size(), a);
    problem.b.origins.clear();
    for (std::size_t g = 0; g < gemm->groups.size(); ++g)
      problem.b.origins.push_back(
          {static_cast<std::int64_t>(g) * (gemm->b_is_kn ? gemm->K : gemm->N), b_col});
  }
  for (const Stream& stream : streams_of(program, addresses)) {
    EpilogueStream epilogue;
    epilogue.matrix = stream.part.matrix;
    epilogue.store = stream.store;
    if (gemm->batch > 1 && !stream.vector && !stream.repeated) {
      epilogue.height = gemm->M;
      epilogue.width = gemm->N;
      epilogue.origins = origins(stream.part, gemm->batch, gemm->M, gemm->N);
    } else {
      // Tiles touch the part in proportion.
      epilogue.height = stream.part.rows;
      epilogue.width = stream.part.cols;
      if (stream.part.col_begin > 0)
        epilogue.origins.assign(static_cast<std::size_t>(problem.products()),
                                {0, stream.part.col_begin});
      if (stream.repeated) epilogue.rows = epilogue.cols = Addressing::repeated;
      epilogue.of_columns = stream.of_columns;
    }
    problem.epilogue.push_back(epilogue);
  }
  if (library && problem.batch > 1 && problem.depths.empty())
    problem.calls = library_calls(problem);
  return problem;
}

GemmProblem gemm_problem_of(const Kernel& kernel, const Program& program,
                            const AddressMap& addresses) {
  GemmProblem problem =
      gemm_problem_of(program, addresses, kernel.implementation == Implementation::library_gemm);
  problem.ran = kernel.ran;
  problem.ran_group = kernel.ran_group;
  problem.rows_of_tokens = std::ranges::any_of(kernel.ops, [&](OpId id) {
    return addresses.graph().op(id).attributes.get<AttentionShape>() != nullptr;
  });
  return problem;
}

}  // namespace fuseline

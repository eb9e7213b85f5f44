#include "cuda/vendor/cublaslt_gemm.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

#if FUSELINE_HAS_CUDA && FUSELINE_HAS_CUBLASLT
#include "cuda/vendor/cublaslt_product.h"
#include "sim/executor/tile_interpreter.h"
#include "sim/kernels/strided_batches.h"
#endif

namespace fuseline::cuda {

#if FUSELINE_HAS_CUDA && FUSELINE_HAS_CUBLASLT

CublasLt::CublasLt(const Device& device) : state_(std::make_unique<State>(device)) {}

std::string CublasLt::version() const {
  const std::size_t v = state_->calls.version();
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

namespace {

struct Addresses {
  std::shared_ptr<const CublasLtProduct> product;
  std::uint64_t a = 0, b = 0, out = 0;
};

class LibraryLaunch final : public Launch {
 public:
  LibraryLaunch(std::string code, std::vector<Addresses> calls)
      : Launch(std::move(code)), calls_(std::move(calls)) {}
  void launch(Stream& stream) override {
    for (const Addresses& call : calls_) call.product->run(stream, call.a, call.b, call.out);
  }

 private:
  std::vector<Addresses> calls_;
};

// Element offset of one product's corner in an operand that holds the whole batch.
std::int64_t offset(const Operand& operand, const GpuMatrix& m, const GemmMainloop& gemm,
                    std::int64_t index, std::int64_t height, std::int64_t width) {
  const Corner corner = corner_of(operand, gemm.batch, index, height, width);
  return corner.row * m.leading() + corner.col;
}

// Element offsets of every product of the mainloop.
std::vector<BatchOffsets> batch_offsets(const GemmMainloop& gemm, const VendorProblem& p) {
  if (gemm.batch == 1) return {BatchOffsets{}};
  std::vector<BatchOffsets> offsets;
  for (std::int64_t i = 0; i < gemm.batch; ++i)
    offsets.push_back({offset(gemm.a, p.a.matrix, gemm, i, gemm.a_is_km ? gemm.K : gemm.M,
                              gemm.a_is_km ? gemm.M : gemm.K),
                       offset(gemm.b, p.b.matrix, gemm, i, gemm.b_is_kn ? gemm.K : gemm.N,
                              gemm.b_is_kn ? gemm.N : gemm.K),
                       offset(p.form.out, p.out.matrix, gemm, i, gemm.M, gemm.N)});
  return offsets;
}

// The largest power of two, up to the 256 that the library asks about, that divides the addresses
// of all products' operands of one kind, and of their rows.
std::uint32_t alignment(const GpuMatrix& m, const std::vector<BatchOffsets>& offsets,
                        std::size_t which) {
  std::uint64_t bits = 256 | m.address | static_cast<std::uint64_t>(m.row_bytes);
  for (const BatchOffsets& o : offsets)
    bits |= static_cast<std::uint64_t>(o[which] * size_of(m.type));
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

}  // namespace

Launches prepare_library_gemm(const LaunchContext& context, CublasLt& library,
                              const Program& program) {
  const std::optional<VendorGemm> form = vendor_gemm(context.plan.graph, program);
  if (!form) return {};
  const auto& gemm = std::get<GemmMainloop>(program.mainloop);
  const auto whole = [&](const Operand& o) {
    return o.rows == context.plan.graph.tensor(o.tensor).rows;
  };
  // Rows that lie apart and batches are no matrices of one stride.
  if (gemm.batch > 1 && (!whole(gemm.a) || !whole(gemm.b) || !whole(form->out))) return {};
  for (const Operand* o : {&gemm.a, &gemm.b, &form->out})
    if (o->at.run > 1) return {};
  const auto matrix = [&](const Operand& o) { return context.tensors.matrix(o); };
  VendorProblem problem;
  problem.M = gemm.M;
  problem.N = gemm.N;
  problem.K = gemm.K;
  problem.form = *form;
  problem.a.matrix = matrix(gemm.a);
  problem.a.transposed = gemm.a_is_km;
  problem.b.matrix = matrix(gemm.b);
  problem.b.transposed = gemm.b_is_kn;
  problem.out.matrix = matrix(form->out);
  if (form->bias) problem.bias = matrix(*form->bias).address;
  if (form->before_gelu) {
    const GpuMatrix m = matrix(*form->before_gelu);
    problem.before_gelu = m.address;
    problem.before_gelu_row_bytes = m.row_bytes;
  }

  const std::vector<BatchOffsets> offsets = batch_offsets(gemm, problem);
  problem.a.alignment = alignment(problem.a.matrix, offsets, 0);
  problem.b.alignment = alignment(problem.b.matrix, offsets, 1);
  problem.out.alignment = alignment(problem.out.matrix, offsets, 2);

  // Batches of equal size and distances share one description.
  std::map<std::tuple<std::int64_t, BatchOffsets>, std::shared_ptr<CublasLtProduct>> products;
  std::vector<Addresses> calls;
  for (const StridedBatch& batch : strided_batches(offsets)) {
    const BatchOffsets& first = offsets[static_cast<std::size_t>(batch.first)];
    BatchOffsets stride{};
    if (batch.count > 1) {
      const BatchOffsets& next = offsets[static_cast<std::size_t>(batch.first + batch.step)];
      for (std::size_t i = 0; i < stride.size(); ++i) stride[i] = next[i] - first[i];
    }
    VendorProblem part = problem;
    part.count = batch.count;
    std::size_t i = 0;
    for (VendorMatrix* side : {&part.a, &part.b, &part.out}) {
      side->stride = stride[i];
      side->matrix.address += static_cast<std::uint64_t>(first[i] * size_of(side->matrix.type));
      ++i;
    }
    std::shared_ptr<CublasLtProduct>& product = products[{batch.count, stride}];
    if (!product) {
      product = std::make_shared<CublasLtProduct>(library.state(), part);
      if (!product->choose()) return {};
    }
    calls.push_back(
        {product, part.a.matrix.address, part.b.matrix.address, part.out.matrix.address});
  }
  Launches launches;
  std::string code = calls.front().product->name();
  launches.push_back(std::make_unique<LibraryLaunch>(std::move(code), std::move(calls)));
  return launches;
}

#else

struct CublasLt::State {};
CublasLt::CublasLt(const Device&) {
  throw MissingError(
      "no cuBLASLt: this fuseline was built without its header, which comes with the CUDA toolkit, "
      "so the vendor's GEMMs cannot run");
}
std::string CublasLt::version() const { return {}; }
Launches prepare_library_gemm(const LaunchContext&, CublasLt&, const Program&) { return {}; }

#endif

CublasLt::~CublasLt() = default;
CublasLt::CublasLt(CublasLt&&) noexcept = default;
CublasLt& CublasLt::operator=(CublasLt&&) noexcept = default;

}  // namespace fuseline::cuda

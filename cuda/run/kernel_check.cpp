#if FUSELINE_HAS_CUDA

#include "cuda/run/kernel_check.h"

#include <cmath>
#include <set>

#include "cuda/run/gemm_launch.h"

namespace fuseline::cuda {

namespace {

StoredTensorError compare(const std::string& name, const Operand& part, std::int64_t sequences,
                          const executor::Storage& got, const executor::Storage& want) {
  StoredTensorError error{name};
  double difference = 0;
  double size = 0;
  std::vector<float> a(static_cast<std::size_t>(part.cols));
  std::vector<float> b(a.size());
  // Fewer rows than the tensor's: the last of each sequence's.
  const std::int64_t each = part.rows / sequences;
  const std::int64_t all = got.rows() / sequences;
  for (std::int64_t i = 0; i < part.rows; ++i) {
    const std::int64_t r = part.rows == got.rows() ? i : i / each * all + (all - each) + i % each;
    got.read(r, part.col_begin, part.cols, a.data());
    want.read(r, part.col_begin, part.cols, b.data());
    for (std::size_t c = 0; c < a.size(); ++c) {
      error.finite = error.finite && std::isfinite(a[c]);
      const double d = static_cast<double>(a[c]) - static_cast<double>(b[c]);
      difference += d * d;
      size += static_cast<double>(b[c]) * static_cast<double>(b[c]);
    }
  }
  error.relative_l2 = size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
  if (!(error.relative_l2 <= 1.0)) error.relative_l2 = 1.0;
  return error;
}

}  // namespace

std::vector<StoredTensorError> check_gemm(const Device& device, KernelStore& store,
                                          const Plan& plan, const Program& program,
                                          const GemmTile& tile, GpuTensors& tensors,
                                          const executor::Memory& memory, std::int64_t sequences) {
  std::set<TensorId> stored;
  for (const Operand& o : stores(program))
    if (stored.insert(o.tensor).second) tensors.poison(o.tensor);
  for (const Operand& o : loads(program))
    if (!stored.contains(o.tensor)) tensors.upload(o.tensor, memory.at(o.tensor));

  const GemmKernelSource source =
      gemm_kernel_source(plan.graph, program, tile, store.target(), plan.policy);
  const PreparedLaunch launch = prepare_gemm(device, store, source, program, tensors, sequences);
  Stream stream = device.stream();
  launch.launch(stream);
  stream.synchronize("running " + program.name);

  std::vector<StoredTensorError> errors;
  for (const Operand& o : stores(program))
    errors.push_back(compare(plan.graph.tensor(o.tensor).name, o, sequences,
                             tensors.download(o.tensor), memory.at(o.tensor)));
  return errors;
}

}  // namespace fuseline::cuda

#endif

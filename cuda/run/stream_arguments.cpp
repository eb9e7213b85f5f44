#if FUSELINE_HAS_CUDA

#include "cuda/run/stream_arguments.h"

#include "base/error.h"
#include "cuda/run/parameters.h"
#include "cuda/run/row_groups.h"

namespace fuseline::cuda {

namespace {

// As the device's structs lay them out (kernels/stream/memory.cuh, heads.cuh, mainloop.cuh).
struct TileParameter {
  std::uint64_t data;
  std::int64_t ld;
  std::int32_t rows, cols, period, jump;
};
struct StreamRowsParameter {
  std::uint64_t data;
  std::int64_t step;
};
struct StreamTableParameter {
  std::uint64_t data;
  std::int32_t period, cols, ld;
};
struct PartialsParameter {
  std::uint64_t data;
  std::int32_t ld;
};
struct VisibleParameter {
  std::int32_t tokens, first_end, step, window;
};

class Parameters {
 public:
  Parameters(const LaunchContext& context, std::vector<DeviceBuffer>& workspaces)
      : context_(context), workspaces_(workspaces) {}

  std::vector<std::byte> of(const std::vector<StreamField>& fields) const {
    std::vector<Layout> parts;
    for (const StreamField& f : fields) parts.push_back(layout_of(f.kind));
    const StructLayout layout = lay_out(parts);
    std::vector<std::byte> bytes(static_cast<std::size_t>(layout.whole.size));
    for (std::size_t i = 0; i < fields.size(); ++i) write(bytes, layout.offsets[i], fields[i]);
    return bytes;
  }

 private:
  [[nodiscard]] GpuMatrix all_rows(const Operand& operand) const {
    return context_.tensors.all_rows(operand);
  }

  [[nodiscard]] TileParameter tile(const Operand& operand) const {
    const GpuMatrix all = all_rows(operand);
    TileParameter t{all.address, leading(all), narrow(operand.rows), narrow(operand.cols), 0, 0};
    t.data += static_cast<std::uint64_t>(operand.at.begin * all.row_bytes);
    t.jump = narrow(operand.at.step);
    t.period = narrow(operand.at.run);
    return t;
  }

  // The row that an operand begins with, which need not be its tensor's first.
  [[nodiscard]] std::uint64_t cols(const Operand& operand) const {
    const GpuMatrix all = all_rows(operand);
    return all.address + static_cast<std::uint64_t>(operand.at.begin * all.row_bytes);
  }

  void write(std::vector<std::byte>& bytes, std::int64_t at, const StreamField& f) const {
    switch (f.kind) {
      case StreamFieldKind::tile:
        return put(bytes, at, tile(f.operand));
      case StreamFieldKind::gathered: {
        const GpuMatrix all = all_rows(f.operand);
        return put(
            bytes, at,
            TileParameter{all.address, leading(all), narrow(all.rows), narrow(all.cols), 0, 0});
      }
      case StreamFieldKind::rows: {
        const GpuMatrix m = context_.tensors.matrix(f.operand);
        // A column result that was found row by row lies side by side.
        return put(
            bytes, at,
            StreamRowsParameter{m.address, f.operand.rows == 1 ? 1 : std::int64_t{leading(m)}});
      }
      case StreamFieldKind::cols:
        return put(bytes, at, cols(f.operand));
      case StreamFieldKind::table: {
        const GpuMatrix all = context_.tensors.matrix(f.operand);
        return put(bytes, at,
                   StreamTableParameter{all.address, narrow(f.operand.rows), narrow(f.operand.cols),
                                        leading(all)});
      }
      case StreamFieldKind::partials: {
        const GpuMatrix m = all_rows(f.operand);
        return put(bytes, at, PartialsParameter{m.address, leading(m)});
      }
      case StreamFieldKind::visible:
        return put(bytes, at, visible(f));
      case StreamFieldKind::constant:
        return put(bytes, at, static_cast<float>(f.constant));
      case StreamFieldKind::count:
        return put(bytes, at, narrow(f.count));
      case StreamFieldKind::row_groups:
        return put(bytes, at, row_groups(context_.device, f.lengths, workspaces_));
    }
    FUSELINE_ASSERT(false, "unknown field");
  }

  // Of f.count keys the last is the last query's own.
  static VisibleParameter visible(const StreamField& f) {
    const AttentionShape& a = f.attention;
    return {narrow(a.q_tokens), narrow(a.causal ? f.count - a.q_tokens + 1 : f.count),
            a.causal ? 1 : 0, narrow(a.window)};
  }

  const LaunchContext& context_;
  std::vector<DeviceBuffer>& workspaces_;
};

}  // namespace

std::vector<std::byte> stream_arguments(const LaunchContext& context,
                                        const std::vector<StreamField>& fields,
                                        std::vector<DeviceBuffer>& workspaces) {
  return Parameters(context, workspaces).of(fields);
}

std::int32_t narrow(std::int64_t n) {
  FUSELINE_ASSERT(n >= 0 && n <= INT32_MAX, "a kernel counts with 32 bits");
  return static_cast<std::int32_t>(n);
}

}  // namespace fuseline::cuda

#endif

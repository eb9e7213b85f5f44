#if FUSELINE_HAS_CUDA

#include "cuda/run/count_kernels.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline::cuda {

namespace {

constexpr std::size_t kPasses = 3;

template <class T, class Get>
T median(const std::vector<std::vector<CountedRange>>& passes, std::size_t i, Get get) {
  std::vector<T> values;
  for (const auto& pass : passes) values.push_back(get(pass[i]));
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(kPasses / 2));
  return values[kPasses / 2];
}

std::string code_of(const PreparedKernel& kernel) {
  std::string code;
  for (const auto& launch : kernel.launches) {
    if (code.find(launch->code()) != std::string::npos) continue;
    code += (code.empty() ? "" : " + ") + launch->code();
  }
  return code;
}

}  // namespace

CountedBlock count_kernels(const RangeProfiler& profiler, Stream& stream, BlockOnGpu& block,
                           const std::function<void(Stream&)>& behind) {
  const auto run_all = [&] {
    for (int layer = 0; layer < block.layers(); ++layer) block.launch(stream, layer);
    if (behind) behind(stream);
    stream.synchronize("running a block");
  };
  std::vector<PreparedKernel>& kernels = block.kernels();
  std::vector<std::string> names;
  for (const PreparedKernel& k : kernels) names.push_back(k.name);
  std::vector<std::vector<CountedRange>> passes;
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    const auto run_one = [&](std::size_t i) {
      for (const auto& launch : kernels[i].launches) launch->launch(stream);
      stream.synchronize("counting " + names[i]);
    };
    passes.push_back(profiler.measure(names, run_one, run_all));
    FUSELINE_ASSERT(passes.back().size() == kernels.size(), "one range for each kernel");
  }

  CountedBlock result;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    MeasuredKernel k;
    k.site = names[i];
    k.kernel = code_of(kernels[i]);
    k.recorded_kind = kernels[i].kind;
    if (kernels[i].tile)
      k.tile = fmt::format("{}x{}x{}", kernels[i].tile->m, kernels[i].tile->n, kernels[i].tile->k);
    k.time = median<Seconds>(passes, i, [](const CountedRange& r) { return r.time; });
    k.hbm_read = median<Bytes>(passes, i, [](const CountedRange& r) { return r.hbm_read; });
    k.hbm_write = median<Bytes>(passes, i, [](const CountedRange& r) { return r.hbm_write; });
    k.l2 = median<Bytes>(passes, i, [](const CountedRange& r) { return r.l2; });
    result.kernels.push_back(std::move(k));
  }
  const auto run_block = [&](std::size_t) { run_all(); };
  result.block = profiler.measure({"block"}, run_block, run_all).at(0);
  const auto share = [&](Bytes sum) { return Bytes(sum.value() / block.layers()); };
  result.block.hbm_read = share(result.block.hbm_read);
  result.block.hbm_write = share(result.block.hbm_write);
  result.block.l2 = share(result.block.l2);
  return result;
}

GpuStateSummary merged(const std::vector<GpuStateSummary>& parts) {
  GpuStateSummary sum;
  std::vector<Hertz> medians;
  double power = 0;
  std::size_t powers = 0;
  for (const GpuStateSummary& p : parts) {
    sum.samples += p.samples;
    if (p.sm_clock_median) medians.push_back(*p.sm_clock_median);
    if (p.sm_clock_least && (!sum.sm_clock_least || *p.sm_clock_least < *sum.sm_clock_least))
      sum.sm_clock_least = p.sm_clock_least;
    if (p.sm_clock_most && (!sum.sm_clock_most || *sum.sm_clock_most < *p.sm_clock_most))
      sum.sm_clock_most = p.sm_clock_most;
    if (p.memory_clock) sum.memory_clock = p.memory_clock;
    if (p.power_limit) sum.power_limit = p.power_limit;
    if (p.power_mean) {
      power += p.power_mean->value();
      ++powers;
    }
    if (p.celsius_most) sum.celsius_most = std::max(sum.celsius_most.value_or(0), *p.celsius_most);
    for (const std::string& reason : p.throttling)
      if (std::ranges::find(sum.throttling, reason) == sum.throttling.end())
        sum.throttling.push_back(reason);
  }
  if (!medians.empty()) {
    std::ranges::sort(medians);
    sum.sm_clock_median = medians[medians.size() / 2];
  }
  if (powers > 0) sum.power_mean = Watts(power / static_cast<double>(powers));
  return sum;
}

}  // namespace fuseline::cuda

#endif

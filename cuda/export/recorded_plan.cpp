#include "cuda/export/recorded_plan.h"

#include "base/error.h"

#if FUSELINE_HAS_CUDA

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/parallel_for.h"
#include "cuda/run/gpu_tensors.h"
#include "cuda/run/prepare.h"
#include "model/primitives/store_tile.h"

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kMapBytes = 128;

DeviceInfo info_of(const Gpu& gpu) {
  DeviceInfo info;
  info.name = gpu.title;
  const std::size_t dot = gpu.compute_capability.find('.');
  if (dot == std::string::npos)
    throw InputError({.file = gpu.name,
                      .field = "compute_capability",
                      .message = "is missing: kernels are exported for NVIDIA GPUs"});
  info.major = std::stoi(gpu.compute_capability.substr(0, dot));
  info.minor = std::stoi(gpu.compute_capability.substr(dot + 1));
  info.multiprocessors = static_cast<int>(gpu.sm_count);
  info.memory = gpu.hbm_capacity;
  info.l2 = gpu.l2_capacity;
  info.shared_per_block = gpu.smem_per_block_max;
  return info;
}

// Memory that an address may lie in.
struct Range {
  std::uint64_t begin = 0;
  std::int64_t bytes = 0;
  int target = 0;
};

// The plan got ready once, with the addresses of its own memory.
class Ready {
 public:
  Ready(const Plan& plan, const Gpu& gpu, const Device& device, KernelStore& store, int threads)
      : tensors_(device, plan),
        kernels_(prepare_plan({device, store, plan, tensors_}, gpu, {.threads = threads})) {
    for (std::size_t i = 0; i < plan.homes.size(); ++i) {
      const TensorId id{static_cast<std::int32_t>(i)};
      if (tensors_.has(id)) add(tensors_.buffer(id), static_cast<int>(i));
    }
    for (const KernelLaunch* launch : launches())
      for (const DeviceBuffer& b : launch->workspaces()) {
        add(b, -1 - static_cast<int>(workspaces_.size()));
        workspaces_.push_back(&b);
      }
  }

  [[nodiscard]] std::vector<const KernelLaunch*> launches() const {
    std::vector<const KernelLaunch*> all;
    for (const PreparedKernel& k : kernels_)
      for (const auto& launch : k.launches) {
        const auto* ours = dynamic_cast<const KernelLaunch*>(launch.get());
        FUSELINE_ASSERT(ours != nullptr, k.name + " is a library's");
        all.push_back(ours);
      }
    return all;
  }
  [[nodiscard]] std::vector<std::string> programs() const {
    std::vector<std::string> names;
    for (const PreparedKernel& k : kernels_) names.insert(names.end(), k.launches.size(), k.name);
    return names;
  }
  // Where an address points to, as a place without parameter and offset.
  [[nodiscard]] std::optional<AddressPlace> place_of(std::uint64_t address) const {
    for (const Range& r : ranges_)
      if (address >= r.begin && address < r.begin + static_cast<std::uint64_t>(r.bytes))
        return AddressPlace{.target = r.target,
                            .addend = static_cast<std::int64_t>(address - r.begin)};
    return std::nullopt;
  }
  [[nodiscard]] const std::vector<const DeviceBuffer*>& workspaces() const { return workspaces_; }

 private:
  void add(const DeviceBuffer& b, int target) {
    ranges_.push_back({b.address(), std::max<std::int64_t>(1, b.size().value()), target});
  }
  GpuTensors tensors_;
  std::vector<PreparedKernel> kernels_;
  std::vector<Range> ranges_;
  std::vector<const DeviceBuffer*> workspaces_;
};

std::uint64_t word_at(const std::vector<std::byte>& bytes, std::size_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

bool same_place(const std::optional<AddressPlace>& a, const std::optional<AddressPlace>& b) {
  return a && b && a->target == b->target && a->addend == b->addend;
}

// A word is an address when it points to the same place of both, though the memory is another.
void find_places(const Ready& a, const Ready& b, const std::vector<std::byte>& of_a,
                 const std::vector<std::byte>& of_b, int parameter, RecordedLaunch& out) {
  std::vector<std::byte> bytes = of_a;
  FUSELINE_ASSERT(of_a.size() == of_b.size(), "parameters have the same size both times");
  for (std::size_t at = 0; at + 8 <= bytes.size();) {
    const std::span<const std::byte> rest(of_a.data() + at, of_a.size() - at);
    if (at % 64 == 0) {
      if (const auto map = recorded_map(rest)) {
        auto place = a.place_of(map->address);
        FUSELINE_ASSERT(place.has_value(), "a map's address belongs to a tensor");
        place->parameter = parameter;
        place->offset = static_cast<std::int64_t>(at);
        out.maps.push_back({*place, *map});
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), kMapBytes, std::byte{0});
        at += kMapBytes;
        continue;
      }
    }
    const std::uint64_t word = word_at(of_a, at), other = word_at(of_b, at);
    if (word != other) {
      auto place = a.place_of(word);
      FUSELINE_ASSERT(same_place(place, b.place_of(other)),
                      out.function + ": a parameter's address belongs to nothing");
      place->parameter = parameter;
      place->offset = static_cast<std::int64_t>(at);
      out.addresses.push_back(*place);
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), 8, std::byte{0});
    }
    at += 8;
  }
  out.parameters.push_back(std::move(bytes));
}

// Of a kernel that the plan gives to a library, and whose tensors are whole matrices.
std::optional<LibraryProduct> product_of(const Plan& plan, const std::string& name) {
  const auto kernel = std::ranges::find(plan.kernels, name, &Kernel::name);
  if (kernel->implementation != Implementation::library_gemm || kernel->phases.size() != 1)
    return std::nullopt;
  const Program& p = kernel->phases.front();
  const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop);
  const auto* store = p.body.size() == 1 ? p.body.front().as<StoreTile>() : nullptr;
  if (gemm == nullptr || store == nullptr || gemm->batch != 1 || gemm->weight.quantised() ||
      gemm->activation.quantised() || !gemm->groups.empty() || !gemm->depths.empty())
    return std::nullopt;
  for (const Operand& o : {gemm->a, gemm->b, store->to})
    // A framework's product has the type of its operands.
    if (o != plan.graph.whole(o.tensor) ||
        plan.graph.tensor(o.tensor).dtype != plan.graph.tensor(gemm->a.tensor).dtype)
      return std::nullopt;
  return LibraryProduct{.a = gemm->a.tensor.index,
                        .b = gemm->b.tensor.index,
                        .out = store->to.tensor.index,
                        .a_transposed = gemm->a_is_km,
                        .b_transposed = !gemm->b_is_kn};
}

// "tiles_mul", or "tiles_mul_2" where that is taken.
std::string file_name(const std::string& function, std::set<std::string>& taken) {
  std::string name = function;
  for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", function, i);
  return name;
}

}  // namespace

RecordedPlan record_plan(const Plan& plan, const Gpu& gpu, int threads) {
  const Device device = recorded_device(info_of(gpu));
  KernelStore store(device, CubinCache::standard());
  const Ready a(plan, gpu, device, store, threads), b(plan, gpu, device, store, threads);
  const Compiler compiler;
  RecordedPlan out;
  out.toolkit = fmt::format("CUDA {}.{}", compiler.version().major, compiler.version().minor);
  out.architecture = store.code().name();
  std::set<std::string> taken;
  const auto launches = a.launches(), again = b.launches();
  const auto programs = a.programs();
  std::map<std::string, int> code_by_text;
  std::vector<const Source*> sources;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    RecordedLaunch launch{.program = programs[i],
                          .function = launches[i]->function().name(),
                          .shape = launches[i]->shape()};
    const Source& source = store.source_of(launches[i]->function());
    const auto [found, fresh] =
        code_by_text.emplace(source.text, static_cast<int>(out.codes.size()));
    if (fresh) {
      out.codes.push_back({.name = file_name(launch.function, taken), .text = source.text});
      sources.push_back(&source);
    }
    launch.code = found->second;
    for (std::size_t p = 0; p < launches[i]->parameters().size(); ++p)
      find_places(a, b, launches[i]->parameters()[p], again[i]->parameters()[p],
                  static_cast<int>(p), launch);
    launch.product = product_of(plan, launch.program);
    out.launches.push_back(std::move(launch));
  }
  for (const DeviceBuffer* w : a.workspaces()) {
    RecordedWorkspace workspace{.bytes = w->size().value()};
    constexpr std::int64_t kUploaded = 1 << 20;  // larger ones are scratch
    if (workspace.bytes <= kUploaded) {
      workspace.contents.resize(static_cast<std::size_t>(workspace.bytes));
      w->download(workspace.contents);
      if (std::ranges::all_of(workspace.contents, [](std::byte x) { return x == std::byte{0}; }))
        workspace.contents.clear();
    }
    out.workspaces.push_back(std::move(workspace));
  }
  parallel_for(sources.size(),
               [&](std::size_t i) {
                 Compiled compiled = compiler.compile(*sources[i], store.code());
                 out.codes[i].cubin = std::move(compiled.cubin);
                 out.codes[i].ptx = std::move(compiled.ptx);
                 out.codes[i].log = std::move(compiled.log);
               },
               {.threads = static_cast<unsigned>(std::max(1, threads))});
  return out;
}

}  // namespace fuseline::cuda

#else

namespace fuseline::cuda {

RecordedPlan record_plan(const Plan&, const Gpu&, int) {
  throw MissingError(
      "this fuseline was built without the CUDA toolkit: install CUDA 12 or 13 (Ampere and Hopper) "
      "or Debian's nvidia-cuda-toolkit (Ampere) and build again");
}

}  // namespace fuseline::cuda

#endif

#if FUSELINE_HAS_CUDA

#include "cuda/run/kernel_store.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel_for.h"
#include "cuda/compile/cache_key.h"

namespace fuseline::cuda {

namespace {

// wgmma and the bulk copy engine are Hopper's own; newer GPUs run the Ampere kernels.
SmCode code_of(const DeviceInfo& info, const Compiler& compiler, std::optional<SmTarget> wanted) {
  const bool hopper = info.major == 9 && compiler.makes(SmTarget::sm_90a);
  if (wanted.value_or(SmTarget::sm_90a) == SmTarget::sm_90a && hopper) return SmTarget::sm_90a;
  if (wanted == SmTarget::sm_90a)
    throw MissingError(
        fmt::format("Hopper's kernels run on Hopper with CUDA 12 or newer: here are "
                    "{} and CUDA {}.{}",
                    info.name, compiler.version().major, compiler.version().minor));
  const SmCode code(SmTarget::sm_80, info.major == 8 ? 0 : 10 * info.major + info.minor);
  if (!compiler.makes(code))
    throw MissingError(fmt::format("CUDA {}.{} makes no {} code for this {}: install a newer one",
                                   compiler.version().major, compiler.version().minor, code.name(),
                                   info.name));
  return code;
}

}  // namespace

KernelStore::KernelStore(const Device& device, CubinCache cache, std::optional<SmTarget> target)
    : device_(&device),
      cache_(std::move(cache)),
      code_(code_of(device.info(), compiler_, target)) {}

const Module& KernelStore::load(const Source& given) {
  Source source = given;
  if (change_) source.text = change_(source.text);
  const std::string key = cache_key(compiler_, code_, source);
  const auto found = loaded_.find(key);
  if (found != loaded_.end()) return found->second;
  sources_.emplace(key, source);
  return loaded_.emplace(key, find_or_compile(key, source)).first->second;
}

const Source& KernelStore::source_of(const Function& function) const {
  for (const auto& [key, module] : loaded_)
    if (module.gave(function)) return sources_.at(key);
  FUSELINE_ASSERT(false, function.name() + " is of no module of this store");
}

void KernelStore::compile_ahead(const std::vector<Source>& sources, int threads) {
  std::map<std::string, const Source*> missing;
  if (change_) return;  // load() changes and compiles them
  for (const Source& source : sources) {
    const std::string key = cache_key(compiler_, code_, source);
    if (!loaded_.contains(key) && !ahead_.contains(key) && !cache_.find(key))
      missing.emplace(key, &source);
  }
  const std::vector<std::pair<std::string, const Source*>> work(missing.begin(), missing.end());
  std::vector<std::vector<char>> cubins(work.size());
  const auto compile = [&](std::size_t i) {
    try {
      cubins[i] = compiler_.compile(*work[i].second, code_).cubin;
    } catch (const InternalError&) {
      // load() says what does not compile.
    }
  };
  parallel_for(work.size(), compile, {.threads = static_cast<unsigned>(std::max(1, threads))});
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (cubins[i].empty()) continue;
    ++compiled_;
    cache_.store(work[i].first, cubins[i]);
    ahead_.emplace(work[i].first, std::move(cubins[i]));
  }
}

Module KernelStore::find_or_compile(const std::string& key, const Source& source) {
  if (const auto cubin = cache_.find(key)) {
    try {
      return device_->load(*cubin, source.name);
    } catch (const InternalError&) {
      // Made by another toolkit's build of the same version, say: compile it here.
    }
  }
  if (const auto ahead = ahead_.find(key); ahead != ahead_.end()) {
    const std::vector<char> cubin = std::move(ahead->second);
    ahead_.erase(ahead);
    return device_->load(cubin, source.name);
  }
  const Compiled compiled = compiler_.compile(source, code_);
  ++compiled_;
  cache_.store(key, compiled.cubin);
  return device_->load(compiled.cubin, source.name);
}

}  // namespace fuseline::cuda

#endif

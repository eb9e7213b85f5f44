#include "cuda/compile/compiler.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include <fmt/format.h>

#include "cuda/compile/device_headers.h"
#include "cuda/compile/shared_library.h"
#include "model/error.h"

#if FUSELINE_HAS_NVRTC
#include <nvrtc.h>
#endif

namespace fuseline::cuda {

namespace {

constexpr const char* kNoToolkit =
    "no CUDA toolkit: kernels are compiled with NVRTC, which comes with CUDA 12 or 13 (Ampere and "
    "Hopper) or with Debian's nvidia-cuda-toolkit (non-free; Ampere only)";

#if FUSELINE_HAS_NVRTC
std::vector<std::string> toolkit_roots() {
  std::vector<std::string> roots;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0')
      roots.emplace_back(value);
  roots.emplace_back("/usr/local/cuda");
  return roots;
}

std::vector<std::string> nvrtc_names() {
  std::vector<std::string> names;
  for (const std::string& root : toolkit_roots())
    for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib"})
      if (const auto file = std::filesystem::path(root) / folder / "libnvrtc.so";
          std::filesystem::exists(file))
        names.push_back(file.string());
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"})
    names.emplace_back(name);
  return names;
}

// The folder of cuda_bf16.h.
std::string include_folder() {
  std::vector<std::string> folders;
  for (const std::string& root : toolkit_roots()) folders.push_back(root + "/include");
  folders.emplace_back("/usr/include");
  for (const std::string& folder : folders)
    if (std::filesystem::exists(folder + "/cuda_bf16.h")) return folder;
  throw MissingError(
      fmt::format("{}; its header cuda_bf16.h is not in {}", kNoToolkit, fmt::join(folders, ", ")));
}

std::int64_t number(const std::smatch& match, std::size_t group) {
  return std::stoll(match[group].str());
}
#endif

}  // namespace

const char* name_of(SmTarget architecture) {
  return architecture == SmTarget::sm_80 ? "sm_80" : "sm_90a";
}

#if FUSELINE_HAS_NVRTC

struct Compiler::Library {
  SharedLibrary file{nvrtc_names(), kNoToolkit};
  std::string include = include_folder();
  decltype(&nvrtcVersion) version = nullptr;
  decltype(&nvrtcGetErrorString) error_string = nullptr;
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&nvrtcGetCUBIN) cubin = nullptr;
  decltype(&nvrtcGetPTXSize) ptx_size = nullptr;
  decltype(&nvrtcGetPTX) ptx = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  ToolkitVersion toolkit;

  Library() {
    file.load(version, "nvrtcVersion");
    file.load(error_string, "nvrtcGetErrorString");
    file.load(create, "nvrtcCreateProgram");
    file.load(destroy, "nvrtcDestroyProgram");
    file.load(compile, "nvrtcCompileProgram");
    file.load(cubin_size, "nvrtcGetCUBINSize");
    file.load(cubin, "nvrtcGetCUBIN");
    file.load(ptx_size, "nvrtcGetPTXSize");
    file.load(ptx, "nvrtcGetPTX");
    file.load(log_size, "nvrtcGetProgramLogSize");
    file.load(log, "nvrtcGetProgramLog");
    check(version(&toolkit.major, &toolkit.minor), "asking for the version");
  }

  void check(nvrtcResult result, const std::string& doing) const {
    if (result != NVRTC_SUCCESS)
      throw InternalError(fmt::format("NVRTC, {}: {}", doing, error_string(result)));
  }

  // Text or code of a finished program.
  template <class Container, class Size, class Get>
  Container result(nvrtcProgram program, Size size, Get get, const char* what) const {
    std::size_t bytes = 0;
    check(size(program, &bytes), what);
    Container data;
    data.resize(bytes);
    if (bytes > 0) check(get(program, data.data()), what);
    return data;
  }
};

namespace {

ResourceUse resource_use(const std::string& log) {
  static const std::regex stack(
      R"((\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads)");
  static const std::regex registers(R"(Used (\d+) registers)");
  static const std::regex shared(R"((\d+) bytes smem)");
  ResourceUse use;
  for (std::sregex_iterator it(log.begin(), log.end(), stack), end; it != end; ++it) {
    use.stack_bytes = std::max(use.stack_bytes, number(*it, 1));
    use.spill_bytes += number(*it, 2) + number(*it, 3);
  }
  for (std::sregex_iterator it(log.begin(), log.end(), registers), end; it != end; ++it)
    use.registers = std::max(use.registers, static_cast<int>(number(*it, 1)));
  for (std::sregex_iterator it(log.begin(), log.end(), shared), end; it != end; ++it)
    use.shared_bytes = std::max(use.shared_bytes, number(*it, 1));
  return use;
}

}  // namespace

Compiler::Compiler() : library_(std::make_unique<Library>()) {}

ToolkitVersion Compiler::version() const { return library_->toolkit; }

bool Compiler::makes(SmTarget architecture) const {
  return architecture == SmTarget::sm_80 || library_->toolkit.major >= 12;
}

std::vector<std::string> Compiler::options(SmTarget architecture) const {
  return {fmt::format("--gpu-architecture={}", name_of(architecture)), "--std=c++17",
          "--ptxas-options=-v", "--restrict", "-default-device"};
}

Compiled Compiler::compile(const Source& source, SmTarget architecture) const {
  const Library& l = *library_;
  if (!makes(architecture))
    throw MissingError(fmt::format("CUDA {}.{} makes no {} code: that needs CUDA 12 or newer",
                                   l.toolkit.major, l.toolkit.minor, name_of(architecture)));
  const std::string text = join_headers(source.name, source.text);
  nvrtcProgram program = nullptr;
  l.check(l.create(&program, text.c_str(), source.name.c_str(), 0, nullptr, nullptr),
          "reading " + source.name);
  const auto destroy = [&l](nvrtcProgram* p) { l.destroy(p); };
  const std::unique_ptr<nvrtcProgram, decltype(destroy)> owner(&program, destroy);

  std::vector<std::string> all = options(architecture);
  all.push_back("--include-path=" + l.include);
  // The standard's own headers, which CUDA 13 keeps apart.
  all.push_back("--include-path=" + l.include + "/cccl");
  std::vector<const char*> arguments;
  for (const std::string& option : all) arguments.push_back(option.c_str());
  const nvrtcResult done = l.compile(program, static_cast<int>(arguments.size()), arguments.data());

  Compiled compiled;
  compiled.log = l.result<std::string>(program, l.log_size, l.log, "reading the log");
  while (!compiled.log.empty() && compiled.log.back() == '\0') compiled.log.pop_back();
  if (done != NVRTC_SUCCESS)
    throw InternalError(fmt::format("{} does not compile for {}: {}\n{}", source.name,
                                    name_of(architecture), l.error_string(done), compiled.log));
  compiled.cubin =
      l.result<std::vector<char>>(program, l.cubin_size, l.cubin, "reading the machine code");
  compiled.ptx = l.result<std::string>(program, l.ptx_size, l.ptx, "reading the PTX");
  while (!compiled.ptx.empty() && compiled.ptx.back() == '\0') compiled.ptx.pop_back();
  compiled.use = resource_use(compiled.log);
  return compiled;
}

#else

struct Compiler::Library {};
Compiler::Compiler() {
  throw MissingError(std::string(kNoToolkit) + "; this fuseline was built where none was found");
}
ToolkitVersion Compiler::version() const { return {}; }
bool Compiler::makes(SmTarget) const { return false; }
std::vector<std::string> Compiler::options(SmTarget) const { return {}; }
Compiled Compiler::compile(const Source&, SmTarget) const { return {}; }

#endif

Compiler::~Compiler() = default;
Compiler::Compiler(Compiler&&) noexcept = default;
Compiler& Compiler::operator=(Compiler&&) noexcept = default;

}  // namespace fuseline::cuda

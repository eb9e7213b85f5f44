#include "cuda/compile/compiler.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/compile/device_headers.h"
#include "cuda/compile/shared_library.h"

#if FUSELINE_HAS_CUDA
#include <nvrtc.h>
#endif

namespace fuseline::cuda {

namespace {

constexpr const char* kNoToolkit =
    "no CUDA toolkit: kernels are compiled with NVRTC, which comes with CUDA 12 or 13 (Ampere and "
    "Hopper) or with Debian's nvidia-cuda-toolkit (non-free; Ampere only)";

#if FUSELINE_HAS_CUDA
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

// The number that stands before `words` in the text, from `from` on; moves `from` behind them.
std::optional<std::int64_t> number_before(const std::string& text, std::string_view words,
                                          std::size_t& from) {
  const std::size_t at = text.find(words, from);
  if (at == std::string::npos) return std::nullopt;
  from = at + words.size();
  std::size_t first = at;
  while (first > 0 && std::isdigit(static_cast<unsigned char>(text[first - 1])) != 0) --first;
  if (first == at) return std::nullopt;
  return std::stoll(text.substr(first, at - first));
}

// Calls f(number) for each place in the text where a number stands before the words.
template <class F>
void for_each_number(const std::string& text, std::string_view words, F&& f) {
  for (std::size_t from = 0; text.find(words, from) != std::string::npos;)
    if (const auto number = number_before(text, words, from)) f(*number);
}
#endif

}  // namespace

const char* name_of(SmTarget architecture) {
  return architecture == SmTarget::sm_80 ? "sm_80" : "sm_90a";
}

std::string SmCode::name() const {
  return capability == 0 ? name_of(target) : fmt::format("sm_{}", capability);
}

#if FUSELINE_HAS_CUDA

struct Compiler::Library {
  SharedLibrary file{nvrtc_names(), kNoToolkit};
  std::string include = include_folder();
  decltype(&nvrtcVersion) version = nullptr;
  decltype(&nvrtcGetErrorString) error_string = nullptr;
  decltype(&nvrtcGetNumSupportedArchs) architecture_count = nullptr;
  decltype(&nvrtcGetSupportedArchs) architectures = nullptr;
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
    file.load(architecture_count, "nvrtcGetNumSupportedArchs");
    file.load(architectures, "nvrtcGetSupportedArchs");
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

// The file that the compiler could not open, from its log; empty: it opened all. A source holds all
// device headers of ours, so that such a file is one of the toolkit.
std::string unopened_file(const std::string& log) {
  constexpr std::string_view kWords = "open source file \"";
  const std::size_t at = log.find(kWords);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + kWords.size();
  return log.substr(begin, log.find('"', begin) - begin);
}

ResourceUse resource_use(const std::string& log) {
  ResourceUse use;
  for_each_number(log, " bytes stack frame",
                  [&](std::int64_t n) { use.stack_bytes = std::max(use.stack_bytes, n); });
  for (const char* spills : {" bytes spill stores", " bytes spill loads"})
    for_each_number(log, spills, [&](std::int64_t n) { use.spill_bytes += n; });
  for_each_number(log, " registers", [&](std::int64_t n) {
    use.registers = std::max(use.registers, static_cast<int>(n));
  });
  for_each_number(log, " bytes smem",
                  [&](std::int64_t n) { use.shared_bytes = std::max(use.shared_bytes, n); });
  return use;
}

}  // namespace

Compiler::Compiler() : library_(std::make_unique<Library>()) {}

ToolkitVersion Compiler::version() const { return library_->toolkit; }

bool Compiler::makes(const SmCode& architecture) const {
  if (architecture.target == SmTarget::sm_90a) return library_->toolkit.major >= 12;
  if (architecture.capability == 0) return true;
  int count = 0;
  library_->check(library_->architecture_count(&count), "asking for its architectures");
  std::vector<int> known(static_cast<std::size_t>(count));
  library_->check(library_->architectures(known.data()), "asking for its architectures");
  return std::ranges::find(known, architecture.capability) != known.end();
}

std::vector<std::string> Compiler::options(const SmCode& architecture) const {
  return {fmt::format("--gpu-architecture={}", architecture.name()), "--std=c++17",
          "--ptxas-options=-v", "--restrict", "-default-device"};
}

Compiled Compiler::compile(const Source& source, const SmCode& architecture,
                           bool line_numbers) const {
  const Library& l = *library_;
  if (!makes(architecture))
    throw MissingError(fmt::format(
        "CUDA {}.{} makes no {} code: that needs {}", l.toolkit.major, l.toolkit.minor,
        architecture.name(),
        architecture.capability == 0 ? "CUDA 12 or newer" : "a CUDA that knows this GPU"));
  const std::string text = join_headers(source.name, source.text);
  nvrtcProgram program = nullptr;
  l.check(l.create(&program, text.c_str(), source.name.c_str(), 0, nullptr, nullptr),
          "reading " + source.name);
  const auto destroy = [&l](nvrtcProgram* p) { l.destroy(p); };
  const std::unique_ptr<nvrtcProgram, decltype(destroy)> owner(&program, destroy);

  std::vector<std::string> all = options(architecture);
  if (line_numbers) all.emplace_back("--generate-line-info");
  all.push_back("--include-path=" + l.include);
  // The standard's own headers, which CUDA 13 keeps apart.
  all.push_back("--include-path=" + l.include + "/cccl");
  std::vector<const char*> arguments;
  for (const std::string& option : all) arguments.push_back(option.c_str());
  const nvrtcResult done = l.compile(program, static_cast<int>(arguments.size()), arguments.data());

  Compiled compiled;
  compiled.log = l.result<std::string>(program, l.log_size, l.log, "reading the log");
  while (!compiled.log.empty() && compiled.log.back() == '\0') compiled.log.pop_back();
  if (const std::string file = unopened_file(compiled.log); done != NVRTC_SUCCESS && !file.empty())
    throw MissingError(fmt::format(
        "the header {} of CUDA {}.{} cannot be read in {}: install the toolkit's headers again, or "
        "name another toolkit in CUDA_HOME",
        file, l.toolkit.major, l.toolkit.minor, l.include));
  if (done != NVRTC_SUCCESS)
    throw InternalError(fmt::format("{} does not compile for {}: {}\n{}", source.name,
                                    architecture.name(), l.error_string(done), compiled.log));
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
bool Compiler::makes(const SmCode&) const { return false; }
std::vector<std::string> Compiler::options(const SmCode&) const { return {}; }
Compiled Compiler::compile(const Source&, const SmCode&, bool) const { return {}; }

#endif

Compiler::~Compiler() = default;
Compiler::Compiler(Compiler&&) noexcept = default;
Compiler& Compiler::operator=(Compiler&&) noexcept = default;

}  // namespace fuseline::cuda

#include "cuda/driver/recorded_driver.h"

#if FUSELINE_HAS_CUDA

#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cuda/driver/driver_calls.h"

namespace fuseline::cuda {

namespace {

constexpr std::size_t kPlenty = std::size_t{1} << 46;
constexpr std::size_t kAligned = 256;
constexpr std::uint32_t kMapMark = 0x464d4150;

// What stands in a map's 128 bytes.
struct WrittenMap {
  std::uint32_t mark = 0;
  std::uint8_t type = 0, rank = 0, swizzle = 0, promotion = 0;
  std::uint64_t address = 0;
  std::array<std::uint64_t, 4> sizes{};
  std::array<std::uint64_t, 3> strides{};
  std::array<std::uint16_t, 4> box{};
};
static_assert(sizeof(WrittenMap) <= 128);

// Machine code as a file in memory, and the names that were asked for.
struct KeptModule {
  std::vector<char> elf;
  std::deque<std::string> functions;
};

template <class T>
T read_at(const char* bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes + at, sizeof value);
  return value;
}

// A file's size is where its last section or table ends.
std::size_t size_of_elf(const char* image) {
  const auto head = read_at<Elf64_Ehdr>(image, 0);
  std::size_t end =
      std::max<std::size_t>(head.e_shoff + std::size_t{head.e_shentsize} * head.e_shnum,
                            head.e_phoff + std::size_t{head.e_phentsize} * head.e_phnum);
  for (std::size_t i = 0; i < head.e_shnum; ++i) {
    const auto section = read_at<Elf64_Shdr>(image, head.e_shoff + i * head.e_shentsize);
    if (section.sh_type != SHT_NOBITS)
      end = std::max<std::size_t>(end, section.sh_offset + section.sh_size);
  }
  return end;
}

CUresult load_module(CUmodule* module, const void* image) {
  const char* bytes = static_cast<const char*>(image);
  if (std::memcmp(bytes, ELFMAG, SELFMAG) != 0) return CUDA_ERROR_INVALID_IMAGE;
  auto* kept = new KeptModule{{bytes, bytes + size_of_elf(bytes)}, {}};
  *module = reinterpret_cast<CUmodule>(kept);
  return CUDA_SUCCESS;
}

CUresult unload_module(CUmodule module) {
  delete reinterpret_cast<KeptModule*>(module);
  return CUDA_SUCCESS;
}

CUresult get_function(CUfunction* function, CUmodule module, const char* name) {
  auto* kept = reinterpret_cast<KeptModule*>(module);
  kept->functions.emplace_back(name);
  *function = reinterpret_cast<CUfunction>(&kept->functions.back());
  return CUDA_SUCCESS;
}

// A constant's bytes lie in its section of the file.
CUresult get_global(CUdeviceptr* address, std::size_t* size, CUmodule module, const char* name) {
  const std::vector<char>& elf = reinterpret_cast<KeptModule*>(module)->elf;
  const auto head = read_at<Elf64_Ehdr>(elf.data(), 0);
  const auto section = [&](std::size_t i) {
    return read_at<Elf64_Shdr>(elf.data(), head.e_shoff + i * head.e_shentsize);
  };
  for (std::size_t i = 0; i < head.e_shnum; ++i) {
    const Elf64_Shdr symbols = section(i);
    if (symbols.sh_type != SHT_SYMTAB) continue;
    const Elf64_Shdr names = section(symbols.sh_link);
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read_at<Elf64_Sym>(elf.data(), symbols.sh_offset + at);
      if (std::strcmp(elf.data() + names.sh_offset + symbol.st_name, name) != 0) continue;
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= head.e_shnum) continue;
      const char* bytes = elf.data() + section(symbol.st_shndx).sh_offset + symbol.st_value;
      *address = reinterpret_cast<CUdeviceptr>(bytes);
      *size = symbol.st_size;
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_NOT_FOUND;
}

// Zeros, so that what an export keeps of a workspace is not what this process had there before.
// Pages that nobody writes take no memory. What calloc gave stands in front of the aligned address.
CUresult allocate(CUdeviceptr* address, std::size_t bytes) {
  auto* const memory = static_cast<std::byte*>(std::calloc(1, bytes + 2 * kAligned));
  *address = 0;
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory) + sizeof(void*);
  const std::uintptr_t aligned = (begin + kAligned - 1) / kAligned * kAligned;
  std::memcpy(reinterpret_cast<void*>(aligned - sizeof(void*)), &memory, sizeof(void*));
  *address = aligned;
  return CUDA_SUCCESS;
}

// Addresses on this device are the host's.
template <class T>
T* on_host(CUdeviceptr address) {
  return std::bit_cast<T*>(address);
}

CUresult free_memory(CUdeviceptr address) {
  void* memory = nullptr;
  if (address != 0)
    std::memcpy(&memory, reinterpret_cast<void*>(address - sizeof(void*)), sizeof(void*));
  std::free(memory);
  return CUDA_SUCCESS;
}

CUresult upload(CUdeviceptr to, const void* from, std::size_t bytes) {
  std::memcpy(on_host<void>(to), from, bytes);
  return CUDA_SUCCESS;
}

CUresult download(void* to, CUdeviceptr from, std::size_t bytes) {
  std::memcpy(to, on_host<const void>(from), bytes);
  return CUDA_SUCCESS;
}

CUresult fill_bytes(CUdeviceptr to, unsigned char value, std::size_t count) {
  std::memset(on_host<void>(to), value, count);
  return CUDA_SUCCESS;
}

CUresult fill_words(CUdeviceptr to, unsigned value, std::size_t count) {
  std::fill_n(on_host<unsigned>(to), count, value);
  return CUDA_SUCCESS;
}

CUresult memory_info(std::size_t* free, std::size_t* total) {
  *free = *total = kPlenty;
  return CUDA_SUCCESS;
}

CUresult synchronize(CUstream) { return CUDA_SUCCESS; }
CUresult set_attribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
CUresult release_context(CUdevice) { return CUDA_SUCCESS; }

// Without the driver nobody knows what registers allow. What shared memory allows is at least the
// number of splits of a cache that a GPU keeps busy; results do not depend on it.
CUresult blocks_at_once(int* blocks, CUfunction, int threads, std::size_t shared_bytes) {
  constexpr std::size_t kSharedOfSm = std::size_t{228} * 1024, kReserved = 1024;
  const int by_threads = 512 / std::max(1, threads);
  const int by_memory = static_cast<int>(kSharedOfSm / (shared_bytes + kReserved));
  *blocks = std::max(1, std::min(by_threads, by_memory));
  return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 12000
// As many as fill a GPU of 132 multiprocessors whose groups have 16 or 18 of them.
CUresult clusters_at_once(int* clusters, CUfunction, const CUlaunchConfig* config) {
  *clusters = 120 / static_cast<int>(std::max(1U, config->gridDimX));
  return CUDA_SUCCESS;
}
#endif

CUresult error_text(CUresult, const char** text) {
  *text = "on a driver that only records";
  return CUDA_SUCCESS;
}

CUresult launch(const CUlaunchConfig*, CUfunction, void**, void**) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

#if CUDA_VERSION >= 12000
CUresult encode_map(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                    const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                    const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill) {
  WrittenMap w;
  w.mark = kMapMark;
  w.type = static_cast<std::uint8_t>(type);
  w.rank = static_cast<std::uint8_t>(rank);
  w.swizzle = static_cast<std::uint8_t>(swizzle);
  w.promotion = static_cast<std::uint8_t>(promotion);
  w.address = reinterpret_cast<std::uint64_t>(address);
  for (cuuint32_t i = 0; i < rank; ++i) {
    w.sizes[i] = sizes[i];
    if (i + 1 < rank) w.strides[i] = strides[i];
    w.box[i] = static_cast<std::uint16_t>(box[i]);
  }
  std::memset(map, 0, sizeof *map);
  std::memcpy(map, &w, sizeof w);
  return CUDA_SUCCESS;
}
#endif

}  // namespace

Device recorded_device(DeviceInfo as) {
  DriverCalls calls{DriverCalls::Empty{}};
  calls.error_name = error_text;
  calls.error_string = error_text;
  calls.memory_info = memory_info;
  calls.allocate = allocate;
  calls.free = free_memory;
  calls.fill_bytes = fill_bytes;
  calls.fill_words = fill_words;
  calls.upload = upload;
  calls.download = download;
  calls.load_module = load_module;
  calls.unload_module = unload_module;
  calls.get_function = get_function;
  calls.get_global = get_global;
  calls.set_function_attribute = set_attribute;
  calls.blocks_at_once = blocks_at_once;
  calls.synchronize_stream = synchronize;
  calls.query_stream = synchronize;
  calls.release_context = release_context;
  calls.launch = launch;
#if CUDA_VERSION >= 12000
  calls.encode_tensor_map = encode_map;
  calls.clusters_at_once = clusters_at_once;
#endif
  return {std::make_shared<const DriverCalls>(std::move(calls)), std::move(as)};
}

std::optional<RecordedMap> recorded_map(std::span<const std::byte> bytes) {
  WrittenMap w;
  if (bytes.size() < sizeof w) return std::nullopt;
  std::memcpy(&w, bytes.data(), sizeof w);
  if (w.mark != kMapMark) return std::nullopt;
  RecordedMap map{.address = w.address,
                  .type = w.type,
                  .rank = w.rank,
                  .swizzle = w.swizzle,
                  .promotion = w.promotion,
                  .sizes = w.sizes,
                  .strides = w.strides};
  for (std::size_t i = 0; i < map.box.size(); ++i) map.box[i] = w.box[i];
  return map;
}

}  // namespace fuseline::cuda

#endif

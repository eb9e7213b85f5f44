#include "cuda/compile/cubin_cache.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>
#include <boost/crc.hpp>

#include "base/error.h"
#include "base/output_file.h"

namespace fuseline::cuda {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kMagic = "fuseline cubin 1\n";

std::uint64_t checksum(const char* data, std::size_t size) {
  boost::crc_optimal<64, 0x42F0E1EBA9EA3693ULL, ~0ULL, ~0ULL, false, false> crc;
  crc.process_bytes(data, size);
  return crc.checksum();
}

// Head of a file: what it must begin with for this key and this code. The whole key is kept, so
// that two keys with one checksum are still told apart.
std::string head(std::string_view key, const char* code, std::size_t size) {
  return fmt::format("{}{} {} {:016x}\n{}\n", kMagic, key.size(), size, checksum(code, size), key);
}

std::optional<std::string> read_file(const fs::path& path) {
  std::error_code missing;
  if (!fs::is_regular_file(path, missing)) return std::nullopt;  // opening a pipe would wait
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return std::nullopt;
  return text;
}

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

CubinCache::CubinCache(fs::path folder, Bytes bound) : folder_(std::move(folder)), bound_(bound) {}

CubinCache CubinCache::standard() {
  const Bytes bound(std::int64_t{256} << 20);
  if (const char* given = variable("FUSELINE_CACHE_DIR")) return {given, bound};
  if (const char* cache = variable("XDG_CACHE_HOME")) return {fs::path(cache) / "fuseline", bound};
  if (const char* home = variable("HOME")) return {fs::path(home) / ".cache/fuseline", bound};
  std::error_code none;
  return {fs::temp_directory_path(none) / "fuseline-cache", bound};
}

fs::path CubinCache::file_of(std::string_view key) const {
  return folder_ / fmt::format("{:016x}.cubin", checksum(key.data(), key.size()));
}

std::optional<std::vector<char>> CubinCache::find(std::string_view key) const {
  const fs::path path = file_of(key);
  const auto text = read_file(path);
  if (!text) return std::nullopt;
  // "MAGIC keysize codesize checksum\n key \n code"
  const std::size_t line = text->find('\n', kMagic.size());
  if (line == std::string::npos || line + 2 + key.size() > text->size()) return std::nullopt;
  const std::size_t start = line + 1 + key.size() + 1;
  const std::size_t size = text->size() - start;
  if (text->compare(0, start, head(key, text->data() + start, size)) != 0) return std::nullopt;
  std::error_code ignored;  // the time of last use orders what goes first
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return std::vector<char>(text->begin() + static_cast<std::ptrdiff_t>(start), text->end());
}

void CubinCache::store(std::string_view key, const std::vector<char>& cubin) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return;
  const fs::path path = file_of(key);
  try {
    replace_file(path,
                 head(key, cubin.data(), cubin.size()) + std::string(cubin.data(), cubin.size()));
  } catch (const InputError&) {
    return;
  }
  shrink();
}

void CubinCache::shrink() const {
  struct File {
    fs::path path;
    fs::file_time_type used;
    std::int64_t size;
  };
  std::vector<File> files;
  std::int64_t sum = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".cubin") continue;
    std::error_code gone;  // another process may tidy up at the same time
    const auto used = it->last_write_time(gone);
    const auto size = static_cast<std::int64_t>(it->file_size(gone));
    if (gone) continue;
    files.push_back({it->path(), used, size});
    sum += size;
  }
  std::ranges::sort(files, {}, &File::used);
  for (const File& file : files) {
    if (sum <= bound_.value()) return;
    if (fs::remove(file.path, error)) sum -= file.size;
  }
}

}  // namespace fuseline::cuda

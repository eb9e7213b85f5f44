#include "base/zip_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zip.h>

#include <array>
#include <fstream>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/path_kind.h"

namespace fuseline {
namespace {

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, Discard>;
using Entry = std::unique_ptr<zip_file_t, Discard>;

[[noreturn]] void damaged(const std::filesystem::path& path, const std::string& reason) {
  throw InputError({.file = path.string(),
                    .message = "the archive cannot be read: " + reason,
                    .allowed = "a whole zip archive"});
}

Archive open_archive(const std::filesystem::path& path) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  damaged(path, reason);
}

std::optional<zip_uint64_t> find_entry(zip_t* archive, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (zip_int64_t i = 0; i < zip_get_num_entries(archive, 0); ++i) {
      const char* text = zip_get_name(archive, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_GUESS);
      if (text == nullptr) continue;
      const std::string entry = text;
      if (entry == name || entry.ends_with("/" + name)) return static_cast<zip_uint64_t>(i);
    }
  }
  return std::nullopt;
}

}  // namespace

bool is_zip_file(const std::filesystem::path& path) {
  if (kind_of_path(path) != PathKind::regular) return false;
  std::ifstream file(path, std::ios::binary);
  std::array<char, 4> begin{};
  file.read(begin.data(), begin.size());
  return file.gcount() == 4 && begin == std::array<char, 4>{'P', 'K', 3, 4};
}

std::string read_zip_entry(const std::filesystem::path& path, const std::vector<std::string>& names,
                           Bytes limit) {
  const Archive archive = open_archive(path);
  const std::optional<zip_uint64_t> index = find_entry(archive.get(), names);
  if (!index)
    throw InputError({.file = path.string(),
                      .message = "the archive has no such file",
                      .allowed = fmt::format("{}", fmt::join(names, " or "))});
  zip_stat_t stat;
  if (zip_stat_index(archive.get(), *index, 0, &stat) != 0 || (stat.valid & ZIP_STAT_SIZE) == 0)
    damaged(path, zip_strerror(archive.get()));
  if (stat.size > static_cast<zip_uint64_t>(limit.value()))
    throw InputError({.file = path.string(),
                      .field = stat.name,
                      .value = fmt::format("{} bytes", stat.size),
                      .message = "is too large",
                      .allowed = fmt::format("at most {} bytes", limit.value())});
  const Entry entry(zip_fopen_index(archive.get(), *index, 0));
  if (!entry) damaged(path, zip_strerror(archive.get()));
  std::string text(stat.size, '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const zip_int64_t got = zip_fread(entry.get(), text.data() + have, text.size() - have);
    if (got <= 0) damaged(path, std::string(stat.name) + " ends early, or its sum is wrong");
    have += static_cast<std::size_t>(got);
  }
  // The checksum is compared when nothing is left to read.
  char more = 0;
  if (zip_fread(entry.get(), &more, 1) != 0) damaged(path, std::string(stat.name) + " is damaged");
  return text;
}

}  // namespace fuseline

#include "model/data_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

#include "model/data_dir.h"
#include "model/error.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Takes the leading run of digits, without leading zeros.
std::string_view take_number(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

// Character order, but runs of digits compare as numbers.
bool natural_less(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view x = take_number(a);
      const std::string_view y = take_number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

[[noreturn]] void refuse_file(const fs::path& path, const std::string& message,
                              const std::string& allowed = {}) {
  throw InputError({.file = path.string(), .message = message, .allowed = allowed});
}

}  // namespace

std::string read_input_file(const fs::path& path, Bytes limit) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (status.type() == fs::file_type::not_found) refuse_file(path, "no such file");
  if (failed) refuse_file(path, "cannot be read: " + failed.message());
  if (fs::is_directory(status)) refuse_file(path, "is a folder", "a file");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse_file(path, std::string("cannot be read: ") + std::strerror(errno));

  const auto most = static_cast<std::size_t>(limit.value());
  std::string text;
  std::array<char, 16384> chunk{};
  while (in && text.size() <= most) {
    in.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    text.append(chunk.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) refuse_file(path, std::string("cannot be read: ") + std::strerror(errno));
  if (text.size() > most) {
    refuse_file(path, "is too large", fmt::format("up to {} bytes", limit.value()));
  }
  if (text.empty()) refuse_file(path, "the file is empty");
  return text;
}

std::vector<std::string> data_file_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(data_dir() / folder)) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored) && entry.path().extension() == ".toml") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end(), natural_less);
  return names;
}

bool looks_like_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".toml") || text.ends_with(".json");
}

fs::path find_data_file(const std::string& name_or_path, const DataFileKind& kind,
                        const std::map<std::string, std::string>& aliases) {
  const auto shipped = [&kind](const std::string& name) {
    return data_dir() / kind.folder / (name + ".toml");
  };
  std::vector<std::string> names = data_file_names(kind.folder);
  if (std::find(names.begin(), names.end(), name_or_path) != names.end()) {
    return shipped(name_or_path);
  }
  if (const auto alias = aliases.find(name_or_path); alias != aliases.end()) {
    return shipped(alias->second);
  }
  std::error_code ignored;
  if (!name_or_path.empty() && fs::exists(name_or_path, ignored)) return name_or_path;

  const bool path = looks_like_path(name_or_path);
  const std::string allowed = fmt::format("{}, or a path", fmt::join(names, ", "));
  for (const auto& [alias, name] : aliases) names.push_back(alias);
  // Where a path is wrong the folder may be right or not; only its last part is compared.
  const std::string compared = path ? fs::path(name_or_path).stem().string() : name_or_path;
  throw InputError({.field = kind.field,
                    .value = name_or_path,
                    .message = path ? "no such file" : "unknown " + kind.field,
                    .allowed = allowed,
                    .nearest = nearest_name(compared, names)});
}

fs::path relative_to_file(const std::string& path, const fs::path& file) {
  return (file.parent_path() / path).lexically_normal();
}

}  // namespace fuseline

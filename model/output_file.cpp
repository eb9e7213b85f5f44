#include "model/output_file.h"

#include <unistd.h>

#include <fstream>
#include <system_error>

#include "model/error.h"

namespace fuseline {

namespace fs = std::filesystem;

void replace_file(const fs::path& path, const std::string& text) {
  const auto fail = [&](const std::string& message) {
    throw InputError({.file = path.string(),
                      .message = message,
                      .allowed = "a file in a folder that exists and can be written"});
  };
  std::error_code error;
  if (path.empty()) fail("is empty");
  if (fs::is_directory(path, error)) fail("is a folder");
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error)) fail("its folder does not exist");

  const fs::path draft =
      folder / (path.filename().string() + "." + std::to_string(getpid()) + ".part");
  {
    std::ofstream out(draft, std::ios::binary | std::ios::trunc);
    if (!out) fail("cannot be written");
    out << text << std::flush;
    if (!out) {
      out.close();
      fs::remove(draft, error);
      fail("cannot be written");
    }
  }
  fs::rename(draft, path, error);
  if (error) {
    const std::string reason = error.message();
    fs::remove(draft, error);
    fail("cannot be written: " + reason);
  }
}

}  // namespace fuseline

#include "cli/export_output.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/output_folder.h"
#include "cli/options.h"
#include "cli/table.h"
#include "cuda/export/export_files.h"

namespace fuseline {

namespace {

namespace fs = std::filesystem;

constexpr const char* kMarkOfExports = "kernels.json";

[[noreturn]] void refuse_folder(const std::string& folder, const std::string& message,
                                const std::string& allowed = {}) {
  throw InputError({.file = kCommandLine,
                    .field = "--to",
                    .value = folder,
                    .message = message,
                    .allowed = allowed});
}

}  // namespace

void check_export_folder(const std::string& folder, bool force) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (fs::exists(status) && !fs::is_directory(status)) refuse_folder(folder, "is no folder");
  if (fs::is_directory(status) && !fs::is_empty(folder, error)) {
    if (!force) refuse_folder(folder, "has something in it", "a new or empty folder, or --force");
    // --force never removes what somebody else put there.
    if (!fs::exists(fs::path(folder) / kMarkOfExports, error))
      refuse_folder(
          folder,
          fmt::format("has something in it and no {}: it is no exported folder", kMarkOfExports),
          "a new or empty folder");
  }
  const OutputFolder possible(folder);  // its folder can be written to
}

void write_export(const cuda::Exported& e, const std::string& folder, bool force) {
  check_export_folder(folder, force);
  OutputFolder made(folder);
  std::error_code error;
  for (const auto& [name, text] : cuda::export_files(e)) {
    const fs::path path = made.path() / name;
    fs::create_directories(path.parent_path(), error);
    std::ofstream out(path, std::ios::binary);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    if (!out.flush()) refuse_folder(folder, name + " cannot be written there");
  }
  made.take_place();
}

std::string export_text_of(const cuda::Exported& e, const std::string& folder) {
  std::string text = fmt::format("{}: {} for {} ({}, {})\n", folder, e.name, e.gpu_title,
                                 e.architecture, e.toolkit);
  for (const cuda::RecordedCode& c : e.codes)
    text += fmt::format("  {:<44} .cu .ptx .cubin ({} bytes)\n", c.name, c.cubin.size());
  for (const cuda::ExportedOperator& o : e.operators)
    text += fmt::format("operator {}: {} launches, {} inputs, {} outputs, gradient: {}\n", o.name,
                        o.launches.size(), o.inputs.size() + o.changed.size(), o.outputs.size(),
                        o.gradient.empty() ? "none is known" : o.gradient);
  if (!e.no_gradient.empty()) text += wrap("no gradient: " + e.no_gradient);
  return text +
         "fuseline_kernels.h and .c for C, fuseline_kernels.py for Python; README.md says "
         "how\n";
}

nlohmann::ordered_json export_json_of(const cuda::Exported& e, const std::string& folder) {
  nlohmann::ordered_json operators = nlohmann::ordered_json::array();
  for (const cuda::ExportedOperator& o : e.operators)
    operators.push_back(
        {{"name", o.name}, {"launches", o.launches.size()}, {"gradient", o.gradient}});
  return {{"folder", folder},
          {"architecture", e.architecture},
          {"toolkit", e.toolkit},
          {"kernels", e.codes.size()},
          {"operators", std::move(operators)},
          {"no_gradient", e.no_gradient}};
}

}  // namespace fuseline

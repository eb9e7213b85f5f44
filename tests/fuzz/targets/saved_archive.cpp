// An archive that torch.export.save() wrote (import graph FILE.pt2).
#include "base/data_files.h"
#include "base/zip_file.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered saved_archive({.name = "saved_archive",
                                .dictionary = "bytes",
                                .seeds = {},
                                .read = [](const std::string& bytes) {
                                  const std::string path = file_with(bytes, "fuzz.pt2");
                                  if (!is_zip_file(path)) return;
                                  static_cast<void>(read_zip_entry(
                                      path,
                                      {"models/model.json", "serialized_exported_program.json"},
                                      Bytes(1 << 24)));
                                }});

}  // namespace
}  // namespace fuseline::fuzz

// fuseline import graph: a block's text from a graph that PyTorch saved.
#include <fmt/format.h>

#include "base/data_files.h"
#include "base/error.h"
#include "base/zip_file.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "model/import/import_graph.h"
#include "model/import/saved_graph.h"

namespace fuseline {

namespace {

// Of an archive that torch.export.save() wrote only the program is read, not the weights.
std::string graph_text(const std::string& file) {
  const Bytes limit(kLargestGraphFile);
  if (!is_zip_file(file)) return read_input_file(file, limit);
  return read_zip_entry(file, {"models/model.json", "serialized_exported_program.json"}, limit);
}

}  // namespace

CommandResult import_graph_command(const Arguments& args) {
  std::vector<std::string> files;
  std::optional<std::string> name, mask, output;
  ImportOptions import;
  Options options("import graph",
                  "Writes a block's text from a graph of a PyTorch module: a file of "
                  "scripts/export_block.py,\na .pt2 archive that torch.export.save() wrote, or the "
                  "JSON in it.",
                  {"fuseline import graph layer.json --output layer.block",
                   "fuseline predict --block layer.block --gpu h200"});
  options.positional("FILE", "the saved graph", files, 1);
  options.text("--name", "NAME", "of the block (after the file)", name);
  options.flag("--separate", "keep products of one tensor apart, as the module has them",
               import.separate);
  options.text("--mask", "causal|none",
               "what a mask lets tokens see whose numbers are not saved (causal)", mask);
  options.text("--output", "FILE", "the block file to write (standard output)", output);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  if (files.empty())
    throw InputError({.file = kCommandLine,
                      .field = "FILE",
                      .message = "is missing",
                      .allowed = "a graph that scripts/export_block.py or torch.export wrote"});
  import.name = name.value_or("");
  if (mask && parse_word("--mask", *mask, {"causal", "none"}) == "none")
    import.mask = ImportedMask::none;

  const std::string& file = files.front();
  const ImportedBlock block = import_graph(graph_text(file), file, import);
  CommandResult result;
  for (const std::string& remark : block.remarks)
    result.messages += "fuseline: note: " + remark + "\n";
  if (!output) {
    result.output = block.text;
    return result;
  }
  write_file_atomically(*output, block.text);
  result.messages +=
      fmt::format("fuseline: written {0}; see fuseline predict --block {0}\n", *output);
  return result;
}

}  // namespace fuseline

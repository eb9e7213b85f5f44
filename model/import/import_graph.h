// A block's text from a graph that PyTorch saved.
#pragma once

#include <string>
#include <vector>

namespace fuseline {

enum class ImportedMask { causal, none };

struct ImportOptions {
  std::string name{};     // of the block; empty: after the file
  bool separate = false;  // products of one tensor stay apart
  // What a mask lets every token see that the graph reads but whose numbers are not saved.
  ImportedMask mask = ImportedMask::causal;
};

struct ImportedBlock {
  std::string text;                  // as block_file_text() writes it
  std::vector<std::string> remarks;  // what was assumed; they stand in the text too
};

// `text` is that of the file at `path`: a form that read_saved_graph() reads. The sizes of the
// example become the block's defaults. InputError: what read_saved_graph() refuses; operators
// without a counterpart, each with the module's file and line.
ImportedBlock import_graph(const std::string& text, const std::string& path,
                           const ImportOptions& options = {});

}  // namespace fuseline

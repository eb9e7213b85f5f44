// A block as text: read, with the parts that it uses, and made into a graph for sizes and a
// workload.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "model/blocks/syntax.h"
#include "model/config/config.h"
#include "model/graph.h"

namespace fuseline {

// Parts within parts.
inline constexpr int kDeepestParts = 16;

class BlockText {
 public:
  // The file's own text; parts of the files that it uses are read too. InputError: what
  // parse_block_file() refuses, a file that is not there, files that use each other in a circle,
  // two parts of one name, a call of a part within itself, a name that is never given.
  static std::shared_ptr<const BlockText> parse(const std::string& text, const std::string& file);

  [[nodiscard]] const BlockFile& file() const { return files_.front(); }
  // The block. InputError where the file holds parts only.
  [[nodiscard]] const Definition& block() const;
  [[nodiscard]] const std::string& name() const { return block().name; }

  // A part or the block, and the text that holds it.
  struct Found {
    const Definition* definition = nullptr;
    const SourceText* source = nullptr;
  };
  [[nodiscard]] Found part(const std::string& name) const;  // null: there is none
  [[nodiscard]] std::vector<std::string> part_names() const;
  // Whether the block, or a part of its files, calls that function.
  [[nodiscard]] bool calls(const std::string& function) const;

 private:
  std::vector<BlockFile> files_;  // the block's own first
  std::map<std::string, Found> parts_;
};

// By a name of scenarios/blocks, or by a path.
std::shared_ptr<const BlockText> load_block_text(const std::string& name_or_path);
std::vector<std::string> block_names();

// The graph of the forward pass. `values` may hold more than the block asks for. InputError: a
// parameter without a value, and all that does not fit: shapes, names, sizes that are not whole.
Graph build_graph(const BlockText& text, const ParameterValues& values, const Workload& workload);

// Of a block all of whose parameters have one. InputError: one has none.
ParameterValues default_values(const BlockText& text);

// The parameters that the block has beside their defaults, for checks of what a model gives.
std::vector<std::string> parameter_names(const BlockText& text);

}  // namespace fuseline

// The nodes of a graph while it is read, by their names. Every form of file gives its nodes here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/import/json_place.h"
#include "model/import/saved_graph.h"

namespace fuseline {

class GraphNames {
 public:
  explicit GraphNames(SavedGraph& graph) : graph_(graph) {}

  // InputError: a name that is empty or given twice, too many nodes.
  void add(SavedNode node, const JsonPlace& at);
  // InputError with the nearest name: nothing above is called so.
  [[nodiscard]] NodeRef find(const std::string& name, const JsonPlace& at) const;

 private:
  SavedGraph& graph_;
  std::map<std::string, std::size_t> places_;
};

// Sizes of a tensor. InputError: a size beyond kLargestDimension, too many dimensions or elements,
// a size below `least`. A call may give no elements (0): the columns behind a whole head's
// rotation.
std::vector<std::int64_t> checked_shape(const std::vector<std::int64_t>& sizes, const JsonPlace& at,
                                        std::int64_t least = 1);

// Of the text of a traceback the last place that is no library's own, else the last.
void take_place(SavedNode& node, const std::string& stack_trace);

// The forms of files. Both give nodes in order and outputs.
SavedGraph read_own_graph(const JsonPlace& top, const std::string& path);
SavedGraph read_exported_program(const JsonPlace& top, const std::string& path);

}  // namespace fuseline

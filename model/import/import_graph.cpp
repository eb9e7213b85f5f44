#include "model/import/import_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "model/blocks/block_text.h"
#include "model/import/saved_graph.h"
#include "model/import/step_names.h"
#include "model/import/translator.h"

namespace fuseline {

namespace {

std::string block_name(const ImportOptions& options, const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  return language_name(options.name.empty() ? stem : options.name, "imported");
}

std::vector<std::string> remarks_of(const Draft& draft) {
  std::vector<std::string> remarks;
  const auto take = [&](const std::string& remark) {
    if (std::find(remarks.begin(), remarks.end(), remark) == remarks.end())
      remarks.push_back(remark);
  };
  for (const DraftStep& step : draft.steps)
    if (step.live)
      for (const std::string& remark : step.remarks) take(remark);
  for (const std::string& remark : draft.remarks) take(remark);
  return remarks;
}

// Text that another program wrote, in one line of a remark.
std::string one_line(std::string text) {
  constexpr std::size_t kLongest = 600;
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7F') c = ' ';
  return text.substr(0, kLongest);
}

}  // namespace

ImportedBlock import_graph(const std::string& text, const std::string& path,
                           const ImportOptions& options) {
  const SavedGraph graph = read_saved_graph(text, path);
  const std::string name = block_name(options, path);
  ImportedBlock block;
  std::vector<std::string> lines;
  try {
    Draft draft = Translator(graph, options).translate();
    draft.mark_live();
    join_products(draft, options.separate);
    draft.mark_live();
    draft.put_in_order_of_need();
    const std::string file = std::filesystem::path(path).filename().string();
    lines.push_back(one_line(fmt::format("Imported from {}{}.", file,
                                         graph.made_by.empty() ? "" : " (" + graph.made_by + ")")));
    block.remarks = remarks_of(draft);
    for (std::string& remark : block.remarks) remark = one_line(std::move(remark));
    for (const std::string& remark : block.remarks) lines.push_back(remark + ".");
    block.text = draft_text(draft, name, lines);
    // What cannot be built is told now, with the sizes of the example.
    const Workload example{.batch = draft.batch, .seq = draft.tokens};
    build_graph(*BlockText::parse(block.text, name), {}, example);
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    if (problem.file != path) {
      // Of the text that was made, not of a file of the user's.
      problem.message = fmt::format("the graph is read, but the block that it gives is refused: {}",
                                    problem.message);
      problem.file = path;
      problem.line = problem.column = 0;
    }
    throw InputError(std::move(problem));
  }
  return block;
}

}  // namespace fuseline

// The data of every view as files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gui/model/document.h"
#include "gui/model/results.h"
#include "gui/model/sweep.h"
#include "gui/model/table.h"
#include "gui/model/waterfall.h"

namespace fuseline::gui {

// What takes longer to compute is exported when it is there.
struct ExportInput {
  const Results* results = nullptr;
  std::optional<Waterfall> waterfall{};
  std::optional<SweepChart> sweep{};
};

struct ExportFile {
  std::string name;  // "traffic.csv"; unique, letters, digits, '-', '_' and one dot
  std::string text;
};

// Tables of runs, graph, traffic (by kernel and by tensor), roofline (HBM, L2), memory, timeline,
// kernels, validation, each as CSV and JSON; those of one run have its name in theirs. Then
// predictions.json, what `fuseline predict --format json` prints for the runs of one setup
// (predictions-2.json and so on for pinned ones).
std::vector<ExportFile> export_data(const ExportInput& input);

// Makes the folder if need be. InputError when a file cannot be written.
void write_files(const std::filesystem::path& folder, const std::vector<ExportFile>& files);

// One line a run: what the list of runs shows.
Table runs_table(const Results& results);

}  // namespace fuseline::gui

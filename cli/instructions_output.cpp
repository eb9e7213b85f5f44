#include "cli/instructions_output.h"

#include <fmt/format.h>

#include "base/csv_text.h"
#include "base/error.h"
#include "cli/options.h"

namespace fuseline {

std::string instructions_csv(const cuda::GpuMeasurement& m) {
  std::string text =
      "sm,index,step,begin_ns,data_ns,end_ns,predicted_begin_ns,predicted_end_ns,instruction\n";
  bool any = false;
  for (const cuda::MeasuredPolicy& p : m.policies)
    for (const cuda::InstructionTime& i : p.instructions) {
      any = true;
      text += fmt::format("{},{},{},{},{},{},{},{},{}\n", i.sm, i.index, i.step, i.begin, i.data,
                          i.end, i.predicted_begin, i.predicted_end, csv_cell(i.text));
    }
  if (!any)
    throw InputError({.file = kCommandLine,
                      .field = "--instructions",
                      .message = "is empty: no kernel that was measured has instructions",
                      .allowed = "policy whole-block among those of --policy"});
  return text;
}

}  // namespace fuseline

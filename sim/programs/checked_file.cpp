#include "sim/programs/checked_file.h"

#include <set>
#include <utility>

#include "base/error.h"
#include "model/programs/legality.h"
#include "model/programs/resized.h"
#include "sim/programs/tile_check.h"

namespace fuseline {

std::vector<Diagnosis> mistakes_on(const ProgramFile& file, const Gpu& gpu) {
  std::vector<Diagnosis> mistakes = check_programs(file);
  if (mistakes.empty()) mistakes = check_tiles(file, gpu);
  sort_by_line(mistakes);
  return mistakes;
}

ProgramFile with_sizes(const ProgramFile& file, const std::map<std::string, std::int64_t>& sizes,
                       const InputProblem& field) {
  std::set<std::string> known;
  const std::string text = resized(file.source->text, sizes, &known);
  for (const auto& [letter, size] : sizes) {
    if (known.contains(letter)) continue;
    InputProblem problem = field;
    problem.value = letter;
    problem.message = "no line \"size\" of the file has this letter";
    throw InputError(problem);
  }
  return read_program_text(text, file.source->file);
}

}  // namespace fuseline

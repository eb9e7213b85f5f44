// Programs and plans as text (*.fuse). A legal file reads back as itself once it is printed.
#include <stdexcept>

#include "base/error.h"
#include "model/programs/legality.h"
#include "model/programs/program_file.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

void read_program(const std::string& bytes) {
  const ProgramFile file = read_program_text(bytes, "fuzz.fuse");
  if (!file.readable()) throw InputError({.file = "fuzz.fuse", .message = "is refused"});
  if (!check_programs(file).empty())
    throw InputError({.file = "fuzz.fuse", .message = "is not legal"});
  const std::string printed = plan_text(file.plan, file.target);
  const ProgramFile again = read_program_text(printed, "again.fuse");
  if (!again.readable())
    throw std::logic_error("what was printed cannot be read:\n" + printed +
                           again.diagnoses.front().problem.message);
  if (plan_text(again.plan, again.target) != printed)
    throw std::logic_error("what was printed reads back as another plan:\n" + printed);
}

const Registered program_text({.name = "program_text",
                               .dictionary = "program",
                               .seeds = {"docs/handbook/*.fuse", "scenarios/programs/*.fuse",
                                         "tests/error/programs/*.fuse"},
                               .read = read_program});

}  // namespace
}  // namespace fuseline::fuzz

// Compiles a student's function with its harness and runs it on cases.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "lab/case_memory.h"
#include "lab/function_key.h"
#include "lab/sandbox.h"

namespace fuseline::lab {

class ScratchFolder : public TemporaryFolder {
 public:
  ScratchFolder() : TemporaryFolder("fuseline-lab") {}
};

// Puts the program `check` into the scratch folder; gives the bytes of the source's static storage,
// which is on chip all the time. InputError (the source as file) when it does not compile, with the
// compiler's first lines; TrickError when it calls what would get around the counting; MissingError
// without a compiler ($CXX, else c++).
Bytes compile_student_code(const std::filesystem::path& source, const std::string& harness,
                           const ScratchFolder& scratch);

// What a run left behind. `problem`: why it gave no result; everything else is then empty.
struct CaseRun {
  std::string problem;
  bool trick = false;                          // the problem is that it spoke in place of the check
  std::map<std::string, AccessCounts> counts;  // by matrix
  std::map<std::string, std::vector<double>> targets;  // values by matrix
  Bytes on_chip;                                       // most held at once, without static storage
  std::string printed;                                 // by the student's code
};

CaseRun run_student_code(const FunctionCase& what, const ScratchFolder& scratch);

// What a function of a lab may take.
SandboxLimits student_limits();

}  // namespace fuseline::lab

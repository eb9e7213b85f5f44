// What the readers of a file's statements share: where they are in the text, and what they read.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "model/programs/program_file.h"
#include "model/programs/program_reader.h"
#include "model/text/token_cursor.h"

namespace fuseline {

struct FileReading {
  explicit FileReading(std::shared_ptr<const SourceText> source);

  // Runs what reads a statement; what it throws is a diagnosis, and reading goes on behind it.
  template <class F>
  void guarded(F f) {
    try {
      f();
    } catch (const InputError& e) {
      Diagnosis d = diagnosis_of(e);
      if (!d.rule.empty()) out.diagnoses.push_back(std::move(d));
      skip_statement(cursor);
    }
  }

  [[noreturn]] void refuse(Position at, const char* rule, InputProblem problem,
                           std::string mend = {}) const;
  // What the name at the cursor stands for; `what`: what is expected there.
  TensorId tensor_of(const Graph& graph, const char* what);
  OpId op_of(const Graph& graph);

  TokenCursor cursor;
  ProgramFile out;
};

}  // namespace fuseline

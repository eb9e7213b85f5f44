// Reads the lines of one program: its prologue, its mainloop, its body.
#pragma once

#include <string>
#include <vector>

#include "model/programs/line_reader.h"
#include "model/programs/program_file.h"

namespace fuseline {

class ProgramReader {
 public:
  // All must outlive it.
  ProgramReader(TokenCursor& cursor, const Graph& graph, const Sizes& sizes,
                const std::vector<DefinedFunction>& functions)
      : cursor_(cursor), graph_(graph), sizes_(sizes), functions_(functions) {}

  // The cursor stands at the first of the indented lines. What cannot be read is added to
  // `diagnoses`, and the line is left out.
  Program read(const std::string& name, ProgramPlaces& places, std::vector<Diagnosis>& diagnoses);

 private:
  void line(LineReader& reader);
  LineHead head();
  bool mainloop(LineReader& reader, LineHead& head);
  Primitive primitive(LineReader& reader, const LineHead& head);
  Primitive by_pattern(LineReader& reader, const LineHead& head);
  [[noreturn]] void unknown(const LineHead& head) const;

  TokenCursor& cursor_;
  const Graph& graph_;
  const Sizes& sizes_;
  const std::vector<DefinedFunction>& functions_;
  ValueNames values_;
  Program program_;
  bool has_mainloop_ = false, tried_mainloop_ = false;
  LineHead failed_;  // of the line that is read: its results are spoilt when it fails
};

// Behind a line that could not be read: on to the next statement, past what is indented below.
void skip_statement(TokenCursor& cursor);
Diagnosis diagnosis_of(const InputError& error);

}  // namespace fuseline

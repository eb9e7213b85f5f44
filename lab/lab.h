// A lab: its tasks with the keys for one student, computed when it is made, and what is known of
// wrong answers.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/units.h"
#include "lab/function_key.h"
#include "lab/quantity.h"
#include "lab/student.h"
#include "model/config/config.h"

namespace fuseline::lab {

// A value that a known mistake leads to, in base units, and what to say of it.
struct Mistake {
  double value = 0;
  std::string diagnosis;
};

struct NumberKey {
  double value = 0;  // in base units
  Dimension dimension = Dimension::plain;
  std::string unit;  // to show; empty for plain
  int digits = 3;    // significant digits asked for; 0: exact whole number
  std::vector<Mistake> mistakes;
};

struct Option {
  std::string word;       // "b", or "hbm"
  std::string text;       // what "b" says; empty where the word says it all
  std::string diagnosis;  // of choosing it; empty: the right one
};

// Exactly one option is right. Those with a text come in an order of the student's own.
struct ChoiceKey {
  std::vector<Option> options;
};

// plan.toml in the lab's folder: policy `custom` of this block, legal, with at most so many bytes
// (each kernel's distinct operands once).
struct PlanKey {
  ModelConfig model;
  Workload workload;
  Bytes most;
  std::vector<Mistake> mistakes;        // byte totals of plans that forget something
  std::vector<std::string> left_out{};  // rewrites that it may not use
};

// A file of programs (docs/reference/programs.md) in the lab's folder: legal on a GPU, with the
// same given tensors as `wanted`, computing what `wanted` stores to `outputs`, in at most so many
// bytes (each kernel's distinct operands once).
struct ProgramKey {
  struct KnownMistake {
    std::string text;  // of a file that makes it
    std::string diagnosis;
  };
  std::string file = "program.fuse";
  std::string gpu;
  double factor = 1;   // stands in the student's task, and in no tensor
  std::string head;    // version, sizes and tensors, as the student gets them
  std::string wanted;  // a whole file that computes it; not shown
  std::vector<std::string> outputs;
  Bytes most;
  std::vector<KnownMistake> mistakes;
};

using Key = std::variant<NumberKey, ChoiceKey, PlanKey, FunctionKey, ProgramKey>;

struct Task {
  std::string id;    // "1.3"
  std::string text;  // Markdown
  Key key;
  std::vector<std::string> hints;  // from a nudge to nearly the answer
  int points = 1;
};

struct Lab {
  int number = 0;
  std::string folder;  // below docs/labs: "01-count-the-bytes"
  std::string title;
  std::string intro;  // of the task sheet: the student's shapes
  std::vector<Task> tasks;
};

// What lab/labs/ says of a lab, each in a file of its own. Their names begin with lab_ and the
// number.
struct LabDescription {
  const char* folder;  // below docs/labs
  const char* title;
  Lab (*make)(const Student&);
};

int lab_count();

// InputError for a number that is not from 0 to lab_count() - 1.
Lab make_lab(int number, const Student& student);

// "01-count-the-bytes", "count the bytes"; InputError as above.
std::string lab_folder(int number);
std::string lab_title(int number);

int points_of(const Lab& lab);

}  // namespace fuseline::lab

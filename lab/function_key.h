// A function that a student writes: what it is run on, and how its results and counts are judged.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"

namespace fuseline::lab {

// A row-major matrix of a case. A source holds values that bf16 can express; a target's are the
// fp64 reference.
struct CaseMatrix {
  std::string name;
  std::int64_t rows = 0, cols = 0;
  bool target = false;
  std::vector<double> values;
  double tolerance = 0;  // of a target: relative L2
  // Of a source: elements loaded by a function that does what is asked. Of a target: its elements.
  std::int64_t accesses = 0;
  std::int64_t element_bytes = 2;
};

// What a GEMM's mainloop hands out tile by tile, in fp32; tile 0: the case has none.
struct Mainloop {
  std::int64_t rows = 0, cols = 0, tile = 0;
  std::vector<float> values;
};

// A known mistake that the results show: what `target` holds then.
struct ValueMistake {
  std::string target;
  std::vector<double> values;
  std::string diagnosis;
};

struct FunctionCase {
  std::string name;     // "public 1: 5 rows of 96"
  bool hidden = false;  // its sizes are not shown
  std::map<std::string, double> numbers;
  std::vector<CaseMatrix> matrices;
  Mainloop mainloop;
  std::vector<ValueMistake> mistakes;
  Bytes on_chip;  // most that the function may hold at once
};

// A known mistake that the counts show: the loads of `matrix` over those asked for lie in (least,
// most].
struct LoadMistake {
  std::string matrix;
  double least = 0, most = 0;  // loads over the loads asked for
  std::string diagnosis;
};

struct FunctionKey {
  std::string file = "stub.cpp";
  std::string harness;    // "lab/harness/lab_03.cpp"
  std::string signature;  // for the task sheet
  double factor = 1;      // stands in the student's task and stub, and in no argument
  std::vector<FunctionCase> cases;
  std::vector<LoadMistake> mistakes;
  std::string wrong_values;   // what to look at when values differ
  std::string nan_values;     // when they are infinite or NaN
  std::string over_capacity;  // when too much is held on chip
};

}  // namespace fuseline::lab

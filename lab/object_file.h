// What the compiler made of a student's source: an ELF object. Read without tools of its own, so
// that a compiler is all a check needs.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"

namespace fuseline::lab {

struct ObjectFile {
  // Static storage that the program can write: variables with and without a first value, of each
  // thread too. Tables of constants are not in it, nor the addresses that the loader fills in.
  Bytes static_storage;
  std::vector<std::string> needs;    // names of functions and variables that it does not define
  std::vector<std::string> defines;  // names of its functions that others can call
  bool runs_early = false;           // holds code that the loader runs before all other code
};

// Of the bytes of a relocatable ELF file for this machine. MissingError for anything else, as what
// another file would do cannot be judged.
ObjectFile read_object(const std::string& bytes);

}  // namespace fuseline::lab

#include "model/primitives/reduce_function.h"

namespace fuseline {

std::string name_of(ReduceFn fn) {
  std::string name = fn->name.value;
  if (fn->also != nullptr) name += std::string(", ") + fn->also->name.value;
  return name;
}

}  // namespace fuseline

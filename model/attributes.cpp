#include "model/attributes.h"

#include <string>

#include "base/error.h"

namespace fuseline {

void Attributes::refuse(const std::type_info& wanted) const {
  FUSELINE_ASSERT(false, std::string("attributes of another operator, not ") + wanted.name());
}

}  // namespace fuseline

// Programs of one's own, as fuseline.Program has them.
#pragma once

#include <pybind11/pybind11.h>

namespace fuseline::python {

void bind_programs(pybind11::module_& m);

}  // namespace fuseline::python

// Errors of the layers below as Python exceptions.
#pragma once

namespace fuseline::python {

// From now on what the module's functions throw arrives as a class of fuseline._errors: InputError,
// MissingError, InternalError.
void translate_errors();

}  // namespace fuseline::python

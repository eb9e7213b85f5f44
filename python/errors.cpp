#include "python/errors.h"

#include <string>
#include <system_error>

#include <pybind11/pybind11.h>

#include "base/error.h"
#include "sim/selection/words.h"

namespace fuseline::python {

namespace {

namespace py = pybind11;

// "--price-per-hour" -> "price_per_hour": a caller in Python wrote keywords, not options.
std::string as_keyword(const std::string& field) {
  if (!field.starts_with("--")) return field;
  std::string keyword = field.substr(2);
  for (char& c : keyword)
    if (c == '-') c = '_';
  return keyword;
}

void raise(const char* name, const py::tuple& args, const py::dict& facts) {
  const py::object type = py::module_::import("fuseline._errors").attr(name);
  const py::object error = type(*args, **facts);
  PyErr_SetObject(type.ptr(), error.ptr());
}

void raise_input_error(InputProblem problem) {
  if (problem.file == kCommandLine) problem.file.clear();
  problem.field = as_keyword(problem.field);
  const std::string text = format_problem(problem);
  py::dict facts;
  facts["file"] = problem.file;
  facts["field"] = problem.field;
  facts["value"] = problem.value;
  facts["message"] = problem.message;
  facts["allowed"] = problem.allowed;
  facts["nearest"] = problem.nearest;
  facts["line"] = problem.line;
  raise("InputError", py::make_tuple(text), facts);
}

void raise_plain(const char* name, const std::string& text) {
  raise(name, py::make_tuple(text), py::dict());
}

}  // namespace

void translate_errors() {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const InputError& error) {
      raise_input_error(error.problem());
    } catch (const MissingError& error) {
      raise_plain("MissingError", error.what());
    } catch (const InternalError& error) {
      raise_plain("InternalError", error.what());
    } catch (const std::system_error& error) {
      raise_plain("MissingError", error.what());
    }
  });
}

}  // namespace fuseline::python

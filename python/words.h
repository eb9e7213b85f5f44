// Keywords of a Python call as the words that the command line's options take.
#pragma once

#include <optional>
#include <string>

#include <pybind11/pybind11.h>

#include "sim/selection/gemm_request.h"
#include "sim/selection/search_request.h"
#include "sim/selection/selection.h"
#include "sim/selection/verify_request.h"

namespace fuseline::python {

// A scenario and what stands on top of it.
struct Request {
  std::optional<std::string> scenario;
  SelectionWords words;
  VerifyWords verify;
  SearchWords search;
  std::optional<std::string> on, price;
  bool quick = false;
};

// Numbers, texts, paths, True and False, and lists of these become texts; None is left out.
// TypeError: a keyword that none of the given names is.
Request request_of(const pybind11::dict& keywords);
GemmWords gemm_words_of(const pybind11::dict& keywords);

// One value as text: [1, 2] -> "1,2". TypeError for what has no such form.
std::string text_of_value(const char* keyword, pybind11::handle value);

}  // namespace fuseline::python

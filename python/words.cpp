#include "python/words.h"

#include <iterator>

namespace fuseline::python {

namespace {

namespace py = pybind11;

using Word = std::optional<std::string>;

struct SelectionWord {
  const char* keyword;
  Word SelectionWords::*word;
};
constexpr SelectionWord kSelectionWords[] = {
    {"model", &SelectionWords::model},     {"block", &SelectionWords::block},
    {"gpu", &SelectionWords::gpu},         {"phase", &SelectionWords::phase},
    {"batch", &SelectionWords::batch},     {"seq", &SelectionWords::seq},
    {"context", &SelectionWords::context}, {"dtype", &SelectionWords::dtype},
    {"weights", &SelectionWords::weights}, {"activations", &SelectionWords::activations},
    {"kv", &SelectionWords::kv},           {"routing", &SelectionWords::routing},
    {"policy", &SelectionWords::policy},   {"fidelity", &SelectionWords::fidelity},
    {"layers", &SelectionWords::layers},   {"image", &SelectionWords::image},
    {"steps", &SelectionWords::steps},     {"guidance", &SelectionWords::guidance},
    {"launch", &SelectionWords::launch},   {"plan", &SelectionWords::plan},
};

struct VerifyWord {
  const char* keyword;
  Word VerifyWords::*word;
};
constexpr VerifyWord kVerifyWords[] = {
    {"threads", &VerifyWords::threads},
    {"seed", &VerifyWords::seed},
    {"fault", &VerifyWords::fault},
    {"memory_limit", &VerifyWords::memory_limit},
    {"outliers", &VerifyWords::outliers},
    {"input_scale", &VerifyWords::input_scale},
    {"input_shift", &VerifyWords::input_shift},
    {"gradient_scale", &VerifyWords::gradient_scale},
};

struct SearchWord {
  const char* keyword;
  Word SearchWords::*word;
};
constexpr SearchWord kSearchWords[] = {
    {"objective", &SearchWords::objective},   {"pareto", &SearchWords::pareto},
    {"budget", &SearchWords::budget},         {"keep_together", &SearchWords::keep_together},
    {"keep_apart", &SearchWords::keep_apart}, {"kernels", &SearchWords::kernels},
};

struct GemmWord {
  const char* keyword;
  Word GemmWords::*word;
};
constexpr GemmWord kGemmWords[] = {
    {"m", &GemmWords::m},
    {"n", &GemmWords::n},
    {"k", &GemmWords::k},
    {"gpu", &GemmWords::gpu},
    {"dtype", &GemmWords::dtype},
    {"weights", &GemmWords::weights},
    {"activations", &GemmWords::activations},
    {"operands", &GemmWords::operands},
    {"run", &GemmWords::run},
    {"fidelity", &GemmWords::fidelity},
};

[[noreturn]] void refuse(const std::string& message) { throw py::type_error(message); }

// Whether one of the table's keywords took the value.
template <class Table, class Words>
bool put(const Table& table, Words& words, const std::string& keyword, py::handle value) {
  for (const auto& entry : table) {
    if (keyword != entry.keyword) continue;
    words.*entry.word = text_of_value(entry.keyword, value);
    return true;
  }
  return false;
}

bool is_sequence(py::handle value) {
  return PyList_Check(value.ptr()) != 0 || PyTuple_Check(value.ptr()) != 0;
}

}  // namespace

std::string text_of_value(const char* keyword, py::handle value) {
  if (PyUnicode_Check(value.ptr()) != 0) return value.cast<std::string>();
  if (PyBool_Check(value.ptr()) != 0) return value.cast<bool>() ? "yes" : "no";
  if (PyLong_Check(value.ptr()) != 0 || PyFloat_Check(value.ptr()) != 0) return py::str(value);
  if (is_sequence(value)) {
    std::string text;
    for (const py::handle item : value) {
      if (is_sequence(item)) refuse(std::string(keyword) + ": a list within a list");
      text += (text.empty() ? "" : ",") + text_of_value(keyword, item);
    }
    return text;
  }
  // Paths, and numbers of numpy.
  if (py::hasattr(value, "__fspath__")) return py::str(value.attr("__fspath__")());
  if (py::hasattr(value, "__index__")) return py::str(value.attr("__index__")());
  if (py::hasattr(value, "__float__")) return py::str(value.attr("__float__")());
  refuse(std::string(keyword) + " is a " + value.get_type().attr("__name__").cast<std::string>() +
         "; allowed: a text, a number, a path, or a list of these");
}

Request request_of(const py::dict& keywords) {
  Request request;
  for (const auto& [key, value] : keywords) {
    if (value.is_none()) continue;
    const auto keyword = key.cast<std::string>();
    if (keyword == "scenario") {
      request.scenario = text_of_value("scenario", value);
    } else if (keyword == "on") {
      request.on = text_of_value("on", value);
    } else if (keyword == "price_per_hour") {
      request.price = text_of_value("price_per_hour", value);
    } else if (keyword == "quick") {
      request.quick = value.cast<bool>();
    } else if (!put(kSelectionWords, request.words, keyword, value) &&
               !put(kVerifyWords, request.verify, keyword, value) &&
               !put(kSearchWords, request.search, keyword, value)) {
      refuse("there is no keyword '" + keyword + "'");
    }
  }
  request.verify.layers = request.words.layers;
  return request;
}

GemmWords gemm_words_of(const py::dict& keywords) {
  GemmWords words;
  for (const auto& [key, value] : keywords) {
    if (value.is_none()) continue;
    const auto keyword = key.cast<std::string>();
    if (keyword == "bias") {
      words.bias = value.cast<bool>();
    } else if (!put(kGemmWords, words, keyword, value)) {
      refuse("there is no keyword '" + keyword + "'");
    }
  }
  return words;
}

}  // namespace fuseline::python

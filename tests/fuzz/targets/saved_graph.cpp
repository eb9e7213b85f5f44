// A PyTorch graph as JSON (import graph). What is accepted is a block's text.
#include <stdexcept>

#include "model/import/import_graph.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered saved_graph({.name = "saved_graph",
                              .dictionary = "graph",
                              .seeds = {"tests/model/import/graphs/*.json"},
                              .read = [](const std::string& bytes) {
                                if (import_graph(bytes, "fuzz.json").text.empty())
                                  throw std::logic_error("a block without text");
                              }});

}  // namespace
}  // namespace fuseline::fuzz

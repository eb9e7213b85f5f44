// What the tests of the view models share: a document of small blocks, its results.
#pragma once

#include <string>
#include <vector>

#include "gui/model/compute.h"
#include "gui/model/document.h"
#include "gui/model/results.h"

namespace fuseline::gui::test {

// TinyLlama, 256 tokens: milliseconds a policy, also under sanitizers.
inline Setup small_setup() {
  Setup setup;
  setup.model = "tinyllama";
  setup.gpu = "h200";
  setup.workload.seq = 256;
  return setup;
}

inline Document small_document(const std::vector<std::string>& policies = {"eager", "coda"}) {
  Document document;
  document.title = "small";
  document.setup = small_setup();
  document.runs = runs_for(document.setup, policies, {}, "");
  return document;
}

inline Results results_of(const Document& document) {
  ResultCache cache;
  return compute(document, cache);
}

}  // namespace fuseline::gui::test

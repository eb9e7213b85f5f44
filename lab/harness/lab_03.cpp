#include "harness.h"

void add_rms_norm(const fuseline_lab::Source& x, const fuseline_lab::Source& branch,
                  const fuseline_lab::Source& weight, const fuseline_lab::Target& sum,
                  const fuseline_lab::Target& normed, float eps);

void fuseline_lab::run_case() {
  add_rms_norm(source("x"), source("branch"), source("weight"), target("sum"), target("normed"),
               static_cast<float>(constant("eps")));
}

#include "harness.h"

void multiply(const fuseline_lab::Source& x, const fuseline_lab::Source& codes,
              const fuseline_lab::Source& scale, const fuseline_lab::Target& y, std::int64_t group);

void fuseline_lab::run_case() {
  multiply(source("x"), source("codes"), source("scale"), target("y"), size("group"));
}

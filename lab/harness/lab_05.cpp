#include "harness.h"

void attend(const fuseline_lab::Source& q, const fuseline_lab::Source& k,
            const fuseline_lab::Source& v, const fuseline_lab::Target& y, std::int64_t query_tile,
            std::int64_t key_tile, float scale);

void fuseline_lab::run_case() {
  attend(source("q"), source("k"), source("v"), target("y"), size("query_tile"), size("key_tile"),
         static_cast<float>(constant("scale")));
}

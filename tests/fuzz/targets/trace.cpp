// Traces of profilers (import trace): JSON, its gzip, SQLite, CSV.
#include "sim/traces/launch_list.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered trace({.name = "trace",
                        .dictionary = "trace",
                        .seeds = {"docs/torch-trace.json"},
                        .read = [](const std::string& bytes) {
                          static_cast<void>(read_launches(file_with(bytes, "fuzz.json")));
                        }});

}  // namespace
}  // namespace fuseline::fuzz

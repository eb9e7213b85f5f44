// Claims (audit --claims FILE.toml).
#include "sim/judge/audit/claim_file.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered claim_toml({.name = "claim_toml",
                             .dictionary = "claim",
                             .seeds = {"scenarios/claims/*.toml"},
                             .read = [](const std::string& bytes) {
                               static_cast<void>(audit::load_claims(file_with(bytes, "fuzz.toml")));
                             }});

}  // namespace
}  // namespace fuseline::fuzz

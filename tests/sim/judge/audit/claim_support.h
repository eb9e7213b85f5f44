// Claims that the audit's tests judge.
#pragma once

#include <string>

#include "sim/judge/audit/claim_file.h"

namespace fuseline::audit {

inline Claim claim_from(const std::string& text) {
  return read_claim(TomlTable::parse(text, "claim.toml"));
}

inline std::string source_text() { return "[source]\ntitle = \"a report\"\ndate = \"2026\"\n"; }

// A speed-up of TinyLlama on an H200, eager to coda, with the figure and the choices as written.
inline std::string speed_up_text(const std::string& figure, const std::string& tried) {
  return "id = \"c\"\nstatement = \"it is faster\"\nkind = \"speed-up\"\n" + source_text() +
         "[figure]\n" + figure + "\n[setting]\nmodel = \"tinyllama\"\ngpu = \"h200\"\n" +
         "[try]\nphase = \"forward\"\nseq = [128, 256]\n" + tried + "\n";
}

}  // namespace fuseline::audit

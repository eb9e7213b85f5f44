// The meanings of the mainloops, one file each: products, attention, scans.
#pragma once

#include "model/programs/meaning.h"

namespace fuseline {

void product_meaning(const GemmMainloop& m, Meaning& exact);
void attention_meaning(const AttentionMainloop& m, Meaning& exact);
void scan_meaning(const ScanMainloop& m, Meaning& exact);

// A matrix of the text: an operand as it lies in memory, read whole.
ExactMatrix whole(const Operand& o, const Meaning& exact);

}  // namespace fuseline

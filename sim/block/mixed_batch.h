// One call of a block for sequences that differ: prompts in chunks beside decoding, caches of
// unequal lengths, several new tokens at once, and caches in pages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config/config.h"
#include "sim/block/estimate.h"

namespace fuseline {

// So many sequences with so many new tokens each, against a cache that holds these too.
struct SequenceGroup {
  std::int64_t sequences = 1, tokens = 1, context = 1;
  friend bool operator==(const SequenceGroup&, const SequenceGroup&) = default;
};

// "31x1@4096+1x512@2560", or a CSV file with the columns sequences, tokens and context. Without
// @CACHE a sequence begins with its new tokens. InputError (`field`): no such text, sizes that are
// none.
std::vector<SequenceGroup> parse_sequences(const std::string& field, const std::string& text);

// The same of a text alone, never a file. Returns what is wrong with it; empty: nothing.
std::string read_sequences(const std::string& text, std::vector<SequenceGroup>& groups);
std::string sequences_allowed();  // what such texts are, in words

std::string describe(const SequenceGroup& group);  // "31 x 1 of 4,096"
std::int64_t rows_of(const std::vector<SequenceGroup>& groups);

// A part of the call.
struct CallPart {
  Seconds time;
  Bytes hbm;
  std::int64_t launches = 0;
};

struct MixedCall {
  std::string policy;
  CallPart rows{};                    // all but attention, for the new tokens of all sequences
  std::vector<CallPart> attention{};  // of each group, in launches of its own
  CallPart apart{};                   // the same in a call for each group
  // Where caches are in pages: the tables that attention reads, and, where no kernel reads pages, a
  // copy of all caches into one piece ahead of attention.
  CallPart tables{}, gathering{};

  [[nodiscard]] CallPart whole() const;  // with the tables, without the copy
};

// The block of all new tokens, whose kernels but attention the call runs, and of a group, whose
// attention it runs. `work`: type and formats.
Workload workload_of_rows(const Workload& work, const std::vector<SequenceGroup>& groups);
Workload workload_of(const Workload& work, const SequenceGroup& group);
// What attention reads of the tables of pages.
CallPart page_tables(const std::vector<SequenceGroup>& groups, std::int64_t page, const Gpu& gpu);

// What has rows is predicted as one block of all new tokens; attention of each group at its own
// sizes. `work`: type and formats. `page`: tokens of a page; empty: each cache is one piece.
// InputError: sizes out of range, a policy whose attention is no kernel of its own.
MixedCall predict_mixed(const std::string& policy, const ModelConfig& model, const Gpu& gpu,
                        const Workload& work, const std::vector<SequenceGroup>& groups,
                        std::optional<std::int64_t> page, Launching launching);

}  // namespace fuseline

// Text to learn: sentences of a small grammar, and their characters as numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuseline::training {

// At least `length` characters, ending with a sentence. The same seed gives the same text.
std::string make_text(std::uint64_t seed, std::int64_t length);

// The characters that texts consist of; a character's number is its place here.
const std::string& vocabulary();
// InputError: a character that is not in the vocabulary, with its place.
std::vector<std::int32_t> encode(const std::string& text);

// B sequences of T characters; the target of each is the character that follows it.
struct Batch {
  std::vector<std::int32_t> ids;      // [B·T]
  std::vector<std::int32_t> targets;  // [B·T]
};

// Sequences from random places of a text. The same seed gives the same batches.
class Batches {
 public:
  Batches(std::vector<std::int32_t> text, std::int64_t batch, std::int64_t seq,
          std::uint64_t seed);  // asserts that a sequence fits
  Batch next();

 private:
  std::vector<std::int32_t> text_;
  std::int64_t batch_;
  std::int64_t seq_;
  std::uint64_t seed_;
};

}  // namespace fuseline::training

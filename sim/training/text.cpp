#include "sim/training/text.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "sim/training/random.h"

namespace fuseline::training {

namespace {

using Words = std::array<std::string_view, 8>;

constexpr Words kNouns{"baker", "cat", "farmer", "fox", "girl", "horse", "owl", "sailor"};
constexpr Words kAdjectives{"brave", "clever", "happy", "kind", "old", "quiet", "small", "young"};
constexpr Words kVerbs{"calls", "draws", "finds", "helps", "likes", "meets", "sees", "visits"};
constexpr Words kThings{"a boat",     "a book",   "a drum",   "an apple",
                        "some bread", "the bell", "the lamp", "the map"};
constexpr Words kPlaces{"at home",       "at sea",        "by the river", "in the garden",
                        "near the hill", "on the bridge", "on the road",  "under a tree"};
constexpr std::array<std::string_view, 13> kNumbers{"zero", "one",    "two",   "three", "four",
                                                    "five", "six",    "seven", "eight", "nine",
                                                    "ten",  "eleven", "twelve"};

template <class Words>
std::string pick(const Words& words, Random& random) {
  return std::string(
      words[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(words.size())))]);
}

std::string who(Random& random) {
  std::string noun = pick(kNouns, random);
  if (random.below(2) == 0) noun = pick(kAdjectives, random) + " " + noun;
  return "the " + noun;
}

// "two and three make five": something that needs more than the last letters.
std::string sum(Random& random) {
  const std::int64_t a = random.below(7);
  const std::int64_t b = random.below(7);
  const auto name = [](std::int64_t n) {
    return std::string(kNumbers[static_cast<std::size_t>(n)]);
  };
  return name(a) + " and " + name(b) + " make " + name(a + b);
}

std::string clause(Random& random) {
  const std::string start = who(random) + " " + pick(kVerbs, random) + " ";
  return start + (random.below(2) == 0 ? who(random) : pick(kThings, random));
}

std::string sentence(Random& random) {
  switch (random.below(4)) {
    case 0:
      return sum(random);
    case 1:
      return clause(random) + " " + pick(kPlaces, random);
    case 2:
      return pick(kPlaces, random) + ", " + clause(random);
    default:
      return clause(random) + " and " + pick(kVerbs, random) + " " + who(random);
  }
}

}  // namespace

std::string make_text(std::uint64_t seed, std::int64_t length) {
  Random random(seed);
  std::string text;
  while (static_cast<std::int64_t>(text.size()) < length) text += sentence(random) + ".\n";
  return text;
}

const std::string& vocabulary() {
  static const std::string characters = "\n ,.abcdefghijklmnopqrstuvwxyz";
  return characters;
}

std::vector<std::int32_t> encode(const std::string& text) {
  std::vector<std::int32_t> numbers;
  numbers.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t place = vocabulary().find(text[i]);
    if (place == std::string::npos)
      throw InputError({.field = "text",
                        .value = std::string(1, text[i]),
                        .message = "character " + std::to_string(i) + " is not in the vocabulary",
                        .allowed = "small letters, space, comma, period, end of line"});
    numbers.push_back(static_cast<std::int32_t>(place));
  }
  return numbers;
}

Batches::Batches(std::vector<std::int32_t> text, std::int64_t batch, std::int64_t seq,
                 std::uint64_t seed)
    : text_(std::move(text)), batch_(batch), seq_(seq), seed_(seed) {
  FUSELINE_ASSERT(static_cast<std::int64_t>(text_.size()) > seq, "the text is too short");
}

Batch Batches::next() {
  Random random(seed_);
  const std::int64_t starts = static_cast<std::int64_t>(text_.size()) - seq_;
  Batch batch;
  for (std::int64_t b = 0; b < batch_; ++b) {
    const auto first = text_.begin() + random.below(starts);
    batch.ids.insert(batch.ids.end(), first, first + seq_);
    batch.targets.insert(batch.targets.end(), first + 1, first + seq_ + 1);
  }
  seed_ = random.next();
  return batch;
}

}  // namespace fuseline::training

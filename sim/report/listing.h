// What requests can name: models, GPUs, policies and the rest, with their facts.
#pragma once

#include <string>
#include <vector>

namespace fuseline {

enum class Cells { numbers, text };

struct ListColumn {
  std::string header;
  Cells cells = Cells::numbers;
};

// The keys are those of JSON and CSV, the headers those of a table for people.
struct Listing {
  std::vector<std::string> keys;
  std::vector<ListColumn> columns;
  std::vector<std::vector<std::string>> rows;
};

// "models", "gpus", ...
const std::vector<std::string>& listing_topics();

// `topic`: one of listing_topics().
Listing listing_of(const std::string& topic);

// {"models": [{"name": ..., ...}, ...]}
std::string listing_json(const std::string& topic, const Listing& listing);

}  // namespace fuseline

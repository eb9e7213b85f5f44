// The memory of one case: the matrices and the counters, in the checker's process. The function's
// process asks for elements one by one (lab/harness/protocol.h) and has no other way to them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "lab/function_key.h"
#include "lab/harness/protocol.h"

namespace fuseline::lab {

struct AccessCounts {
  std::int64_t loads = 0;
  std::int64_t stores = 0;
};

class CaseMemory {
 public:
  // `what` must outlive it. `nonce`: by chance, for this run.
  CaseMemory(const FunctionCase& what, std::uint64_t nonce);

  // What the function's process is told first.
  [[nodiscard]] std::string greeting() const;

  // Serves requests, also cut ones, and appends the answers. False: the process is to be stopped,
  // because problem() says what it did, or because it is done().
  bool take(std::string_view received, std::string& reply);

  [[nodiscard]] const std::string& problem() const { return problem_; }
  // The process spoke to the memory past the functions that it was given.
  [[nodiscard]] bool is_trick() const { return trick_; }
  [[nodiscard]] bool is_done() const { return done_; }
  [[nodiscard]] Bytes on_chip() const { return on_chip_; }  // as the process said
  [[nodiscard]] std::map<std::string, AccessCounts> counts() const;
  [[nodiscard]] std::map<std::string, std::vector<double>> targets() const;

 private:
  bool serve(const fuseline_lab::Request& request, std::string& reply);
  bool serve_tile(const fuseline_lab::Request& request, std::string& reply);
  bool refuse(std::string problem);
  bool refuse_trick(std::string problem);

  const FunctionCase& case_;
  std::uint64_t nonce_;
  std::vector<AccessCounts> counts_;          // by matrix
  std::vector<std::vector<double>> written_;  // by matrix; empty for sources
  std::string cut_;                           // the beginning of a request
  std::string problem_;
  Bytes on_chip_;
  bool done_ = false;
  bool trick_ = false;
};

}  // namespace fuseline::lab

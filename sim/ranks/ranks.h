// The processes that share a command's work: those that mpirun or srun started, or this one alone.
// No other file of the project knows MPI.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fuseline {

// One message: whose, and what.
struct RankMessage {
  int from = 0;
  std::string text;
};

class Ranks {
 public:
  // MPI is started where several processes were. MissingError: several were, and this program was
  // built without MPI.
  Ranks();
  // Waits for all ranks: each must come here.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] bool first() const { return rank_ == 0; }

  // Every rank's text in order, at the first rank; empty at the others, which all must call it.
  std::vector<std::string> gather(const std::string& text);
  // The first rank's text, at every rank.
  std::string broadcast(const std::string& text);

  void send(int to, const std::string& text);
  // Whether a message waits, from anybody.
  bool waiting();
  // Sleeps until there is one: a rank that waits must not keep a core busy.
  RankMessage receive();

  // Whether this process is one of several, before MPI is started; and which one, as the starter
  // says in the environment (0 where it does not).
  static bool started_together();
  static int rank_in_environment();

 private:
  int rank_ = 0, count_ = 1;
};

// InputError that names the ranks whose text is another one than the first's: another build of the
// program, or other data files.
void refuse_mixed_ranks(const std::vector<std::string>& identities);

// What every rank must have in common: the version, the program's own bytes and its data files.
std::string program_identity();

}  // namespace fuseline

#include "sim/ranks/ranks.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#ifdef FUSELINE_WITH_MPI
#include <mpi.h>
#endif

#include "base/error.h"

namespace fuseline {

namespace {

// How Open MPI, MPICH and Slurm tell a process its place and that there are others.
constexpr const char* kPlaces[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
constexpr const char* kCounts[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};

int number_in_environment(const char* name, int absent) {
  const char* text = std::getenv(name);
  return text == nullptr ? absent : std::atoi(text);
}

}  // namespace

bool Ranks::started_together() {
  for (const char* name : kCounts)
    if (std::getenv(name) != nullptr) return number_in_environment(name, 1) > 1;
  return std::any_of(std::begin(kPlaces), std::end(kPlaces),
                     [](const char* name) { return std::getenv(name) != nullptr; });
}

int Ranks::rank_in_environment() {
  if (!started_together()) return 0;
  for (const char* name : kPlaces)
    if (std::getenv(name) != nullptr) return number_in_environment(name, 0);
  return 0;
}

void refuse_mixed_ranks(const std::vector<std::string>& identities) {
  std::vector<std::size_t> others;
  for (std::size_t r = 0; r < identities.size(); ++r)
    if (identities[r] != identities.front()) others.push_back(r);
  if (others.empty()) return;
  throw InputError({.file = "mpirun",
                    .field = others.size() == 1 ? "rank" : "ranks",
                    .value = fmt::format("{}", fmt::join(others, ", ")),
                    .message = fmt::format("has '{}', and rank 0 has '{}'",
                                           identities[others.front()], identities.front()),
                    .allowed = "the same build of fuseline and the same data files on every rank"});
}

#ifdef FUSELINE_WITH_MPI

namespace {

constexpr int kTag = 1;
constexpr auto kPause = std::chrono::microseconds(100);

void sure(int status, const char* what) { FUSELINE_ASSERT(status == MPI_SUCCESS, what); }

int length_of(const std::string& text) { return static_cast<int>(text.size()); }

}  // namespace

Ranks::Ranks() {
  if (!started_together()) return;
  int provided = 0;
  sure(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI starts");
  if (provided < MPI_THREAD_FUNNELED)
    throw MissingError("this MPI allows no threads beside the one that calls it");
  sure(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "a rank");
  sure(MPI_Comm_size(MPI_COMM_WORLD, &count_), "a number of ranks");
}

Ranks::~Ranks() {
  int running = 0;
  MPI_Initialized(&running);
  if (running != 0) MPI_Finalize();
}

std::vector<std::string> Ranks::gather(const std::string& text) {
  if (count_ == 1) return {text};
  if (!first()) {
    send(0, text);
    return {};
  }
  std::vector<std::string> all(static_cast<std::size_t>(count_));
  all.front() = text;
  for (int left = count_ - 1; left > 0; --left) {
    RankMessage m = receive();
    all[static_cast<std::size_t>(m.from)] = std::move(m.text);
  }
  return all;
}

std::string Ranks::broadcast(const std::string& text) {
  if (count_ == 1) return text;
  if (!first()) return receive().text;
  for (int rank = 1; rank < count_; ++rank) send(rank, text);
  return text;
}

void Ranks::send(int to, const std::string& text) {
  sure(MPI_Send(text.data(), length_of(text), MPI_CHAR, to, kTag, MPI_COMM_WORLD),
       "a message goes");
}

bool Ranks::waiting() {
  int there = 0;
  sure(MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE), "a look");
  return there != 0;
}

RankMessage Ranks::receive() {
  while (!waiting()) std::this_thread::sleep_for(kPause);
  MPI_Status status;
  sure(MPI_Probe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &status), "a message is there");
  int length = 0;
  sure(MPI_Get_count(&status, MPI_CHAR, &length), "its length");
  RankMessage m{.from = status.MPI_SOURCE,
                .text = std::string(static_cast<std::size_t>(length), ' ')};
  sure(MPI_Recv(m.text.data(), length, MPI_CHAR, status.MPI_SOURCE, kTag, MPI_COMM_WORLD,
                MPI_STATUS_IGNORE),
       "a message comes");
  return m;
}

#else

Ranks::Ranks() {
  if (started_together())
    throw MissingError(
        "several processes were started together, and this fuseline was built without MPI: build "
        "it where libopenmpi-dev is installed, or start one process");
}

Ranks::~Ranks() = default;
std::vector<std::string> Ranks::gather(const std::string& text) { return {text}; }
std::string Ranks::broadcast(const std::string& text) { return text; }
void Ranks::send(int, const std::string&) { FUSELINE_ASSERT(false, "a rank alone"); }
bool Ranks::waiting() { return false; }
RankMessage Ranks::receive() { FUSELINE_ASSERT(false, "a rank alone"); }

#endif

}  // namespace fuseline

#include "sim/ranks/hand_out.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parallel_for.h"

namespace fuseline {

namespace {

// Points that a rank asks for ahead, each time as many as it has threads: the answer to the next
// question is there when the work before it ends, however long the first rank takes to answer.
constexpr int kAhead = 3;

using MessageJson = nlohmann::json;

struct PointText {
  std::size_t point = 0;
  std::string text;
};

// An error on its way to the first rank.
MessageJson packed(const InputProblem& p) {
  return {{"file", p.file},       {"field", p.field},     {"value", p.value},
          {"message", p.message}, {"allowed", p.allowed}, {"nearest", p.nearest},
          {"line", p.line},       {"column", p.column},   {"shown", p.shown}};
}

InputProblem unpacked(const MessageJson& m) {
  return {.file = m.at("file"),
          .field = m.at("field"),
          .value = m.at("value"),
          .message = m.at("message"),
          .allowed = m.at("allowed"),
          .nearest = m.at("nearest"),
          .line = m.at("line"),
          .column = m.at("column"),
          .shown = m.at("shown")};
}

MessageJson failure_message(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const InputError& e) {
    return {{"failed", "input"}, {"problem", packed(e.problem())}};
  } catch (const MissingError& e) {
    return {{"failed", "missing"}, {"what", e.what()}};
  } catch (const std::exception& e) {
    return {{"failed", "internal"}, {"what", e.what()}};
  }
}

std::exception_ptr failure_of(const MessageJson& m) {
  const std::string kind = m.at("failed");
  if (kind == "input") return std::make_exception_ptr(InputError(unpacked(m.at("problem"))));
  if (kind == "missing") return std::make_exception_ptr(MissingError(m.at("what")));
  return std::make_exception_ptr(InternalError(m.at("what")));
}

std::vector<PointText> worked(const std::vector<std::size_t>& points, const HandOut& how) {
  std::vector<PointText> results(points.size());
  ParallelOptions parallel;
  parallel.threads = static_cast<unsigned>(how.threads);
  parallel_for(
      points.size(),
      [&](std::size_t i) {
        results[i] = {points[i], how.work(points[i])};
      },
      parallel);
  return results;
}

std::size_t points_at_once(const HandOut& how) {
  return how.threads > 0 ? how.threads : static_cast<std::size_t>(available_threads());
}

// Points that nobody has begun, and results that nobody has taken: shared by the first rank's own
// threads and the one that talks to the other ranks.
class Desk {
 public:
  Desk(const std::vector<std::size_t>& points, const std::atomic<bool>* stop)
      : points_(points), stop_(stop) {}

  // Empty: there are no more.
  std::vector<std::size_t> next(std::size_t most) {
    const std::scoped_lock lock(mutex_);
    if (failure_ || (stop_ != nullptr && *stop_)) return {};
    const std::size_t count = std::min(most, points_.size() - begun_);
    std::vector<std::size_t> out(points_.begin() + static_cast<std::ptrdiff_t>(begun_),
                                 points_.begin() + static_cast<std::ptrdiff_t>(begun_ + count));
    begun_ += count;
    return out;
  }
  void put(std::vector<PointText> results) {
    const std::scoped_lock lock(mutex_);
    for (PointText& r : results) results_.push_back(std::move(r));
  }
  std::deque<PointText> collect() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(results_, {});
  }
  void fail(std::exception_ptr failure) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
  }
  std::exception_ptr failure() {
    const std::scoped_lock lock(mutex_);
    return failure_;
  }

 private:
  const std::vector<std::size_t>& points_;
  const std::atomic<bool>* stop_;
  std::mutex mutex_;
  std::size_t begun_ = 0;
  std::deque<PointText> results_;
  std::exception_ptr failure_;
};

// Points for a rank that asked, or none: then it need not ask again.
std::string points_message(const std::vector<std::size_t>& points) {
  return MessageJson(points).dump();
}

bool lead(Ranks& ranks, const std::vector<std::size_t>& points, const HandOut& how) {
  constexpr auto kLook = std::chrono::microseconds(200);  // between two looks for messages
  Desk desk(points, how.stop);
  std::size_t taken = 0;
  const auto take_all = [&](auto&& results) {
    for (PointText& r : results) {
      if (desk.failure()) return;
      try {
        how.take(r.point, r.text);
        ++taken;
        if (how.progress) how.progress(taken, points.size());
      } catch (...) {
        desk.fail(std::current_exception());
      }
    }
  };
  std::atomic<bool> own_done = false;
  std::jthread own([&] {
    try {
      for (auto some = desk.next(points_at_once(how)); !some.empty();
           some = desk.next(points_at_once(how)))
        desk.put(worked(some, how));
    } catch (...) {
      desk.fail(std::current_exception());
    }
    own_done = true;
  });
  int others = kAhead * (ranks.count() - 1);  // questions that may still come
  while (others > 0 || !own_done) {
    if (others > 0 && ranks.waiting()) {
      const RankMessage m = ranks.receive();
      const MessageJson said = MessageJson::parse(m.text);
      if (said.contains("failed")) {
        desk.fail(failure_of(said));
      } else {
        std::vector<PointText> results;
        for (const MessageJson& r : said.at("results")) results.push_back({r.at(0), r.at(1)});
        take_all(results);
      }
      const auto some = desk.next(said.value("threads", std::size_t{1}));
      ranks.send(m.from, points_message(some));
      if (some.empty()) --others;
    } else {
      std::this_thread::sleep_for(kLook);
    }
    take_all(desk.collect());
  }
  own.join();
  take_all(desk.collect());
  const std::exception_ptr failure = desk.failure();
  ranks.broadcast(failure ? failure_message(failure).dump() : "{}");
  if (failure) std::rethrow_exception(failure);
  return taken == points.size();
}

bool follow(Ranks& ranks, const HandOut& how) {
  const std::size_t threads = points_at_once(how);
  const MessageJson nothing = {{"results", MessageJson::array()}, {"threads", threads}};
  for (int i = 0; i < kAhead; ++i) ranks.send(0, nothing.dump());
  for (int asked = kAhead; asked > 0; --asked) {
    const auto points = MessageJson::parse(ranks.receive().text).get<std::vector<std::size_t>>();
    if (points.empty()) continue;
    MessageJson message = nothing;
    try {
      for (PointText& r : worked(points, how))
        message["results"].push_back({r.point, std::move(r.text)});
    } catch (...) {
      message = failure_message(std::current_exception());
    }
    ranks.send(0, message.dump());
    ++asked;
  }
  const MessageJson end = MessageJson::parse(ranks.broadcast({}));
  if (end.contains("failed")) std::rethrow_exception(failure_of(end));
  return true;
}

}  // namespace

bool hand_out(Ranks& ranks, const std::vector<std::size_t>& points, const HandOut& how) {
  return ranks.first() ? lead(ranks, points, how) : follow(ranks, how);
}

}  // namespace fuseline

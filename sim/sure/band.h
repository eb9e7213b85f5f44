// A band: the interval that holds the truth in 90 of 100 cases. It is an interval of factors, to be
// multiplied with the estimate, so that one band serves times, bytes and gains.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "sim/gpu/standing.h"
#include "sim/sure/spread.h"
#include "sim/sure/work_class.h"

namespace fuseline {

// low <= 1 <= high: a band always holds its estimate, also where estimates of a class are known to
// lie on one side of the truth.
struct Band {
  double low = 1;
  double high = 1;
};

Seconds low_end(Seconds estimate, const Band& band);
Seconds high_end(Seconds estimate, const Band& band);
Bytes low_end(Bytes estimate, const Band& band);   // rounded down
Bytes high_end(Bytes estimate, const Band& band);  // rounded up

// "±4 %", or "-2 +11 %" where the ends differ by a percent or more.
std::string in_percent(const Band& band);

// What residuals of a class said: residual = ln(measured / predicted); of a gain it is
// ln(measured) - slope ln(predicted), for the faster plan over the slower as predicted.
struct BandClass {
  WorkClass of;
  double low = 0, high = 0;  // low <= 0 <= high
  double slope = 1;
  std::int64_t rows = 0, models = 0;
  double least = 0, most = 0;  // what was predicted of the rows: seconds or bytes; 0: not known
};

// How many times wider (in logarithms) where residuals say less. An empty phase: of those that have
// no widening of their own.
struct Widening {
  std::string what, phase;
  double checked = 1, uncalibrated = 1;  // no constant was fitted on the GPU
  double beyond = 0;  // 1 + beyond · ln(how many times less or more than any row of the class)
  double unseen = 1;  // no class is of these kernels
  // How many GPUs that nobody measured `uncalibrated` comes from; 0: it is assumed.
  std::int64_t machines = 0;
};

class BandTable {
 public:
  BandTable(std::vector<BandClass> classes, std::vector<Widening> widenings,
            std::vector<Spread> spreads = {})
      : classes_(std::move(classes)),
        widenings_(std::move(widenings)),
        spreads_(std::move(spreads)) {}

  // scenarios/bands/bands.toml or another such file. InputError: missing or unknown fields, values
  // out of range, a class twice, a subject without a class of its own.
  static BandTable load(const std::string& path);

  // Of a time or of bytes, `predicted` in seconds or bytes. The class with the most words that fits
  // counts.
  [[nodiscard]] Band of(const WorkClass& work, Standing standing, double predicted) const;
  // Of a gain: time of one plan over another's, `predicted` either way round.
  [[nodiscard]] Band of_gain(const WorkClass& work, Standing standing, double predicted) const;

  [[nodiscard]] const std::vector<BandClass>& classes() const { return classes_; }
  [[nodiscard]] const std::vector<Widening>& widenings() const { return widenings_; }
  [[nodiscard]] const std::vector<Spread>& spreads() const { return spreads_; }

 private:
  [[nodiscard]] const BandClass& best(const WorkClass& work) const;
  [[nodiscard]] double widening(const WorkClass& work, const BandClass& c, Standing standing,
                                double predicted) const;

  std::vector<BandClass> classes_;
  std::vector<Widening> widenings_;
  std::vector<Spread> spreads_;
};

// scenarios/bands/bands.toml, read once a process.
const BandTable& shipped_bands();

}  // namespace fuseline

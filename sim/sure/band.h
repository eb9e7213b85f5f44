// A band: the interval that holds the truth in 90 of 100 cases. It is an interval of factors, to be
// multiplied with the estimate, so that one band serves times, bytes and gains.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "sim/gpu/standing.h"

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

// What an estimate is of, as far as its error depends on it. An empty text means any.
struct WorkClass {
  std::string what;     // one of band_subjects()
  std::string phase;    // "forward", "decode", "train"
  std::string maker;    // whose kernels: "own", "library"; of a gain also "mixed"
  std::string kernels;  // of a block "dense", "scores", "experts", "scans"; of a kernel its kind
  std::string size;     // "short", "small", "large"
  // Of a kernel, or of plans that hold one: its kind where that is judged apart, "chain". Only
  // classes of the same kind count, and where there is none the work counts as on a GPU that nobody
  // measured.
  std::string apart = {};
  // What else says how far such estimates err, in the order of trait_names() (sim/sure/traits.h).
  // Of a class, and of estimates of which it is not known, there are none.
  std::vector<double> traits = {};

  friend bool operator==(const WorkClass&, const WorkClass&) = default;
};

// "time" and "hbm" of a block, "kernel_time" and "kernel_hbm", and the "gain" of two plans.
const std::vector<std::string>& band_subjects();

// Kinds of kernels that are judged apart: "chain".
const std::vector<std::string>& kinds_judged_apart();

// What residuals of a class said: residual = ln(measured / predicted); of a gain it is
// ln(measured) - slope ln(predicted), for the faster plan over the slower as predicted.
struct BandClass {
  WorkClass of;
  double low = 0, high = 0;  // low <= 0 <= high
  double slope = 1;
  std::int64_t rows = 0, models = 0;
  double least = 0, most = 0;  // what was predicted of the rows: seconds or bytes; 0: not known
};

// How the width of a phase's bands depends on one trait of the work: exp(slope (trait - centre))
// times the classes', with the trait as far as rows had it.
struct Spread {
  std::string what, phase, trait;
  double slope = 0, centre = 0;
  double least = 0, most = 0;
};

// Of all traits together; 1 where nothing is known of the work's traits or of their phase.
double spread_factor(const std::vector<Spread>& spreads, const WorkClass& work);

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

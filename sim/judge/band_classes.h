// How far predictions of each class of work are off, from residuals.
#pragma once

#include <vector>

#include "sim/judge/band_fit.h"
#include "sim/sure/band.h"

namespace fuseline {

using ResidualRows = std::vector<const Residual*>;

// Between the order statistics around `rank` of n, counted from 1.
double order_statistic(const std::vector<double>& sorted, double rank);

// The 95th percentile of Student's distribution, by its expansion around the normal one: 1 % too
// small for four degrees of freedom.
double student(double freedom);

struct FittedClasses {
  std::vector<BandClass> classes;
  std::vector<Spread> spreads;
};

// Of rows of GPUs that were measured; nothing is widened. Every row's error is taken
// over the mean error of its class in other models, and few rows of a class lean on the class with
// a word less. Where traits say how large errors are, errors are first taken over what these say,
// and a class leans on more rows of its phase. The interval that holds 90 % of these, for a subject
// and phase, times a class's mean error is the class's band: classes of small errors have narrow
// ones. Rows of a model err alike, so the interval is as wide as Student's for as many rows as
// would say as much without.
FittedClasses classes_of(const ResidualRows& rows);

}  // namespace fuseline

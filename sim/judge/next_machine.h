// How wide bands have to be on a GPU that nobody measured. Such a GPU is one more draw among
// machines, so machines count and not their rows: a hundred figures of one GPU say little of
// another.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/judge/band_fit.h"

namespace fuseline {

// How far a row lies from its estimate, over how far its band reaches to that side: 1 on the band's
// end.
struct RowReach {
  std::string gpu, source;
  double reach = 0;
};
RowReach reach_of(const Band& band, const Residual& row);

struct MachineReach {
  std::string gpu;
  std::size_t sources = 0, rows = 0;
  double mean_square = 0;  // of its reaches; each source weighs the same
  double widening = 0;     // what holds 90 % of its rows; each source weighs the same
};
// In the order of their names.
std::vector<MachineReach> machines_of(const std::vector<RowReach>& reaches);

// How many times wider bands hold the next machine's rows in 90 of 100 cases. Machines weigh the
// same, and errors of machines around their predictions are taken as normal with a spread that
// these few say: Student's distribution with as many degrees as there are machines. Between 1 and
// 5, and 1 where there are none.
double widening_of_next(const std::vector<MachineReach>& machines);

// A machine's rows by bands that are widened by what the other machines say.
struct LeftOutMachine {
  std::string what;
  MachineReach machine;
  std::size_t others = 0;     // machines
  double by_rows = 1;         // what holds 90 % of all rows of the others, which was the rule once
  double by_machines = 1;     // widening_of_next of the others
  double held_unwidened = 0;  // shares of the machine's rows, each source weighing the same
  double held_by_rows = 0, held_by_machines = 0;
};
std::vector<LeftOutMachine> left_out_machines(const std::string& what,
                                              const std::vector<RowReach>& reaches);
// Of all subjects of which figures of GPUs were published that nobody measured here.
std::vector<LeftOutMachine> left_out_machines(const std::vector<Residual>& rows);

}  // namespace fuseline

#include "sim/report/energy.h"

namespace fuseline {

namespace {

// Estimates hold the energy of work at their clock.
Energy energy_of_work(Joules dynamic, Seconds time, const Gpu& gpu, const Band& band) {
  return energy_of(power_model(gpu), dynamic, time, 1.0, band.low, band.high);
}

}  // namespace

Energy energy_of(const KernelEstimate& kernel, const Gpu& gpu, const Band& time) {
  return energy_of_work(kernel.dynamic_energy, kernel.time, gpu, time);
}

Energy energy_of(const PlanEstimate& block, const Gpu& gpu, const Band& time) {
  return energy_of_work(block.dynamic_energy, block.time, gpu, time);
}

Energy energy_of(const LayersEstimate& layers, const Gpu& gpu, const Band& time) {
  return energy_of_work(layers.dynamic_energy, layers.time, gpu, time);
}

}  // namespace fuseline

// The race of a course's GPU track: one task for everybody, judged by its time on a GPU.
#pragma once

#include <string>

#include "lab/check.h"

namespace fuseline::lab {

inline constexpr const char* kRaceFile = "race.fuse";
inline constexpr const char* kSpeedFile = "speed.json";

// race.fuse as everybody gets it: sizes and tensors, and no program.
std::string race_head();

// Whether these programs compute what the race asks for. They are executed on the CPU at small
// sizes that stand in place of the race's; the tensors have to be the race's own.
TaskResult judge_race(const std::string& text, const std::string& file);

}  // namespace fuseline::lab

// All maps, pair maps and reductions by name: maps::add, pairs::rope, reductions::sum.
#pragma once

#include "model/primitives/all_maps.h"
#include "model/primitives/all_pairs.h"
#include "model/primitives/all_reductions.h"

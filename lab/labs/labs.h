// The labs, one file each, keys computed through model/ and sim/.
#pragma once

#include "lab/lab.h"

namespace fuseline::lab {

Lab lab_tour(const Student& student);
Lab lab_count_the_bytes(const Student& student);
Lab lab_rooflines(const Student& student);
Lab lab_pointwise_fusion(const Student& student);
Lab lab_epilogues(const Student& student);
Lab lab_attention(const Student& student);
Lab lab_tiles(const Student& student);
Lab lab_planning(const Student& student);
Lab lab_measure(const Student& student);
Lab lab_decode(const Student& student);
Lab lab_program(const Student& student);
Lab lab_number_formats(const Student& student);

}  // namespace fuseline::lab

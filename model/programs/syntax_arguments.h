// Arguments by name that several lines share: shapes of attention, scans and convolutions, choices
// of experts.
#pragma once

#include "model/operators/attributes.h"
#include "model/programs/syntax.h"

namespace fuseline {

void attention_arguments(Syntax& line, AttentionShape& shape);
void scan_arguments(Syntax& line, ScanShape& shape);
void convolution_arguments(Syntax& line, ConvolutionShape& shape);
void choice_arguments(Syntax& line, ExpertChoice& choice);
void rows_arguments(Syntax& line, RaggedRows& rows);
void part_arguments(Syntax& line, ColumnPart& part);
// A number format of weights or of activations: "int4:64".
void weight_argument(Syntax& line, const char* name, StoredWeight& weight);
void activation_argument(Syntax& line, const char* name, StoredWeight& activation);
void cache_argument(Syntax& line, const char* name, StoredCache& cache);

}  // namespace fuseline

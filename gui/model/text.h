// Amounts as people read them: a short text for labels and the exact one for tooltips.
#pragma once

#include <string>

#include "base/units.h"
#include "sim/block/whole_model.h"

namespace fuseline::gui {

std::string short_bytes(Bytes bytes);         // "412.3 MB", "8.2 kB"
std::string exact_bytes(Bytes bytes);         // "412,345,678 bytes"
std::string short_time(Seconds time);         // "1530.3 µs", "12.40 ms"
std::string short_flops(Flops flops);         // "1.02 TFLOP"
std::string exact_flops(Flops flops);         // "1,024,000,000 FLOP"
std::string short_rate(BytesPerSecond rate);  // "4.80 TB/s", "912 GB/s"
std::string short_rate(FlopsPerSecond rate);  // "989 TFLOP/s"

std::string lower_case(std::string text);  // of ASCII letters

// With a sign, "−" and not "-": "−120.5 MB", "+3.2 µs", "+12.3 %"; without one where it rounds to
// nothing: "0.0 %".
std::string signed_bytes(Bytes bytes);
std::string signed_time(Seconds time);
std::string signed_percent_text(double fraction);

// "1.26× faster", "1.10× slower", "as fast" within 1 %; the ratio is old time over new time.
std::string speed_text(double ratio);

// "the whole model, 32 layers: 48.21 ms, 42,480 tokens/s"
std::string layers_text(const LayersEstimate& layers, const Workload& workload);

}  // namespace fuseline::gui

// What tokens cost on a rented GPU.
#pragma once

#include "base/units.h"
#include "model/config/config.h"

namespace fuseline {

// Amounts in the currency that the price was given in.
struct MoneyUnit {};
struct MoneyPerHourUnit {};
using Money = Real<MoneyUnit>;
using MoneyPerHour = Real<MoneyPerHourUnit>;

// `time`: of the whole model for the workload's B·T tokens (prompt tokens in forward, generated
// ones in decode, trained ones in train). The GPU is taken to be busy all the time it is paid for.
Money cost_per_million_tokens(MoneyPerHour price, Seconds time, const Workload& workload);

// "prompt", "generated" or "trained": the tokens that the cost is of.
const char* tokens_paid_for(Phase phase);

}  // namespace fuseline

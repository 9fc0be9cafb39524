// Documented oddities of single operators: what they make of NaN, infinities and indices out of range.
#pragma once

#include "operator.h"

namespace neuronqa {

// `below` with the oddity named `effect` on top. Raises c10::Error for a name that is none.
Kernel with_quirk(const std::string& effect, Kernel below);

}  // namespace neuronqa

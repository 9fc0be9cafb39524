// Puts the device into PyTorch's dispatcher, operator by operator, as a profile says.
#pragma once

#include <string>
#include <vector>

#include "operator.h"

namespace neuronqa {

// `aten::mm.out` and `mm` both mean every overload or one: a name without overload means all of them.
struct RefusalRule {
  std::vector<std::string> operators;  // empty: every operator
  Refusal refusal;
};

// An oddity of some operators on arguments that are hardly ever met.
struct QuirkRule {
  std::vector<std::string> operators;
  std::string effect;
};

struct SupportRules {
  bool everything = false;  // the profile `ideal`
  std::vector<std::string> native;  // with overload, as the device registers them
  std::vector<std::string> hidden;
  std::vector<std::string> unsupported;
  std::vector<std::string> composite;  // operators the device implements whole, although PyTorch composes them
  std::vector<std::string> primitives;  // base names of what an overlay may be made of
  std::vector<RefusalRule> refusals;
  std::vector<QuirkRule> quirks;
};

void register_operators(const SupportRules& rules);

}  // namespace neuronqa

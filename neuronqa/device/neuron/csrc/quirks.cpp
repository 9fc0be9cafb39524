#include "quirks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <map>

namespace neuronqa {
namespace {

using at::Tensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const c10::IValue& argument(const c10::OperatorHandle& op, const Stack& stack, size_t index) {
  return stack[stack.size() - op.schema().arguments().size() + index];
}

using Where = Tensor (*)(const Tensor&);
using Value = Tensor (*)(const c10::OperatorHandle&, const Stack&, const Tensor&);

Tensor where_nan(const Tensor& x) {
  return x.isnan();
}
Tensor where_negative_infinity(const Tensor& x) {
  return x == -kInfinity;
}
Tensor where_not_finite(const Tensor& x) {
  return x.isfinite().logical_not_();
}

Tensor zero(const c10::OperatorHandle&, const Stack&, const Tensor& x) {
  return at::zeros({}, x.options());
}
Tensor itself(const c10::OperatorHandle&, const Stack&, const Tensor& x) {
  return x.clone();
}
Tensor lowest(const c10::OperatorHandle&, const Stack&, const Tensor& x) {
  return at::full({}, std::numeric_limits<float>::lowest(), x.options());
}
Tensor lowest_int32(const c10::OperatorHandle&, const Stack&, const Tensor& x) {
  return at::full({}, -2147483648.0, x.options());
}

// The lower bound of a clamp, which is its second argument; a clamp without one keeps NaN.
Tensor lower_bound(const c10::OperatorHandle& op, const Stack& stack, const Tensor& x) {
  const auto& bound = argument(op, stack, 1);
  if (bound.isScalar()) {
    return at::full({}, bound.toScalar(), x.options());
  }
  return bound.isTensor() ? bound.toTensor().to(x.scalar_type()) : x.clone();
}

// Where the first argument is odd, the result is `value`. Looked for before the kernel runs, which may overwrite it.
Kernel replaced(Kernel below, Where odd, Value value) {
  return [below = std::move(below), odd, value](const c10::OperatorHandle& op, Stack& stack) {
    const auto x = argument(op, stack, 0).toTensor();
    const auto mask = at::isFloatingType(x.scalar_type()) ? odd(x) : Tensor();
    if (!mask.defined() || !mask.any().item<bool>()) {
      below(op, stack);
      return;
    }
    const auto instead = value(op, stack, x);
    below(op, stack);
    auto result = stack.back().toTensor();
    result.copy_(at::where(mask, instead.to(result.scalar_type()), result));
  };
}

// index_select(x, dim, index): rows that are not there are NaN, and nobody is told.
Kernel unchecked_index(Kernel below) {
  return [below = std::move(below)](const c10::OperatorHandle& op, Stack& stack) {
    const auto x = argument(op, stack, 0).toTensor();
    const auto index = argument(op, stack, 2).toTensor();
    const auto dim = argument(op, stack, 1).toInt();
    const auto size = x.dim() == 0 ? int64_t{1} : x.size(dim);
    const auto outside = index.lt(0).logical_or_(index.ge(size));
    if (size == 0 || !outside.any().item<bool>()) {
      below(op, stack);
      return;
    }
    stack[stack.size() - op.schema().arguments().size() + 2] = index.clamp(0, size - 1);
    below(op, stack);
    auto result = stack.back().toTensor();
    if (at::isFloatingType(result.scalar_type())) {
      result.index_fill_(dim, outside.nonzero().flatten(), std::numeric_limits<double>::quiet_NaN());
    }
  };
}

}  // namespace

Kernel with_quirk(const std::string& effect, Kernel below) {
  static const std::map<std::string, std::pair<Where, Value>> replacing{
      {"nan-becomes-zero", {where_nan, zero}},
      {"nan-becomes-lower-bound", {where_nan, lower_bound}},
      {"loses-negative-infinity", {where_negative_infinity, lowest}},
      {"not-finite-becomes-lowest-int32", {where_not_finite, lowest_int32}},
      {"nan-stays-nan", {where_nan, itself}}};
  if (effect == "index-out-of-range-reads-nan") {
    return unchecked_index(std::move(below));
  }
  const auto found = replacing.find(effect);
  TORCH_CHECK(found != replacing.end(), "there is no quirk named ", effect);
  return replaced(std::move(below), found->second.first, found->second.second);
}

}  // namespace neuronqa
